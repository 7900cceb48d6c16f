package import BTCPriceCore
package import Varlink

/// A blocking connection to the daemon's socket.
package struct PriceConnection: ~Copyable {
    private var connection: ClientConnection

    /// Connects.
    /// - Parameters:
    ///   - path: The socket's file.
    ///   - timeout: How long a daemon may leave us waiting, at the connection and at each call.
    /// - Throws: ``ClientError/unreachable(path:reason:)`` or ``ClientError/timedOut(path:)``.
    package init(path: String, timeout: Duration = .seconds(5)) throws(ClientError) {
        connection = try ClientConnection(path: path, timeout: timeout)
    }

    /// The socket's file.
    package var path: String { connection.path }

    /// Asks for the price.
    /// - Parameter policy: Where the answer may come from.
    /// - Throws: ``ClientError``; ``ClientError/refused(error:reason:)`` where no source gave a price.
    package mutating func getPrice(_ policy: CachePolicy = .localFirst) throws(ClientError) -> StateMessage {
        try state(in: try call(PriceCall.getPrice(policy).call))
    }

    /// Asks for the current state and every one after it; ``nextState(timeout:newestOnly:interruption:outlet:)`` gives them.
    package mutating func watch() throws(ClientError) {
        try connection.send(PriceCall.watchPrice.call)
    }

    /// The next state of a watch.
    /// - Parameters:
    ///   - timeout: How long to wait for it.
    ///   - newestOnly: Of several that lie ready, only the last.
    ///   - interruption: A descriptor; when it becomes readable, the wait ends with ``ClientError/interrupted``. -1 for none.
    ///   - outlet: A descriptor that is written to; when its reader is gone, the wait ends with ``ClientError/interrupted``, too.
    /// - Throws: ``ClientError``. After ``ClientError/interrupted``, which a signal brings too, it can be called again.
    package mutating func nextState(
        timeout: Duration, newestOnly: Bool = false, interruption: Int32 = -1, outlet: Int32 = -1
    ) throws(ClientError) -> StateMessage {
        var message = try connection.message(timeout: timeout, interruption: interruption, outlet: outlet)
        // What comes after an end of the connection is for the next call to find.
        while newestOnly, let newer = try? connection.message(timeout: .zero) { message = newer }
        return try state(in: try connection.decoded(message).printableResult())
    }

    /// Asks how the daemon is.
    package mutating func getStatus() throws(ClientError) -> StatusMessage {
        let reply = try call(PriceCall.getStatus.call)
        return try read { () throws(JSONFieldError) in
            try StatusMessage(json: try reply.required("status", \.objectValue))
        }
    }

    /// Asks how the sources are, in the configured order.
    package mutating func listSources() throws(ClientError) -> [SourceReport] {
        let reply = try call(PriceCall.listSources.call)
        return try read { () throws(JSONFieldError) in
            try reply.list("sources") { (source) throws(JSONFieldError) in try SourceReport(json: source) }
        }
    }

    /// Halts the ticks.
    /// - Throws: ``ClientError``; ``ClientError/refused(error:reason:)`` for a user who may not.
    package mutating func pause() throws(ClientError) {
        _ = try call(PriceCall.pause.call)
    }

    /// Has the ticks run again. As ``pause()``.
    package mutating func resume() throws(ClientError) {
        _ = try call(PriceCall.resume.call)
    }

    /// Has the cooldowns forgotten that no exchange has asked for.
    /// - Parameter source: Only of this one; `nil` for all.
    /// - Returns: The sources that are asked again, and those that an exchange has told to stay away.
    /// - Throws: ``ClientError``; ``ClientError/refused(error:reason:)`` for a user who may not, and for a source that is not configured.
    package mutating func retry(_ source: String?) throws(ClientError) -> RetryResult {
        let reply = try call(PriceCall.retry(source).call)
        return try read { () throws(JSONFieldError) in
            RetryResult(
                retried: try reply.texts("retried"),
                kept: try reply.list("kept") { (kept) throws(JSONFieldError) in
                    RetryResult.Cooldown(
                        source: try kept.required("source", \.stringValue),
                        until: try kept.required("until", \.timestampValue),
                        reason: try kept.required("reason", \.stringValue))
                }, json: reply)
        }
    }

    /// What came of a ``retry(_:)``.
    package struct RetryResult: Sendable {
        /// A source that goes on resting.
        package struct Cooldown: Sendable {
            /// Its name.
            package let source: String
            /// Until when.
            package let until: Timestamp
            /// Why, in one line.
            package let reason: String
        }

        /// The sources that are asked again.
        package let retried: [String]
        /// Those that an exchange has told to stay away.
        package let kept: [Cooldown]
        /// The reply as it came.
        package let json: JSONValue
    }

    private mutating func call(_ call: Call) throws(ClientError) -> JSONValue {
        try connection.send(call)
        return try connection.reply(timeout: connection.timeout).printableResult()
    }

    private func state(in parameters: JSONValue) throws(ClientError) -> StateMessage {
        try read { () throws(JSONFieldError) in
            try StateMessage(json: try parameters.required("state", \.objectValue))
        }
    }

    private func read<Message>(_ message: () throws(JSONFieldError) -> Message) throws(ClientError) -> Message {
        do {
            return try message()
        } catch {
            throw .unintelligible(path: path, reason: error.description)
        }
    }
}
