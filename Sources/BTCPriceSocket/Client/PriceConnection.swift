package import BTCPriceCore

/// A blocking connection to the daemon's socket.
package struct PriceConnection: ~Copyable {
    private var connection: ClientConnection
    private var clock = DaemonClock()

    /// The longest reply to `GetMetrics`, bytes. All 155 currencies with four sources each take 4 MB.
    package static let longestMetrics = 16 << 20
    /// The longest other reply, bytes. The list of all currencies has 80 kB.
    package static let longestReply = 1 << 20

    /// Connects.
    /// - Parameters:
    ///   - timeout: The timeout for connecting and for each call.
    ///   - longestReply: ``longestReply`` if the daemon is not trusted.
    /// - Throws: ``ClientError/unreachable(path:reason:)`` or ``ClientError/timedOut(path:)``.
    package init(
        path: String, timeout: Duration = .seconds(5), longestReply: Int = longestMetrics
    ) throws(ClientError) {
        connection = try ClientConnection(path: path, timeout: timeout, longestReply: longestReply)
    }

    package var path: String { connection.path }

    /// Requests the price.
    /// - Parameters:
    ///   - policy: Where the price may come from.
    ///   - currency: ISO 4217; `nil` for the daemon's first currency.
    /// - Throws: ``ClientError``; ``ClientError/refused(error:reason:)`` if no source gave a price.
    package mutating func getPrice(
        _ policy: CachePolicy = .localFirst, in currency: String? = nil
    ) throws(ClientError) -> StateMessage {
        try state(in: try call(PriceCall.getPrice(policy, currency).call))
    }

    /// Requests the price, and refuses one that is too old.
    /// - Parameter maxAge: The greatest age; `nil` for any. The daemon judges it. btc-priced 0.1.0 refuses the parameter.
    /// - Throws: As ``getPrice(_:in:)``.
    package mutating func getPrice(
        _ policy: CachePolicy = .localFirst, in currency: String? = nil, maxAge: Duration?
    ) throws(ClientError) -> Result<StateMessage, PriceTooOld> {
        let call = PriceCall.getPrice(policy, currency, maxAge: maxAge?.wholeMilliseconds).call
        let reply = try reply(to: call)
        if reply.error == PriceInterface.tooOld {
            return .failure(
                PriceTooOld(
                    age: reply.parameters["ageMs"]?.millisecondsValue.map { .milliseconds($0) },
                    reason: reply.parameters["reason"]?.stringValue?.printable))
        }
        return .success(try state(in: try reply.printableResult()))
    }

    /// Requests the current and all later states; ``nextState(timeout:newestOnly:interruption:outlet:)`` returns them.
    /// - Parameters:
    ///   - currencies: ISO 4217; `nil` for the daemon's first currency alone.
    ///   - updates: When the daemon sends a state. btc-priced 0.1.0 refuses ``WatchUpdates/changes``.
    ///   - maxAge: The age of a price that ends the watch with ``PriceInterface/tooOld``; `nil` for none. btc-priced 0.1.0 refuses it.
    package mutating func watch(
        _ currencies: [String]? = nil, updates: WatchUpdates = .ticks, maxAge: Duration? = nil
    ) throws(ClientError) {
        clock.sent(at: ObservationTime.now().boottime)
        try connection.send(PriceCall.watchPrice(currencies, updates, maxAge: maxAge?.wholeMilliseconds).call)
    }

    /// The next state of a watch.
    /// - Parameters:
    ///   - newestOnly: Returns only the last of several states that are ready.
    ///   - interruption: A descriptor. When it becomes readable, the wait ends with ``ClientError/interrupted``. -1 for none.
    ///   - outlet: The descriptor that the caller writes to. When its reader is gone, the wait ends with ``ClientError/interrupted``, too.
    ///   - check: Called with the bytes of each message before it is decoded.
    /// - Throws: ``ClientError``. After ``ClientError/interrupted``, which a signal causes too, it can be called again.
    package mutating func nextState(
        timeout: Duration, newestOnly: Bool = false, interruption: Int32 = -1, outlet: Int32 = -1,
        check: (_ bytes: Int) throws(ClientError) -> Void = { _ in }
    ) throws(ClientError) -> StateMessage {
        var message = try connection.message(timeout: timeout, interruption: interruption, outlet: outlet)
        try check(message.count)
        // If the connection has ended, the next call reports it. The limit is for a connection on which messages never end.
        for _ in 0..<(newestOnly ? 1000 : 0) {
            guard let newer = try? connection.message(timeout: .zero) else { break }
            message = newer
            try check(message.count)
        }
        return try state(in: try connection.decoded(message).printableResult())
    }

    package mutating func getStatus() throws(ClientError) -> StatusMessage {
        var status = try call(.getStatus, "status", JSONKind<StatusMessage>.message)
        status.price = dated(status.price)
        status.pegRate = status.pegRate.map(clock.converted)
        return status
    }

    package mutating func listCurrencies() throws(ClientError) -> [CurrencyMessage] {
        var currencies = try call(.listCurrencies, "currencies", .list(JSONKind<CurrencyMessage>.message))
        for index in currencies.indices { currencies[index].price = dated(currencies[index].price) }
        return currencies
    }

    /// Requests the sources' reports, in the configured order.
    /// - Parameter currency: ISO 4217; `nil` for the daemon's first currency.
    package mutating func listSources(_ currency: String? = nil) throws(ClientError) -> [SourceReport] {
        try call(.listSources(currency), "sources", .list(JSONKind<SourceReport>.message))
    }

    package mutating func getMetrics() throws(ClientError) -> [MetricFamily] {
        try call(.getMetrics, "families", .list(JSONKind<MetricFamily>.message))
    }

    /// Requests candles.
    /// - Parameter take: Called for each batch, from the oldest to the newest, with the candles, their currency, and the start of the next
    ///   candle if there are more.
    package mutating func history(
        _ query: HistoryQuery, _ take: ([Candle], String, Timestamp?) -> Void
    ) throws(ClientError) {
        try connection.send(HistoryCall.getHistory(query).call)
        var continues = true
        while continues {
            let reply = try connection.decoded(try connection.message(timeout: connection.timeout))
            continues = reply.continues
            let parameters = try reply.printableResult()
            let (candles, currency, next) = try read { () throws(JSONFieldError) in
                (
                    try parameters.required("candles", .list(JSONKind<Candle>.message)),
                    try parameters.required("currency", .text), try parameters.optional("next", .time)
                )
            }
            take(candles, currency, next)
        }
    }

    /// Requests the price at a moment of the past.
    /// - Parameters:
    ///   - currency: ISO 4217; `nil` for the daemon's first currency.
    ///   - fetch: Whether the daemon requests the minute from an exchange if it does not know it.
    /// - Returns: The price, `nil` if nothing is known; its currency; and why the minute could not be requested.
    package mutating func price(
        at time: Timestamp, in currency: String? = nil, fetch: Bool = false
    ) throws(ClientError) -> (known: PriceAt?, currency: String, notFetched: String?) {
        let reply = try call(HistoryCall.getPriceAt(time, currency, fetch: fetch).call)
        return try read { () throws(JSONFieldError) in
            (
                try PriceAt(json: reply), try reply.required("currency", .text),
                try reply.optional("notFetched", .text)
            )
        }
    }

    /// Requests the prices at some moments.
    /// - Parameters:
    ///   - times: At most ``HistoryCall/mostTimes``.
    ///   - fetch: Whether one page of an exchange is requested for those of which too little is known.
    /// - Returns: What is known of each, the currency, and the wait before the rest may be requested, milliseconds; `nil` if nothing is left.
    package mutating func prices(
        at times: [Timestamp], in currency: String? = nil, fetch: Bool = false
    ) throws(ClientError) -> (known: [MomentMessage], currency: String, wait: Int64?) {
        let reply = try call(HistoryCall.getPricesAt(times, currency, fetch: fetch).call)
        return try read { () throws(JSONFieldError) in
            let known = try reply.required("prices", .list(JSONKind<MomentMessage>.moment))
            // A reply without one of them would never end a loop over what is left.
            guard known.map(\.time) == times else { throw JSONFieldError(field: "prices") }
            return (
                known, try reply.required("currency", .text),
                try reply.optional("waitMs", .milliseconds.only { $0 >= 0 })
            )
        }
    }

    /// Requests what went on.
    /// - Returns: The events, by their start; and the `after` of the next call, `nil` if these are all.
    package mutating func eventPage(_ query: EventQuery) throws(ClientError) -> ([EventMessage], next: Timestamp?) {
        let reply = try call(HistoryCall.getEvents(query).call)
        return try read { () throws(JSONFieldError) in
            let next = try reply.optional("next", .time)
            // Otherwise the pages would never end.
            if let next, next <= query.after ?? Timestamp(milliseconds: -1) { throw JSONFieldError(field: "next") }
            return (try reply.required("events", .list(JSONKind<EventMessage>.message)), next)
        }
    }

    /// Requests all of what went on, page by page.
    /// - Parameter most: The most pages; then the rest is left out.
    package mutating func events(_ query: EventQuery, most: Int = 10_000) throws(ClientError) -> [EventMessage] {
        var (all, query) = ([EventMessage](), query)
        for _ in 0..<most {
            let (events, next) = try eventPage(query)
            all += events
            query.after = next
            if next == nil { break }
        }
        return all
    }

    /// Requests the last 24 hours.
    /// - Parameter currency: ISO 4217; `nil` for the daemon's first currency.
    /// - Returns: `nil` if no price of the last 24 hours is known.
    package mutating func day(of currency: String? = nil) throws(ClientError) -> PriceDay? {
        let reply = try call(HistoryCall.getDay(currency).call)
        return try read { () throws(JSONFieldError) in
            try reply.optional("day", JSONKind<PriceDay>.message)
        }
    }

    /// Pauses the ticks.
    /// - Throws: ``ClientError``; ``ClientError/refused(error:reason:)`` for a user without permission.
    package mutating func pause() throws(ClientError) {
        _ = try call(PriceCall.pause.call)
    }

    /// Resumes the ticks. Errors are as for ``pause()``.
    package mutating func resume() throws(ClientError) {
        _ = try call(PriceCall.resume.call)
    }

    /// Ends the cooldowns that no exchange has demanded.
    /// - Parameter source: The source whose cooldown ends; `nil` for all.
    /// - Returns: The sources that get requests again, and those whose cooldown an exchange has demanded.
    /// - Throws: ``ClientError``; ``ClientError/refused(error:reason:)`` for a user without permission or an unknown source.
    package mutating func retry(_ source: String?) throws(ClientError) -> RetryMessage {
        let reply = try call(PriceCall.retry(source).call)
        return try read { () throws(JSONFieldError) in try RetryMessage(json: reply) }
    }

    /// Switches a source off, or on again.
    /// - Returns: The currencies whose sources are all switched off.
    /// - Throws: As ``retry(_:)``.
    package mutating func setSource(_ source: String, isOn: Bool) throws(ClientError) -> SetSourceMessage {
        let reply = try call(PriceCall.setSource(source, isOn: isOn).call)
        return try read { () throws(JSONFieldError) in try SetSourceMessage(json: reply) }
    }

    private mutating func call(_ call: Call) throws(ClientError) -> JSONValue {
        try reply(to: call).printableResult()
    }

    private mutating func reply(to call: Call) throws(ClientError) -> Reply {
        clock.sent(at: ObservationTime.now().boottime)
        try connection.send(call)
        return try connection.decoded(try connection.message(timeout: connection.timeout))
    }

    private mutating func state(in parameters: JSONValue) throws(ClientError) -> StateMessage {
        dated(
            try read { () throws(JSONFieldError) in
                try parameters.required("state", JSONKind<StateMessage>.message)
            })
    }

    /// A message that has just arrived, with its times on this machine's clock.
    private mutating func dated(_ message: StateMessage) -> StateMessage {
        clock.received(message, at: ObservationTime.now().boottime)
        return clock.converted(message)
    }

    /// The value of a reply's field.
    private mutating func call<Value>(
        _ call: PriceCall, _ field: StaticString, _ kind: JSONKind<Value>
    ) throws(ClientError) -> Value {
        let reply = try self.call(call.call)
        return try read { () throws(JSONFieldError) in try reply.required(field, kind) }
    }

    private func read<Message>(_ message: () throws(JSONFieldError) -> Message) throws(ClientError) -> Message {
        do {
            return try message()
        } catch {
            throw .unintelligible(path: path, reason: error.description)
        }
    }
}

