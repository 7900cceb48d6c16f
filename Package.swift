// swift-tools-version: 6.2

import PackageDescription

/// Where scripts/fuzz builds the harness: libFuzzer's archive of the toolchain. Our targets then count their branches for it, and
/// are open to it as to a test.
let libFuzzer = Context.environment["BTC_PRICED_FUZZ"]

/// What every target of ours is built with: warnings are errors, and the upcoming language features are on.
let ours: [SwiftSetting] =
    [
        .treatAllWarnings(as: .error),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (libFuzzer == nil ? [] : [.unsafeFlags(["-sanitize=fuzzer", "-enable-testing"])])

/// One static-pie binary for the client in a release build: it starts faster than a dynamic one, and keeps address
/// space randomisation. Needs `--static-swift-stdlib --disable-local-rpath` on the command line (see Makefile). Its relocations are
/// packed, and what `btcctl current` runs through lies side by side (scripts/symbol-order): both for fewer pages at the start. Not so
/// the daemon: this linker would keep the data of ICU in it, which nothing there refers to.
let staticPIE: [LinkerSetting] = [
    .unsafeFlags(
        [
            "-static-executable", "-use-ld=lld", "-Xclang-linker", "-static-pie",
            "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs",
            "-Xlinker", "--symbol-ordering-file=\(Context.packageDirectory)/Sources/btcctl/symbol-order.txt",
            "-Xlinker", "--no-warn-symbol-ordering",
        ],
        .when(configuration: .release))
]

/// What the daemon runs through at every tick lies side by side, on a few dozen pages of thirty megabytes: fewer of them are resident, and
/// fewer have to be found again by a processor that has done other things for a second.
let sideBySide: [LinkerSetting] = [
    .unsafeFlags(
        [
            "-use-ld=gold", "-Xlinker",
            "--section-ordering-file=\(Context.packageDirectory)/Sources/btc-priced/section-order.txt",
            // No wake-up every second that nobody asked for (Sources/CDispatch).
            "-Xlinker", "--wrap=dispatch_source_set_timer",
        ],
        .when(configuration: .release))
]

let package = Package(
    name: "btc-priced",
    products: [
        .executable(name: "btc-priced", targets: ["btc-priced"]),
        .executable(name: "btcctl", targets: ["btcctl"]),
        .executable(name: "exchange-simulator", targets: ["exchange-simulator"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Executables: an entry point, nothing else.
        .executableTarget(
            name: "btc-priced", dependencies: ["BTCPriceDaemon", "CDispatch"], exclude: ["section-order.txt"],
            swiftSettings: ours,
            linkerSettings: sideBySide),
        .executableTarget(
            name: "btcctl", dependencies: ["BTCCtl"], exclude: ["symbol-order.txt"], swiftSettings: ours,
            linkerSettings: staticPIE),
        .executableTarget(name: "exchange-simulator", dependencies: ["ExchangeSimulator"], swiftSettings: ours),

        // The daemon.
        .target(
            name: "BTCPriceDaemon",
            dependencies: [
                "BTCPriceCore", "BTCPriceFeature", "BTCPriceNetworking", "BTCPricePersistence", "BTCPriceServer",
                "BTCPriceVarlink", "CMemory", "HTTPTransport", "Systemd", "TickLoop",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "TOMLKit", package: "TOMLKit"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: ours),
        .target(
            name: "BTCPriceServer", dependencies: ["BTCPriceCore", "BTCPriceVarlink", "CEpoll", "Varlink"],
            swiftSettings: ours),
        .target(name: "CEpoll"),
        .target(name: "CDispatch"),
        .target(name: "Threads", swiftSettings: ours),
        .target(name: "CMemory"),
        .target(
            name: "TickLoop",
            dependencies: [
                "CEpoll", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: ours),
        .target(
            name: "BTCPriceNetworking",
            dependencies: [
                "BTCPriceCore", "HTTPTransport", "TickLoop",
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: ours),
        .target(
            name: "HTTPTransport",
            dependencies: [
                "Threads",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSOCKS", package: "swift-nio-extras"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ],
            swiftSettings: ours),
        .target(name: "BTCPricePersistence", dependencies: ["BTCPriceCore"], swiftSettings: ours),
        .target(
            name: "Systemd", dependencies: ["CSystemd", "Threads", .product(name: "Logging", package: "swift-log")],
            swiftSettings: ours),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),

        // The client.
        .target(
            name: "BTCCtl",
            dependencies: [
                "BTCPriceClient", "BTCPriceCore", "BTCPriceFeature", "BTCPriceVarlink", "Varlink",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: ours),
        .target(
            name: "BTCPriceClient", dependencies: ["BTCPriceCore", "BTCPriceVarlink", "Varlink"], swiftSettings: ours),
        .target(name: "BTCPriceFeature", dependencies: ["BTCPriceCore"], swiftSettings: ours),

        // What both speak.
        .target(name: "BTCPriceVarlink", dependencies: ["BTCPriceCore", "Varlink"], swiftSettings: ours),
        .target(name: "Varlink", swiftSettings: ours),
        .target(name: "BTCPriceCore", swiftSettings: ours),

        // The exchanges, for tests, benchmarks and an offline demo.
        .target(
            name: "ExchangeSimulator",
            dependencies: [
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            swiftSettings: ours),

        // Tests. Those on the built binaries are in Tests/System.
        .target(name: "TestSupport", dependencies: ["BTCPriceCore"], path: "Tests/TestSupport", swiftSettings: ours),
        .executableTarget(
            name: "rehearsal",
            dependencies: [
                "BTCPriceCore", "BTCPriceDaemon", "BTCPriceNetworking", "CVirtualTime", "ExchangeSimulator",
                "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/Rehearsal", swiftSettings: ours),
        .executableTarget(
            name: "varlink-certification", dependencies: ["Varlink"], path: "Tests/Certification", swiftSettings: ours),
        .target(name: "CVirtualTime", path: "Tests/CVirtualTime"),
        test("BTCPriceCore", ["TestSupport"]),
        test("Varlink", ["TestSupport"]),
        test("BTCPriceVarlink", ["BTCPriceCore", "TestSupport", "Varlink"]),
        test("BTCPriceServer", ["BTCPriceClient", "BTCPriceCore", "BTCPriceVarlink", "TestSupport", "Varlink"]),
        test("BTCPriceNetworking", ["BTCPriceCore", "ExchangeSimulator", "TestSupport", "TickLoop"]),
        test("BTCPricePersistence", ["BTCPriceCore", "TestSupport"]),
        test("BTCPriceFeature", ["BTCPriceCore"]),
        test(
            "BTCPriceDaemon",
            [
                "BTCPriceCore", "BTCPriceNetworking", "HTTPTransport", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ]),
        test(
            "BTCCtl",
            [
                "BTCPriceClient", "BTCPriceCore", "BTCPriceFeature", "BTCPriceVarlink", "TestSupport", "Varlink",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        test(
            "HTTPTransport",
            [
                "TestSupport", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        test("TickLoop", [.product(name: "NIOCore", package: "swift-nio")]),
        test("ExchangeSimulator", ["TestSupport"]),
        test("Systemd", ["TestSupport", .product(name: "Logging", package: "swift-log")]),
    ],
    swiftLanguageModes: [.v6]
)

/// A target's tests.
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
                "BTCCtl", "BTCPriceCore", "BTCPriceDaemon", "BTCPriceFeature", "BTCPriceNetworking",
                "BTCPricePersistence", "BTCPriceServer", "BTCPriceVarlink", "CLibFuzzer", "HTTPTransport", "Varlink",
            ],
            path: "Fuzz/Decoders", swiftSettings: ours,
            linkerSettings: [
                .unsafeFlags(["-Xlinker", libFuzzer]), .linkedLibrary("stdc++"), .linkedLibrary("m"),
            ]),
    ]
}

// What the socket is measured against: only where Benchmarks/run builds it.
if Context.environment["BTC_PRICED_BENCHMARKS"] != nil {
    package.targets.append(
        .executableTarget(
            name: "nio-handler",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Benchmarks/NIOHandler", swiftSettings: ours))
}
