/// The function that libFuzzer calls with every input. As a C function it captures nothing, so the table has one for each decoder.
typealias Run = @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32

/// Ends the process if a condition does not hold, so that libFuzzer keeps the input.
func hold(_ condition: Bool, _ what: @autoclosure () -> String) {
    if !condition { fatalError("does not hold: \(what())") }
}

/// Copies an input and passes it on.
/// - Returns: 0: libFuzzer keeps the input if it has reached new code.
func each(_ start: UnsafePointer<UInt8>?, _ count: Int, _ body: ([UInt8]) -> Void) -> Int32 {
    body(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// The decoded value; `nil` if the decoder refuses the input, which is allowed.
func accepted<Value, Failure: Error>(_ decode: () throws(Failure) -> Value) -> Value? {
    do { return try decode() } catch { return nil }
}

/// Reads numbers from the start of an input and leaves the rest. At the end of the input it returns zeros.
struct Draw {
    private(set) var rest: ArraySlice<UInt8>

    init(_ input: [UInt8]) {
        rest = input[...]
    }

    mutating func byte() -> Int {
        Int(rest.popFirst() ?? 0)
    }
}

/// A stream of bytes, and its pieces. The input: the number of cuts, the cuts, the stream.
func cut(_ input: [UInt8]) -> (stream: ArraySlice<UInt8>, pieces: [ArraySlice<UInt8>]) {
    var draw = Draw(input)
    let cuts = draw.byte() % 16
    var sizes = (0..<cuts).map { _ in 1 + draw.byte() }
    var (pieces, rest): ([ArraySlice<UInt8>], _) = ([], draw.rest)
    while let size = sizes.popLast(), !rest.isEmpty {
        pieces.append(rest.prefix(size))
        rest = rest.dropFirst(size)
    }
    return (draw.rest, pieces + [rest])
}