/// A price that is older than the caller accepts.
package struct PriceTooOld: Error, Sendable, Hashable {
    /// How old it is; `nil` if that is not known.
    package let age: Duration?
    /// Why there is no newer one, in one line; `nil` if the last tick had a price.
    package let reason: String?
}

/// Converts times of the daemon's boot clock to that of the reader, which is another clock if one of them is in a container with a time
/// namespace or on another machine. A pure value.
struct DaemonClock {
    /// A difference up to this, in milliseconds, is the delay of a reply.
    private static let tolerance: Int64 = 1000

    /// How far the reader's clock is ahead, milliseconds.
    private var ahead: Int64 = 0
    /// When the call was sent whose first reply shows the difference; `nil` after that reply.
    private var sentAt: BootTime?

    /// Records that a call is sent.
    mutating func sent(at boottime: BootTime) { sentAt = boottime }

    /// Measures the difference if this is the first reply to a call. The daemon made it between the call and the arrival; if its clock was
    /// not between these times, it is another clock. A price is then shown as older by at most the duration of the call.
    mutating func received(_ message: StateMessage, at boottime: BootTime) {
        guard let sentAt = sentAt.take(), let theirs = message.boottime else { return }
        let isSame = theirs >= sentAt - Self.tolerance && theirs <= boottime + Self.tolerance
        ahead = isSame ? 0 : sentAt - theirs
    }

    /// The message with its times on the reader's clock.
    func converted(_ message: StateMessage) -> StateMessage {
        var message = message
        message.boottime? += ahead
        message.state.price?.observedBoottime? += ahead
        message.state.price?.conversion?.measuredBoottime += ahead
        return message
    }

    func converted(_ rate: PegRate) -> PegRate {
        var rate = rate
        rate.measuredBoottime += ahead
        return rate
    }
}
