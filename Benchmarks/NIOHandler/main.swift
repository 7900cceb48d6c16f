// The alternative that we did not choose: a usual SwiftNIO handler that sends the same bytes for each NUL. No parser, limits or counters.
//
//     nio-handler SOCKET FILE      FILE holds the reply, its NUL included
import Glibc
import NIOCore
import NIOPosix

/// Sends the reply to each message.
final class Answering: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let reply: ByteBuffer

    init(_ reply: ByteBuffer) {
        self.reply = reply
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        for byte in unwrapInboundIn(data).readableBytesView where byte == 0 {
            context.write(wrapOutboundOut(reply), promise: nil)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
    }
}

let file = fopen(CommandLine.arguments[2], "rb")
var bytes = [UInt8](repeating: 0, count: 65_536)
let count = fread(&bytes, 1, bytes.count, file)
let reply = ByteBuffer(bytes: bytes[..<count])
let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
let channel = try ServerBootstrap(group: group)
    .serverChannelOption(.backlog, value: 4096)
    .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Answering(reply)) }
    }
    .bind(unixDomainSocketPath: CommandLine.arguments[1]).wait()
try channel.closeFuture.wait()
