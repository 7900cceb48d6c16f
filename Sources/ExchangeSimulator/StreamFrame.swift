import NIOCore

/// A frame of a venue's stream. Unlike NIO's frames, it is written to one buffer, and it can be invalid.
struct StreamFrame {
    var opcode: UInt8 = 1
    var isFinal = true
    var hasReservedBit = false
    var isMasked = false
    var payload: ArraySlice<UInt8>

    func write(to buffer: inout ByteBuffer) {
        buffer.writeInteger((isFinal ? 0x80 : 0) | (hasReservedBit ? 0x40 : 0) | opcode)
        let mask: UInt8 = isMasked ? 0x80 : 0
        switch payload.count {
        case ...125: buffer.writeInteger(mask | UInt8(payload.count))
        case ...65_535:
            buffer.writeInteger(mask | 126)
            buffer.writeInteger(UInt16(payload.count))
        default:
            buffer.writeInteger(mask | 127)
            buffer.writeInteger(UInt64(payload.count))
        }
        guard isMasked else {
            buffer.writeBytes(payload)
            return
        }
        let key: [UInt8] = [0x12, 0x34, 0x56, 0x78]
        buffer.writeBytes(key)
        buffer.writeBytes(payload.enumerated().map { $0.element ^ key[$0.offset % 4] })
    }
}
