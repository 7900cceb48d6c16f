import COpenSSL
package import NIOCore

/// TLS between a channel and the handlers after it, by OpenSSL over memory (the "memory BIOs" of its documentation).
///
/// It fires ``Established`` when the handshake is done, and a ``TLSError`` for each failure, after which it closes the channel. What is
/// written before the handshake is done fails.
package final class TLSHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// The event that the handshake is done, and a client's server is who it should be.
    package struct Established: Sendable {}

    private enum Stage {
        case shakingHands
        case established
        /// The peer has sent its last message, TLS has failed, or the channel is being closed.
        case over
    }

    private let tls: TLSContext
    private let peer: TLSContext.Peer?
    let connection: OpaquePointer
    /// What the peer has sent, and what it is to be sent. The connection owns both.
    private let (incoming, outgoing): (OpaquePointer, OpaquePointer)
    private var stage = Stage.shakingHands
    private var received = ByteBuffer()
    /// The bytes that have come since the handshake or the last data.
    private var withoutData = 0
    /// More than a record, and than all tickets. A server must not keep the client busy with messages of TLS itself.
    private static let mostWithoutData = 64 * 1024
    /// Whether a read was asked for that has not brought anything yet.
    private var wantsRead = false

    /// - Parameters:
    ///   - context: A client's, with a `peer`, or a server's.
    ///   - peer: Who a client expects; `nil` for a server.
    /// - Throws: ``TLSError`` if memory is short, or the peer's name is not valid.
    package init(_ context: TLSContext, to peer: TLSContext.Peer? = nil) throws(TLSError) {
        (tls, self.peer) = (context, peer)
        guard let connection = SSL_new(context.pointer), let incoming = BIO_new(BIO_s_mem()),
            let outgoing = BIO_new(BIO_s_mem())
        else { throw .last() }
        (self.connection, self.incoming, self.outgoing) = (connection, incoming, outgoing)
        SSL_set_bio(connection, incoming, outgoing)
        SSL_set_ex_data(connection, 0, Unmanaged.passUnretained(self).toOpaque())
        guard let peer else {
            SSL_set_accept_state(connection)
            return
        }
        SSL_set_connect_state(connection)
        try expect(peer)
        if let session = context.session(of: peer) {
            SSL_set_session(connection, session)
            SSL_SESSION_free(session)
        }
    }

    deinit { SSL_free(connection) }

    /// OpenSSL checks the certificate for a name or an address during the handshake. Without one it would accept that of any host.
    private func expect(_ peer: TLSContext.Peer) throws(TLSError) {
        switch peer {
        case .name(let name):
            // A certificate has no period at a name's end, and neither has the name in the first message (RFC 6066, section 3).
            let name = name.hasSuffix(".") ? String(name.dropLast()) : name
            // The name of the certificate's subject is not a host's name.
            SSL_set_hostflags(
                connection, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
            guard !name.isEmpty, SSL_set1_host(connection, name) == 1, btc_priced_name_server(connection, name) == 1
            else { throw .last() }
        case .address(let address):
            guard X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), address) == 1 else { throw .last() }
        }
    }

    /// Called by OpenSSL with a session for a later connection.
    /// - Returns: Whether it is kept. One that follows a resumed session is not, or the certificate would never be checked again.
    func keep(_ session: OpaquePointer) -> Bool {
        guard let peer, SSL_session_reused(connection) == 0 else { return false }
        return tls.keep(session, of: peer)
    }

    // MARK: - Inbound

    package func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { advance(context) }
    }

    package func channelActive(context: ChannelHandlerContext) {
        advance(context)
        context.fireChannelActive()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The rest of what a peer sends after its last message means nothing.
        guard stage != .over else { return }
        unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
            withoutData += bytes.count
            // A memory BIO takes everything.
            _ = BIO_write(incoming, bytes.baseAddress, Int32(bytes.count))
        }
        advance(context)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        // What came may be a part of a record, or a message of TLS itself.
        if wantsRead { context.read() }
        context.fireChannelReadComplete()
    }

    package func channelInactive(context: ChannelHandlerContext) {
        if stage != .over {
            stage = .over
            context.fireErrorCaught(TLSError.truncated)
        }
        context.fireChannelInactive()
    }

    // MARK: - Outbound

    package func read(context: ChannelHandlerContext) {
        wantsRead = true
        context.read()
    }

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard stage == .established else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        let outcome = unwrapOutboundIn(data).withUnsafeReadableBytes { bytes -> Outcome? in
            if bytes.isEmpty { return nil }
            var count = 0
            ERR_clear_error()
            return self.outcome(of: SSL_write_ex(connection, bytes.baseAddress, bytes.count, &count))
        }
        switch outcome {
        case nil, .done: break
        case .failed(let error):
            promise?.fail(error)
            return end(with: error, context)
        case .waits, .ended:
            // The peer has sent a part of a message of TLS itself.
            let error = TLSError.failed(reason: "it can't be written to")
            promise?.fail(error)
            return end(with: error, context)
        }
        context.write(wrapOutboundOut(takeOutgoing(context)), promise: promise)
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode != .input { end(with: nil, closes: false, context) }
        context.close(mode: mode, promise: promise)
    }

    // MARK: - TLS

    /// What an operation of OpenSSL resulted in.
    private enum Outcome {
        case done
        /// It takes more from the peer.
        case waits
        /// The peer has sent its last message.
        case ended
        case failed(TLSError)
    }

    /// Called directly after the operation: the reason is in a queue of the thread.
    private func outcome(of result: Int32) -> Outcome {
        if result == 1 { return .done }
        switch SSL_get_error(connection, result) {
        case SSL_ERROR_WANT_READ: return .waits
        case SSL_ERROR_ZERO_RETURN: return .ended
        default:
            let (error, verified) = (TLSError.last(), SSL_get_verify_result(connection))
            if verified == X509_V_OK { return .failed(error) }
            let refusal = TLSError(verifyResult: verified)
            if case .untrusted = refusal { tls.readAuthorities() }
            return .failed(refusal)
        }
    }

    /// Goes on with what the peer has sent, as far as it is complete, and sends what TLS has to send.
    private func advance(_ context: ChannelHandlerContext) {
        if stage == .shakingHands {
            ERR_clear_error()
            let outcome = outcome(of: SSL_do_handshake(connection))
            guard case .done = outcome else { return settle(outcome, context) }
            stage = .established
            // What the handshake has to send comes before what others write at the event.
            withoutData = 0
            flushOutgoing(context)
            guard stage == .established else { return }
            context.fireUserInboundEventTriggered(Established())
        }
        guard stage == .established else { return }
        let outcome = decrypt()
        if received.readableBytes > 0 {
            (wantsRead, withoutData) = (false, 0)
            context.fireChannelRead(wrapInboundOut(received))
        }
        // A handler may have closed the channel meanwhile.
        if stage == .established { settle(outcome, context) }
    }

    /// Decrypts what has come into ``received``.
    private func decrypt() -> Outcome {
        received.clear(minimumCapacity: BIO_ctrl_pending(incoming))
        while true {
            var outcome = Outcome.done
            received.writeWithUnsafeMutableBytes(minimumWritableBytes: 256) { space in
                var count = 0
                ERR_clear_error()
                outcome = self.outcome(of: SSL_read_ex(connection, space.baseAddress, space.count, &count))
                return count
            }
            guard case .done = outcome else { return outcome }
            // Nothing is left, not even a part of a record.
            if BIO_ctrl_pending(incoming) == 0, SSL_has_pending(connection) == 0 { return .waits }
        }
    }

    private func settle(_ outcome: Outcome, _ context: ChannelHandlerContext) {
        switch outcome {
        case .waits where stage == .established && withoutData > Self.mostWithoutData:
            end(with: .failed(reason: "too many messages without data"), context)
        case .done, .waits: flushOutgoing(context)
        case .ended: end(with: nil, context)
        case .failed(let error): end(with: error, context)
        }
    }

    /// Sends the last message, or the alert that the error has left, and closes the channel.
    private func end(with error: TLSError?, closes: Bool = true, _ context: ChannelHandlerContext) {
        guard stage != .over else { return }
        if stage == .established, error == nil { SSL_shutdown(connection) }
        stage = .over
        flushOutgoing(context)
        if let error { context.fireErrorCaught(error) }
        if closes { context.close(promise: nil) }
    }

    private func flushOutgoing(_ context: ChannelHandlerContext) {
        let bytes = takeOutgoing(context)
        if bytes.readableBytes > 0 { context.writeAndFlush(wrapOutboundOut(bytes), promise: nil) }
    }

    private func takeOutgoing(_ context: ChannelHandlerContext) -> ByteBuffer {
        let count = BIO_ctrl_pending(outgoing)
        guard count > 0 else { return ByteBuffer() }
        var bytes = context.channel.allocator.buffer(capacity: count)
        bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { space in
            Int(BIO_read(outgoing, space.baseAddress, Int32(count)))
        }
        return bytes
    }
}
