/// A small compressed body that expands to a large one: zeros in the zlib format (RFC 1950, RFC 1951).
enum Bomb {
    /// - Parameter repeats: How many runs of 258 zeros follow the first zero. Each run takes 13 bits.
    static func zlib(repeats: Int) -> [UInt8] {
        var bits = BitWriter()
        // The last block, with the fixed codes.
        bits.append(0b1, count: 1)
        bits.append(0b01, count: 2)
        bits.appendCode(0x30, count: 8)  // the literal 0
        for _ in 0..<repeats {
            bits.appendCode(0b1100_0101, count: 8)  // copy 258 bytes…
            bits.appendCode(0, count: 5)  // …from a distance of 1 byte
        }
        bits.appendCode(0, count: 7)  // the end
        // Adler-32 of zeros: the first sum stays 1, and the second is the number of bytes.
        let sums = UInt32((1 + repeats * 258) % 65_521) << 16 | 1
        return [0x78, 0x9C] + bits.bytes + (0..<4).map { UInt8(truncatingIfNeeded: sums >> (24 - 8 * $0)) }
    }

    private struct BitWriter {
        var bytes: [UInt8] = []
        private var used = 8

        mutating func append(_ value: Int, count: Int) {
            for place in 0..<count {
                if used == 8 {
                    bytes.append(0)
                    used = 0
                }
                bytes[bytes.count - 1] |= UInt8((value >> place) & 1) << used
                used += 1
            }
        }

        /// Appends a Huffman code, which is stored with its first bit first.
        mutating func appendCode(_ code: Int, count: Int) {
            for place in (0..<count).reversed() { append((code >> place) & 1, count: 1) }
        }
    }
}
