import CLibFuzzer

/// Boundary values: of integers, of the range of ``Price``, of valid prices and of times.
private let edges: [StaticString] = [
    "0", "-1", "1", "-0.0", "0.99", "99999999.99", "100000000.01", "1e8", "1e127", "1e-128", "1e400",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615", "2147483648",
    "281474976710656", "1785050000000", "253402300800000", "3.00000000000000000000000000000000000001",
]

/// Makes a new input from another one. libFuzzer looks for this function by its name.
///
/// The grammar of a decoder refuses most inputs with random changes of bytes. So half of the inputs have a whole number or string
/// replaced, by a boundary value or by another token of the same input. They reach the code behind the grammar.
@c(LLVMFuzzerCustomMutator)
package func mutate(_ data: UnsafeMutablePointer<UInt8>, _ size: Int, _ longest: Int, _ seed: UInt32) -> Int {
    var random = Random(state: UInt64(seed))
    let input = Array(UnsafeBufferPointer(start: data, count: size))
    let tokens = tokens(of: input)
    guard random.next(2) == 0, !tokens.isEmpty else { return LLVMFuzzerMutate(data, size, longest) }
    let place = tokens[random.next(tokens.count)]
    let replacement =
        if random.next(2) == 0 {
            edges[random.next(edges.count)].withUTF8Buffer { Array($0) }
        } else {
            Array(input[tokens[random.next(tokens.count)]])
        }
    let output = input[..<place.lowerBound] + replacement + input[place.upperBound...]
    guard output.count <= longest else { return LLVMFuzzerMutate(data, size, longest) }
    for (index, byte) in output.enumerated() { data[index] = byte }
    return output.count
}

/// The places of numbers and quoted strings, in the common syntax of JSON and TOML.
private func tokens(of input: [UInt8]) -> [Range<Int>] {
    var tokens: [Range<Int>] = []
    var place = 0
    while place < input.count {
        let start = place
        if input[place] == UInt8(ascii: "\"") {
            place += 1
            while place < input.count, input[place] != UInt8(ascii: "\"") {
                place += input[place] == UInt8(ascii: "\\") ? 2 : 1
            }
            place = min(place + 1, input.count)
            tokens.append(start..<place)
        } else if input[place].isOfNumber {
            while place < input.count, input[place].isOfNumber { place += 1 }
            tokens.append(start..<place)
        } else {
            place += 1
        }
    }
    return tokens
}

extension UInt8 {
    fileprivate var isOfNumber: Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) || self == UInt8(ascii: "-") || self == UInt8(ascii: ".")
    }
}

/// SplitMix64: the same seed gives the same input.
private struct Random {
    var state: UInt64

    mutating func next(_ bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((value ^ (value >> 31)) % UInt64(bound))
    }
}
