// swift-tools-version: 6.2

import PackageDescription

/// The path of the toolchain's libFuzzer archive; set when scripts/fuzz builds the harness. The project's targets are then built with
/// coverage instrumentation for libFuzzer, and are testable.
let libFuzzer = Context.environment["BTC_PRICED_FUZZ"]

/// The settings of every target of the project: warnings are errors, and the upcoming language features are on.
let ours: [SwiftSetting] =
    [
        .treatAllWarnings(as: .error),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (libFuzzer == nil ? [] : [.unsafeFlags(["-sanitize=fuzzer", "-enable-testing"])])

/// In a release build, the table of a program's addresses is resolved at the start and then read-only, and no page has code and data. No
/// other program uses its symbols, so none is exported; the toolchain would export all. For the relocations see ``staticPIE``. scripts/build
/// adds the flags for the C and C++ files of the dependencies, which a package can't set.
let hardened: [LinkerSetting] = [
    .unsafeFlags(
        [
            "-use-ld=lld", "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "-z", "-Xlinker", "separate-code",
            "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs", "-Xlinker", "--no-export-dynamic",
        ], .when(configuration: .release))
]

/// In a release build the client is one static-pie binary: it starts faster than a dynamic one and keeps address space
/// randomization. This requires `--static-swift-stdlib --disable-local-rpath` on the command line (see scripts/build).
///
/// Such a binary relocates itself at each start. `pack-relative-relocs` stores its 44,000 relative relocations in 8 KiB (DT_RELR)
/// instead of 1 MiB, which saves a tenth of the time of a `btcctl` call. The startup code of glibc reads the format since version 2.36,
/// which is in Debian 12.
let staticPIE: [LinkerSetting] = [
    .unsafeFlags(
        [
            "-static-executable", "-use-ld=lld", "-Xclang-linker", "-static-pie", "-Xlinker", "-z", "-Xlinker",
            "pack-relative-relocs", "-Xlinker", "-z", "-Xlinker", "separate-code",
        ], .when(configuration: .release))
]

let package = Package(
    name: "btc-priced",
    products: libFuzzer != nil
        ? []
        : ["btc-priced", "btcctl", "btc-price-http", "btc-price-fleet", "btc-price-alert", "exchange-simulator"].map {
            .executable(name: $0, targets: [$0])
        },
    dependencies: [
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // The programs that hold their own code.
        program(
            "btcctl", ["BTCPriceCore", "BTCPriceFeature", "BTCPriceSocket", "CommandLine", "Files"],
            linkerSettings: staticPIE),
        program(
            "btc-price-http",
            [
                "BTCPriceCore", "BTCPriceFeature", "BTCPriceSocket", "CommandLine", "EventLoopTasks", "Systemd",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], resources: [.embedInCode("Page/index.html"), .embedInCode("Page/openapi.json")]),
        program(
            "btc-price-fleet",
            [
                "BTCPriceCore", "BTCPriceSocket", "CLinux", "CMosquitto", "COpenSSL", "CommandLine", "Files", "Systemd",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]),
        program(
            "btc-price-alert",
            [
                "BTCPriceCore", "BTCPriceFeature", "BTCPriceSocket", "CommandLine", "Configuration", "Files", "Systemd",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]),
        .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),

        // The daemon.
        .executableTarget(
            name: "btc-priced", dependencies: ["BTCPriceDaemon", "CommandLine"], swiftSettings: ours,
            linkerSettings: hardened),
        .target(
            name: "BTCPriceDaemon",
            dependencies: [
                "BTCPriceCore", "BTCPriceFeature", "BTCPriceNetworking", "BTCPricePersistence", "BTCPriceSocket",
                "CLinux", "CommandLine", "Configuration", "Files", "Systemd",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: ours),
        .target(
            name: "BTCPriceNetworking",
            dependencies: [
                "BTCPriceCore", "BTCPriceSocket", "Configuration", "EventLoopTasks", "TLS",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSOCKS", package: "swift-nio-extras"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            resources: [.embedInCode("Exchanges/exchanges.toml"), .embedInCode("Exchanges/reference-rates.toml")],
            swiftSettings: ours),
        .target(
            name: "BTCPricePersistence", dependencies: ["BTCPriceCore", "BTCPriceSocket", "CSQLite", "Files"],
            swiftSettings: ours),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),

        .target(name: "Configuration", dependencies: ["Files"], swiftSettings: ours),

        // Shared by the programs.
        .target(
            name: "BTCPriceSocket",
            dependencies: ["BTCPriceCore", "CLinux", .product(name: "DequeModule", package: "swift-collections")],
            resources: [
                .embedInCode("Interface/io.btcpriced.Price.varlink"),
                .embedInCode("Interface/io.btcpriced.History.varlink"),
            ], swiftSettings: ours),
        .target(name: "BTCPriceFeature", dependencies: ["BTCPriceCore"], swiftSettings: ours),
        .target(name: "BTCPriceCore", swiftSettings: ours),
        .target(name: "CommandLine", dependencies: ["BTCPriceCore"], swiftSettings: ours),
        .target(name: "Files", dependencies: ["BTCPriceCore"], swiftSettings: ours),
        .target(
            name: "Systemd", dependencies: ["CSystemd", .product(name: "Logging", package: "swift-log")],
            swiftSettings: ours),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .target(name: "CLinux"),
        .target(
            name: "TLS", dependencies: ["COpenSSL", .product(name: "NIOCore", package: "swift-nio")],
            swiftSettings: ours),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(
            name: "EventLoopTasks", dependencies: [.product(name: "NIOCore", package: "swift-nio")], swiftSettings: ours
        ),

        // Simulated exchanges, for tests, benchmarks and an offline demo.
        .executableTarget(name: "exchange-simulator", dependencies: ["ExchangeSimulator"], swiftSettings: ours),
        .target(
            name: "ExchangeSimulator",
            dependencies: [
                "BTCPriceCore", "BTCPriceNetworking", "BTCPriceSocket", "CommandLine", "Configuration", "TLS",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            swiftSettings: ours),

        // Tests. The tests of the built binaries are in Tests/System.
        .target(
            name: "TestSupport", dependencies: ["BTCPriceCore", "BTCPriceSocket"], path: "Tests/TestSupport",
            swiftSettings: ours),
        .executableTarget(
            name: "rehearsal",
            dependencies: [
                "BTCPriceCore", "BTCPriceDaemon", "BTCPriceFeature", "BTCPriceNetworking", "BTCPricePersistence",
                "BTCPriceSocket", "CVirtualTime", "CommandLine", "ExchangeSimulator", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/Rehearsal", swiftSettings: ours),
        .target(name: "CVirtualTime", path: "Tests/CVirtualTime"),
        test("BTCPriceCore", ["TestSupport"]),
        test("BTCPriceSocket", ["BTCPriceCore", "TestSupport"]),
        test(
            "BTCPriceNetworking",
            [
                "BTCPriceCore", "BTCPriceSocket", "Configuration", "ExchangeSimulator", "TestSupport",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "NIOWebSocket", package: "swift-nio"),
            ]),
        test("BTCPricePersistence", ["BTCPriceCore", "Files", "TestSupport"]),
        test("BTCPriceFeature", ["BTCPriceCore", "TestSupport"]),
        test("CommandLine", ["TestSupport"]),
        test(
            "BTCPriceDaemon",
            [
                "BTCPriceCore", "BTCPriceNetworking", "BTCPricePersistence", "BTCPriceSocket", "CommandLine",
                "Configuration", "Systemd", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ]),
        test("btcctl", ["BTCPriceCore", "BTCPriceFeature", "BTCPriceSocket", "CommandLine", "TestSupport"]),
        test(
            "btc-price-http",
            [
                "BTCPriceCore", "BTCPriceSocket", "CommandLine", "TestSupport",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        test(
            "btc-price-alert",
            ["BTCPriceCore", "BTCPriceFeature", "BTCPriceSocket", "Configuration", "TestSupport"]),
        test("btc-price-fleet", ["BTCPriceCore", "BTCPriceSocket", "TestSupport"]),
        test("ExchangeSimulator", ["TestSupport"]),
        test(
            "TLS",
            [
                "COpenSSL", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ]),
        test("Systemd", ["TestSupport", .product(name: "Logging", package: "swift-log")]),
    ],
    swiftLanguageModes: [.v6]
)

/// A program whose code is its own. For the fuzzing harness, which can't link another program, it is a library without its entry point.
func program(
    _ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = [],
    linkerSettings: [LinkerSetting] = hardened
) -> Target {
    libFuzzer == nil
        ? .executableTarget(
            name: name, dependencies: dependencies, resources: resources, swiftSettings: ours,
            linkerSettings: linkerSettings)
        : .target(
            name: name, dependencies: dependencies, exclude: ["main.swift"], resources: resources, swiftSettings: ours)
}

/// The test target of a target.
func test(_ target: String, _ others: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: "\(target)Tests", dependencies: [.target(name: target)] + others, swiftSettings: ours)
}

if let libFuzzer {
    package.targets += [
        .systemLibrary(name: "CLibFuzzer", path: "Fuzz/CLibFuzzer"),
        .executableTarget(
            name: "fuzz-decoders",
            dependencies: [
                "BTCPriceCore", "BTCPriceDaemon", "BTCPriceFeature", "BTCPriceNetworking", "BTCPricePersistence",
                "BTCPriceSocket", "CLibFuzzer", "Configuration", "btc-price-fleet", "btcctl",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            path: "Fuzz/Decoders", swiftSettings: ours,
            linkerSettings: [
                .unsafeFlags(["-Xlinker", libFuzzer]), .linkedLibrary("stdc++"), .linkedLibrary("m"),
            ]),
    ]
}
