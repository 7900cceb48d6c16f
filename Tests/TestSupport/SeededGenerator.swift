import Glibc

/// A random generator (SplitMix64): the same seed gives the same numbers on every platform.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package init(seed: Int) { self.init(seed: UInt64(bitPattern: Int64(seed))) }

    /// A generator with a random seed, which is printed. SEED in the environment repeats a run.
    package static func announced(_ name: String = #function) -> SeededGenerator {
        let given = getenv("SEED").flatMap { UInt64(String(cString: $0)) }
        let seed = given ?? UInt64.random(in: 0..<1 << 32)
        print("seed of \(name): \(seed)")
        return SeededGenerator(seed: seed)
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
