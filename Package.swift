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
            "pack-relative-relocs",
        ], .when(configuration: .release))
]

let package = Package(
    name: "btc-priced",
    products: [
        .executable(name: "btc-priced", targets: ["btc-priced"]),
        .executable(name: "btcctl", targets: ["btcctl"]),
        .executable(name: "btc-price-http", targets: ["btc-price-http"]),
        .executable(name: "btc-price-fleet", targets: ["btc-price-fleet"]),
        .executable(name: "exchange-simulator", targets: ["exchange-simulator"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Executables: only an entry point.
        .executableTarget(
            name: "btc-priced", dependencies: ["BTCPriceDaemon"], swiftSettings: ours),
        .executableTarget(
            name: "btcctl", dependencies: ["BTCCtl"], swiftSettings: ours, linkerSettings: staticPIE),
        .executableTarget(name: "btc-price-http", dependencies: ["BTCPriceHTTP"], swiftSettings: ours),
        .executableTarget(name: "btc-price-fleet", dependencies: ["BTCPriceFleet"], swiftSettings: ours),
        .executableTarget(name: "exchange-simulator", dependencies: ["ExchangeSimulator"], swiftSettings: ours),

        // The daemon.
        .target(
            name: "BTCPriceDaemon",
            dependencies: [
                "BTCPriceAPI", "BTCPriceCore", "BTCPriceFeature", "BTCPriceNetworking", "BTCPricePersistence",
                "BTCPriceServer", "CLinux", "CommandLine", "Configuration", "Systemd", "Varlink",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: ours),
        .target(
            name: "BTCPriceServer", dependencies: ["BTCPriceAPI", "BTCPriceCore", "CLinux", "Varlink"],
            swiftSettings: ours),
        .target(
            name: "BTCPriceNetworking",
            dependencies: [
                "BTCPriceAPI", "BTCPriceCore", "Configuration", "EventLoopTasks", "Varlink",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSOCKS", package: "swift-nio-extras"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            resources: [.embedInCode("Exchanges/exchanges.toml"), .embedInCode("Exchanges/reference-rates.toml")],
            swiftSettings: ours),
        .target(
            name: "Configuration", dependencies: [.product(name: "TOMLKit", package: "TOMLKit")], swiftSettings: ours),
        .target(
            name: "BTCPricePersistence", dependencies: ["BTCPriceCore", "CSQLite", "Varlink"], swiftSettings: ours),
        .target(
            name: "Systemd", dependencies: ["CSystemd", .product(name: "Logging", package: "swift-log")],
            swiftSettings: ours),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CLinux"),

        .target(
            name: "EventLoopTasks", dependencies: [.product(name: "NIOCore", package: "swift-nio")], swiftSettings: ours
        ),

        // The HTTP gateway.
        .target(
            name: "BTCPriceHTTP",
            dependencies: [
                "BTCPriceAPI", "BTCPriceCore", "BTCPriceFeature", "CommandLine", "EventLoopTasks", "Systemd", "Varlink",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            resources: [.embedInCode("Page/index.html"), .embedInCode("Page/openapi.json")], swiftSettings: ours),

        // The satellite of a fleet.
        .target(
            name: "BTCPriceFleet",
            dependencies: [
                "BTCPriceAPI", "BTCPriceCore", "BTCPriceServer", "CLinux", "CMosquitto", "CommandLine", "Systemd",
                "Varlink",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: ours),
        .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),

        // The client.
        .target(
            name: "BTCCtl",
            dependencies: [
                "BTCPriceAPI", "BTCPriceCore", "BTCPriceFeature", "CommandLine", "Varlink",
            ],
            swiftSettings: ours),
        .target(name: "BTCPriceFeature", dependencies: ["BTCPriceCore"], swiftSettings: ours),

        // The command lines of all programs.
        .target(name: "CommandLine", dependencies: ["BTCPriceCore"], swiftSettings: ours),

        // Shared by the daemon and the client.
        .target(
            name: "BTCPriceAPI", dependencies: ["BTCPriceCore", "CLinux", "Varlink"],
            resources: [
                .embedInCode("Interface/io.btcpriced.Price.varlink"),
                .embedInCode("Interface/io.btcpriced.History.varlink"),
            ], swiftSettings: ours),
        .target(name: "Varlink", swiftSettings: ours),
        .target(name: "BTCPriceCore", swiftSettings: ours),

        // Simulated exchanges, for tests, benchmarks and an offline demo.
        .target(
            name: "ExchangeSimulator",
            dependencies: [
                "BTCPriceAPI", "BTCPriceCore", "BTCPriceNetworking", "CommandLine", "Configuration",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            swiftSettings: ours),

        // Tests. The tests of the built binaries are in Tests/System.
        .target(
            name: "TestSupport", dependencies: ["BTCPriceCore", "Varlink"], path: "Tests/TestSupport",
            swiftSettings: ours),
        .executableTarget(
            name: "rehearsal",
            dependencies: [
                "BTCPriceCore", "BTCPriceDaemon", "BTCPriceNetworking", "BTCPricePersistence", "CVirtualTime",
                "ExchangeSimulator", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/Rehearsal", swiftSettings: ours),
        .target(name: "CVirtualTime", path: "Tests/CVirtualTime"),
        test("BTCPriceCore", ["TestSupport"]),
        test("Varlink", ["TestSupport"]),
        test("BTCPriceAPI", ["BTCPriceCore", "TestSupport", "Varlink"]),
        test("BTCPriceServer", ["BTCPriceAPI", "BTCPriceCore", "TestSupport", "Varlink"]),
        test(
            "BTCPriceNetworking",
            [
                "BTCPriceAPI", "BTCPriceCore", "Configuration", "ExchangeSimulator", "TestSupport", "Varlink",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ]),
        test("BTCPricePersistence", ["BTCPriceCore", "TestSupport"]),
        test("BTCPriceFeature", ["BTCPriceCore"]),
        test("CommandLine", ["TestSupport"]),
        test(
            "BTCPriceDaemon",
            [
                "BTCPriceCore", "BTCPriceNetworking", "CommandLine", "Configuration", "Systemd", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]),
        test(
            "BTCCtl",
            [
                "BTCPriceAPI", "BTCPriceCore", "BTCPriceFeature", "CommandLine", "TestSupport", "Varlink",
            ]),
        test(
            "BTCPriceHTTP",
            [
                "BTCPriceAPI", "BTCPriceCore", "Varlink", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        test("BTCPriceFleet", ["BTCPriceAPI", "BTCPriceCore", "Varlink"]),
        test("ExchangeSimulator", ["TestSupport"]),
        test("Systemd", ["TestSupport", .product(name: "Logging", package: "swift-log")]),
    ],
    swiftLanguageModes: [.v6]
)

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
                "BTCCtl", "BTCPriceAPI", "BTCPriceCore", "BTCPriceDaemon", "BTCPriceFeature", "BTCPriceFleet",
                "BTCPriceNetworking", "BTCPricePersistence", "BTCPriceServer", "CLibFuzzer", "Configuration", "Varlink",
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
