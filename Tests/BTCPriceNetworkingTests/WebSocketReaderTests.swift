import NIOCore
import NIOEmbedded
import NIOWebSocket
import Testing

@testable import BTCPriceNetworking

/// The frames that a client must accept from a server and those that it must refuse (RFC 6455), by the decoder and the reader together.
@Suite struct WebSocketReaderTests {
    private enum Opcode {
        static let (continuation, text, binary): (UInt8, UInt8, UInt8) = (0, 1, 2)
        static let (close, ping, pong): (UInt8, UInt8, UInt8) = (8, 9, 10)
    }

    /// A frame as it is sent (section 5.2).
    /// - Parameters:
    ///   - reserved: The three reserved bits.
    ///   - length: The length in the head, if it is not the real one.
    private static func frame(
        _ opcode: UInt8, _ payload: [UInt8] = [], isLast: Bool = true, reserved: UInt8 = 0, isMasked: Bool = false,
        length: Int? = nil
    ) -> [UInt8] {
        let length = length ?? payload.count
        let mask: UInt8 = isMasked ? 0x80 : 0
        var bytes: [UInt8] = [(isLast ? 0x80 : 0) | reserved << 4 | opcode]
        if length < 126 {
            bytes.append(mask | UInt8(length))
        } else if length < 65_536 {
            bytes += [mask | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
        } else {
            bytes.append(mask | 127)
            bytes += stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: length >> $0) }
        }
        // This key does not change the payload.
        if isMasked { bytes += [0, 0, 0, 0] }
        return bytes + payload
    }

    private static func text(_ text: String, isLast: Bool = true) -> [UInt8] {
        frame(Opcode.text, Array(text.utf8), isLast: isLast)
    }

    private static func more(_ text: String, isLast: Bool = true) -> [UInt8] {
        frame(Opcode.continuation, Array(text.utf8), isLast: isLast)
    }

    private static func ping(_ text: String) -> [UInt8] { frame(Opcode.ping, Array(text.utf8)) }

    private static func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
        frame(Opcode.close, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
    }

    /// The events from the bytes in one line, up to a refusal. Parts of messages and pongs give no event.
    private func outcome(_ pieces: [ArraySlice<UInt8>]) -> String {
        let channel = EmbeddedChannel()
        defer { do { _ = try channel.finish() } catch {} }
        var reader = WebSocketReader()
        var events: [String] = []
        do {
            let decoder = WebSocketFrameDecoder(maxFrameSize: WebSocketReader.longestMessage)
            try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(decoder))
            for piece in pieces {
                let written = Result { _ = try channel.writeInbound(ByteBuffer(bytes: piece)) }
                // Frames decoded before an error count.
                while let frame = try channel.readInbound(as: WebSocketFrame.self) {
                    let event = try reader.take(frame)
                    if event != .nothing { events.append(describe(event)) }
                }
                try written.get()
            }
        } catch let violation as WebSocketReader.Violation {
            events.append("\(UInt16(webSocketErrorCode: violation.code)) \(violation.description)")
        } catch {
            events.append("\(error)")
        }
        return events.joined(separator: ", ")
    }

    private func outcome(_ frames: [[UInt8]]) -> String { outcome(frames.map { $0[...] }) }

    private func describe(_ event: WebSocketReader.Event) -> String {
        switch event {
        case .text(let text):
            text.readableBytes > 20 ? "a text of \(text.readableBytes)" : "text '\(String(buffer: text))'"
        case .ping(let payload): "ping '\(String(buffer: payload))'"
        case .close(let code, let reason): "close \(code.map { UInt16(webSocketErrorCode: $0) } ?? 0) '\(reason)'"
        case .nothing: "nothing"
        }
    }

    @Test(arguments: [0, 1, 125, 126, 127, 65_535, 65_536, 262_144])
    func `a text of any allowed length is read`(length: Int) {
        let text = String(repeating: "x", count: length)
        let expected = length > 20 ? "a text of \(length)" : "text '\(text)'"
        #expect(outcome([Self.text(text)]) == expected)
        // In two fragments, followed by a short text.
        let half = length / 2
        let parts = [
            Self.text(String(text.prefix(half)), isLast: false), Self.more(String(text.dropFirst(half))),
            Self.text("next"),
        ]
        #expect(outcome(parts) == "\(expected), text 'next'")
    }

    @Test func `a stream is the same wherever it is cut`() {
        let frames: [[UInt8]] = [
            Self.ping(""), Self.text("Hel", isLast: false), Self.ping("between"), Self.frame(Opcode.pong),
            Self.more("", isLast: false), Self.more("lo κό", isLast: false), Self.more("σμε"),
            Self.frame(Opcode.binary, [0xFF, 0xFE], isLast: false), Self.frame(Opcode.continuation, [0xFF]),
            Self.text(String(repeating: "y", count: 130)), Self.text(""), Self.close(1001, Array("bye".utf8)),
        ]
        let bytes = Array(frames.joined())
        let expected = "ping '', ping 'between', text 'Hello κόσμε', a text of 130, text '', close 1001 'bye'"
        for cut in 0...bytes.count { #expect(outcome([bytes[..<cut], bytes[cut...]]) == expected, "cut at \(cut)") }
        #expect(outcome(bytes.indices.map { bytes[$0...$0] }) == expected)
    }

    private static func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x61, count: count) }

    /// A text in a number of fragments.
    private static func fragments(_ count: Int, of text: String) -> [[UInt8]] {
        (1...count).map { number in
            number == 1 ? Self.text(text, isLast: false) : more(text, isLast: number == count)
        }
    }

    /// Errors in the protocol, and cases that look like errors.
    static let cases: [(frames: [[UInt8]], expected: String)] = [
        // Reserved bits, opcodes and masks.
        ([frame(Opcode.text, reserved: 4)], "1002 a frame with a reserved bit"),
        ([frame(Opcode.text, reserved: 2)], "1002 a frame with a reserved bit"),
        ([frame(Opcode.ping, reserved: 1)], "1002 a frame with a reserved bit"),
        ([text("a"), frame(3)], "text 'a', 1002 a frame with a reserved opcode"),
        ([frame(7)], "1002 a frame with a reserved opcode"),
        ([frame(11)], "1002 a frame with a reserved opcode"),
        ([text("a", isLast: false), frame(15)], "1002 a frame with a reserved opcode"),
        ([frame(Opcode.text, [0x61], isMasked: true)], "1002 a masked frame"),
        ([frame(Opcode.ping, isMasked: true)], "1002 a masked frame"),

        // Fragments.
        ([more("a")], "1002 a continuation frame without a message"),
        ([more("a", isLast: false), more("b")], "1002 a continuation frame without a message"),
        ([text("a"), more("b")], "text 'a', 1002 a continuation frame without a message"),
        ([text("a", isLast: false), text("b")], "1002 a message within another one"),
        ([text("a", isLast: false), frame(Opcode.binary, [1])], "1002 a message within another one"),
        ([frame(Opcode.binary, [1], isLast: false), text("b")], "1002 a message within another one"),
        ([text("a", isLast: false), ping("1"), ping("2"), more("b")], "ping '1', ping '2', text 'ab'"),
        ([text("a", isLast: false), close(1000)], "close 1000 ''"),
        // A binary message is accepted, and the next one is read.
        ([frame(Opcode.binary, [0xC0, 0xAF]), text("b")], "text 'b'"),

        // Control frames are not fragmented and short.
        ([frame(Opcode.ping, [0x61], isLast: false)], "fragmentedControlFrame"),
        ([frame(Opcode.close, isLast: false)], "fragmentedControlFrame"),
        ([frame(Opcode.ping, bytes(126))], "multiByteControlFrameLength"),
        ([frame(Opcode.close, bytes(126))], "multiByteControlFrameLength"),
        ([frame(Opcode.pong, Array("nobody has asked".utf8)), text("b")], "text 'b'"),

        // Long messages. Nothing of a frame that is too long is kept.
        ([frame(Opcode.text, length: 262_145)], "invalidFrameLength"),
        ([frame(Opcode.text, length: Int.max)], "invalidFrameLength"),
        ([frame(Opcode.binary, length: 262_145)], "invalidFrameLength"),
        (
            [frame(Opcode.text, bytes(200_000), isLast: false), frame(0, bytes(62_145), isLast: false)],
            "1009 a message that is too long"
        ),
        (
            [frame(Opcode.binary, bytes(200_000), isLast: false), frame(0, bytes(62_145))],
            "1009 a message that is too long"
        ),
        (fragments(64, of: "a"), "a text of 64"),
        (fragments(65, of: "a"), "1009 a message that is too long"),
        (fragments(1000, of: ""), "1009 a message that is too long"),
    ]

    @Test(arguments: cases.indices)
    func `a protocol error is refused, and everything before it is read`(row: Int) {
        let (frames, expected) = Self.cases[row]
        #expect(outcome(frames) == expected)
        // In one read too.
        #expect(outcome([frames.flatMap(\.self)]) == expected)
    }

    // MARK: - Closing

    @Test func `a close frame has no payload, or a code and a reason`() {
        #expect(outcome([Self.frame(Opcode.close)]) == "close 0 ''")
        #expect(outcome([Self.frame(Opcode.close, [3])]) == "1002 a close frame that is not valid")
        #expect(outcome([Self.close(1000)]) == "close 1000 ''")
        #expect(outcome([Self.close(4001, Array("κό".utf8))]) == "close 4001 'κό'")
        let longest = String(repeating: "r", count: 123)
        #expect(outcome([Self.close(1013, Array(longest.utf8))]) == "close 1013 '\(longest)'")
        for reason: [UInt8] in [[0xCE], [0x61, 0xFF], [0xED, 0xA0, 0x80]] {
            #expect(outcome([Self.close(1000, reason)]) == "1002 a close frame that is not valid")
        }
    }

    static let allowed: [UInt16] = [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
    ]

    @Test(arguments: allowed)
    func `the codes of the registry and of applications are accepted`(code: UInt16) {
        #expect(outcome([Self.close(code)]) == "close \(code) ''")
    }

    static let forbidden: [UInt16] = [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535]

    @Test(arguments: forbidden)
    func `no other code may be sent`(code: UInt16) {
        #expect(outcome([Self.close(code)]) == "1002 a close frame that is not valid")
    }

    // MARK: - UTF-8

    @Test(arguments: [
        "κόσμε", "\u{0}", "\u{7F}\u{80}\u{7FF}\u{800}", "\u{FFFD}\u{FFFE}\u{FFFF}", "\u{D7FF}\u{E000}",
        "\u{10000}\u{10FFFF}", "e\u{301}",
    ])
    func `a text may be cut within a character`(text: String) {
        let bytes = Array(text.utf8)
        let expected = "text '\(text)'"
        #expect(outcome([Self.frame(Opcode.text, bytes)]) == expected)
        let fragments = bytes.indices.map { index in
            Self.frame(
                index == 0 ? Opcode.text : Opcode.continuation, [bytes[index]], isLast: index == bytes.count - 1)
        }
        #expect(outcome(fragments) == expected)
    }

    static let broken: [[UInt8]] = [
        // A byte that never occurs, and a continuation byte without a start.
        [0xFF], [0x61, 0xFE, 0x61], [0x80], [0x61, 0xBF],
        // Incomplete characters.
        [0xCE], [0xE1, 0xBD], [0xF0, 0x90, 0x8D], [0xCE, 0x61],
        // Overlong encodings.
        [0xC0, 0xAF], [0xC1, 0xBF], [0xE0, 0x80, 0xAF], [0xF0, 0x80, 0x80, 0xAF],
        // Surrogates, and numbers beyond Unicode.
        [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80],
    ]

    @Test(arguments: broken)
    func `a text with invalid UTF-8 is refused`(bytes: [UInt8]) {
        let expected = "1007 a text that is not UTF-8"
        #expect(outcome([Self.frame(Opcode.text, bytes)]) == expected)
        let fragments = [Self.text("a", isLast: false), Self.frame(Opcode.continuation, bytes)]
        #expect(outcome(fragments) == expected)
    }
}
