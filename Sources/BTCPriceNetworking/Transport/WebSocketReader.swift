import NIOCore
import NIOWebSocket

/// Assembles a server's messages from its frames, and rejects what RFC 6455 does not allow. A pure value.
///
/// NIOWebSocket's decoder limits the length of a frame and checks that control frames are whole and short. Everything else is checked
/// here. No extension was offered, so no reserved bit has a meaning.
struct WebSocketReader: Sendable {
    /// The result of a frame.
    enum Event: Sendable, Equatable {
        /// A complete text message, valid UTF-8.
        case text(ByteBuffer)
        case ping(ByteBuffer)
        /// The server closes the connection. `code` is `nil` if the frame has no payload.
        case close(code: WebSocketErrorCode?, reason: String)
        /// A part of a message, a binary message or a pong.
        case nothing
    }

    /// The server violated the protocol. The connection must be closed with ``code``.
    struct Violation: Error, Sendable, Equatable, CustomStringConvertible {
        let code: WebSocketErrorCode
        /// What the server has sent.
        let description: String
    }

    /// The longest message and the longest frame, bytes. The longest message of an exchange has less than 1,000.
    static let longestMessage = 256 * 1024
    static let mostFragments = 64

    /// The message so far, if its last frame has not arrived. A binary message is not kept.
    private var begun: (text: ByteBuffer?, length: Int, fragments: Int)?

    /// - Throws: ``Violation``. The reader can't be used afterwards.
    mutating func take(_ frame: WebSocketFrame) throws(Violation) -> Event {
        guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else { throw Self.protocolError("a frame with a reserved bit") }
        guard frame.maskKey == nil else { throw Self.protocolError("a masked frame") }
        switch frame.opcode {
        case .text, .binary:
            guard begun == nil else { throw Self.protocolError("a message within another one") }
            begun = (frame.opcode == .text ? frame.data : nil, frame.length, 1)
            return try ended(frame.fin)
        case .continuation:
            guard var message = begun else { throw Self.protocolError("a continuation frame without a message") }
            // Released, so that the bytes are appended in place.
            begun = nil
            var data = frame.data
            message.text?.writeBuffer(&data)
            message.length += frame.length
            message.fragments += 1
            begun = message
            return try ended(frame.fin)
        case .ping: return .ping(frame.data)
        case .pong: return .nothing
        case .connectionClose: return try close(frame.data)
        default: throw Self.protocolError("a frame with a reserved opcode")
        }
    }

    private mutating func ended(_ isLast: Bool) throws(Violation) -> Event {
        guard let message = begun else { return .nothing }
        guard message.length <= Self.longestMessage, message.fragments <= Self.mostFragments else {
            throw Violation(code: .messageTooLarge, description: "a message that is too long")
        }
        guard isLast else { return .nothing }
        begun = nil
        guard let text = message.text else { return .nothing }
        guard text.isUTF8 else {
            throw Violation(code: .dataInconsistentWithMessage, description: "a text that is not UTF-8")
        }
        return .text(text)
    }

    /// The payload is empty, or a code and a text (section 5.5.1).
    private func close(_ data: ByteBuffer) throws(Violation) -> Event {
        var data = data
        guard data.readableBytes > 0 else { return .close(code: nil, reason: "") }
        guard let number = data.readInteger(as: UInt16.self), Self.isSendable(number), data.isUTF8 else {
            throw Self.protocolError("a close frame that is not valid")
        }
        return .close(code: WebSocketErrorCode(codeNumber: Int(number)), reason: String(buffer: data))
    }

    /// Whether a close frame may contain a code (section 7.4, and the registry of IANA).
    private static func isSendable(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    private static func protocolError(_ description: String) -> Violation {
        Violation(code: .protocolError, description: description)
    }
}

extension ByteBuffer {
    fileprivate var isUTF8: Bool {
        withUnsafeReadableBytes { bytes in
            do {
                _ = try UTF8Span(validating: bytes.bindMemory(to: UInt8.self).span)
                return true
            } catch {
                return false
            }
        }
    }
}
