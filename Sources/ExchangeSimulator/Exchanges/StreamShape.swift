import BTCPriceSocket

/// The messages that the stream of a venue sends and understands, as on the real exchange.
struct StreamShape {
    /// A client's message.
    enum Request: Equatable {
        case subscribe(Subscription)
        /// A ping; Kraken's has a request number, which the pong repeats.
        case ping(Int?)
        /// A message that the venue does not understand, with its error message.
        case invalid(reply: String)
    }

    struct Subscription: Equatable {
        /// The names of markets, or of streams that belong to a market.
        var names: [String]
        /// The names of channels; empty if the names contain the channel.
        var channels: [String] = []
        /// The number of the message.
        var id: Int?
        var wantsSnapshot = true
    }

    /// The pairs whose trades and heartbeats a connection gets.
    struct Held: Equatable {
        var trades: [Pair] = []
        var heartbeats: [Pair] = []
    }

    let venue: VenueName

    /// The subscription in the address of a stream; `nil` if the venue has no stream at this address.
    func subscription(uri: String) -> Subscription? {
        let path = uri.prefix { $0 != "?" }
        switch venue {
        case .binance:
            let text: Substring
            if path == "/stream" {
                text =
                    uri.dropFirst(path.count + 1).split(separator: "&").first { $0.hasPrefix("streams=") }?
                    .dropFirst(8) ?? ""
            } else if path == "/ws" || path.hasPrefix("/ws/") {
                text = path.dropFirst(4)
            } else {
                return nil
            }
            let plain = text.replacing("%40", with: "@").replacing("%2F", with: "/")
            return Subscription(names: plain.split(separator: "/").map(String.init))
        case .coinbase, .bitstamp: return path == "/" ? Subscription(names: []) : nil
        case .kraken: return path == "/v2" ? Subscription(names: []) : nil
        case .cryptocompare: return nil
        }
    }

    /// The pairs of a subscription that the venue knows.
    func pairs(of subscription: Subscription) -> [Pair] {
        subscription.names.compactMap { name in Pair.known(to: venue).first { self.name(of: $0) == name } }
    }

    /// The name of the market, or of its stream.
    func name(of pair: Pair) -> String {
        let quote = pair.quote.lowercased()
        return switch venue {
        case .binance: "btc\(quote)@aggTrade"
        case .coinbase: "BTC-\(pair.quote)"
        case .bitstamp: "live_trades_btc\(quote)"
        case .kraken, .cryptocompare: pair.rawValue
        }
    }

    // MARK: Messages from a client

    /// Parses a text of the client.
    func request(_ text: String) -> Request {
        let message = (try? JSONValue(parsing: Array(text.utf8)[...]))?.objectValue
        switch venue {
        case .binance:
            guard let message else {
                return .invalid(
                    reply: #"{"error":{"code":3,"msg":"Invalid JSON: expected value at line 1 column 1"}}"#)
            }
            let (method, id) = (message.text("method"), message.number("id"))
            guard method == "SUBSCRIBE" else {
                return .invalid(
                    reply:
                        #"{"error":{"code":2,"msg":"Invalid request: unknown variant `\#(method ?? "")`"},"id":\#(id ?? 0)}"#
                )
            }
            return .subscribe(Subscription(names: message.texts("params"), id: id))
        case .coinbase, .cryptocompare:
            guard let message, message.text("type") == "subscribe" else {
                return .invalid(reply: #"{"type":"error","message":"Malformed JSON"}"#)
            }
            return .subscribe(Subscription(names: message.texts("product_ids"), channels: message.texts("channels")))
        case .kraken:
            let parameters = message?["params"]
            switch message?.text("method") {
            case "ping": return .ping(message?.number("req_id"))
            case "subscribe":
                return .subscribe(
                    Subscription(
                        names: parameters?.texts("symbol") ?? [], channels: [parameters?.text("channel") ?? ""],
                        id: message?.number("req_id"), wantsSnapshot: parameters?["snapshot"]?.boolValue ?? true))
            default: return .invalid(reply: #"{"error":"Malformed request","success":false}"#)
            }
        case .bitstamp:
            guard let message else {
                return .invalid(reply: Self.bitstampError("Incorrect JSON format."))
            }
            switch (message.text("event"), message["data"]?.text("channel")) {
            case ("bts:heartbeat", _): return .ping(nil)
            case ("bts:subscribe", let channel?): return .subscribe(Subscription(names: [channel]))
            default: return .invalid(reply: Self.bitstampError("Bad subscription string."))
            }
        }
    }

    /// The reply to a ping message.
    func pong(_ id: Int?, now: Int64) -> String {
        venue == .bitstamp
            ? #"{"event":"bts:heartbeat","channel":"","data":{"status":"success"}}"#
            : #"{"method":"pong",\#(Self.krakenID(id))\#(Self.krakenTimes(now))}"#
    }

    /// The replies to a subscription, and the pairs that it adds.
    /// - Parameters:
    ///   - held: The current subscriptions.
    ///   - isRefused: Whether the venue refuses known pairs too.
    ///   - isIgnored: Whether nothing is subscribed.
    func reply(
        to subscription: Subscription, held: Held, isRefused: Bool = false, isIgnored: Bool = false, now: Int64 = 0
    ) -> (texts: [String], added: Held) {
        let known = isRefused ? [] : pairs(of: subscription)
        var added = Held()
        var texts: [String] = []
        switch venue {
        case .binance:
            let id = subscription.id.map { "\($0)" } ?? "null"
            if isRefused { return ([#"{"error":{"code":2,"msg":"Invalid request"},"id":\#(id)}"#], added) }
            added.trades = known
            texts = [#"{"result":null,"id":\#(id)}"#]
        case .coinbase, .cryptocompare:
            let names = known.map(name)
            for name in subscription.names where !names.contains(name) {
                texts.append(Self.coinbaseError("\(name) is not a valid product"))
            }
            for channel in subscription.channels where channel != "ticker" && channel != "heartbeat" {
                texts.append(
                    Self.coinbaseError(
                        ["full", "level2", "level3"].contains(channel)
                            ? "level2, level3, and full channels now require authentication."
                            : "\(channel) is not a valid channel"))
            }
            if subscription.channels.contains("ticker") { added.trades = known }
            if subscription.channels.contains("heartbeat") { added.heartbeats = known }
            let all = isIgnored ? Held() : held.adding(added)
            if isIgnored || !known.isEmpty { texts.append(coinbaseAcknowledgement(of: all)) }
        case .kraken:
            let channel = subscription.channels.first ?? ""
            let (id, times) = (Self.krakenID(subscription.id), Self.krakenTimes(now))
            if channel == "heartbeat" {
                texts = [#"{"method":"subscribe",\#(id)"result":{"channel":"heartbeat"},"success":true,\#(times)}"#]
            } else if channel != "ticker" {
                texts = [#"{"error":"Channel not supported","method":"subscribe",\#(id)"success":false,\#(times)}"#]
            } else {
                added.trades = known
                texts = subscription.names.map { name in
                    known.contains { $0.rawValue == name }
                        ? #"{"method":"subscribe",\#(id)"result":{"channel":"ticker","event_trigger":"trades","snapshot":\#(subscription.wantsSnapshot),"symbol":"\#(name)"},"success":true,\#(times)}"#
                        : #"{"error":"Currency pair not supported \#(name)","method":"subscribe",\#(id)"success":false,"symbol":"\#(name)",\#(times)}"#
                }
            }
        case .bitstamp:
            // Bitstamp acknowledges an unknown pair, but sends no data for it.
            let name = subscription.names.first ?? ""
            let isValid = name.contains("_") && name.allSatisfy { $0.isLowercase || $0.isNumber || "_-".contains($0) }
            if isRefused || !isValid { return ([Self.bitstampError("Invalid channel provided.")], added) }
            added.trades = known
            texts = [#"{"event":"bts:subscription_succeeded","channel":"\#(name)","data":{}}"#]
        }
        return (texts, isIgnored ? Held() : added)
    }

    // MARK: Messages from the venue

    /// The message about a trade.
    /// - Parameters:
    ///   - price: In the pair's currency, decimal text.
    ///   - isSnapshot: Whether it is the first message after a subscription.
    ///   - isWrapped: Whether the message is wrapped with the stream's name. Only Binance's messages can be.
    func message(
        of trade: Trade, in pair: Pair, price: String, isSnapshot: Bool = false, isWrapped: Bool = true
    ) -> String {
        func plus(_ cents: Int64) -> String { PriceSeries.price(price, plus: cents) }
        func part(_ factor: Double) -> String { PriceSeries.price(price, times: factor) }
        switch venue {
        case .binance:
            let milliseconds = trade.nanoseconds / 1_000_000
            let data =
                #"{"e":"aggTrade","E":\#(milliseconds + 1),"s":"BTC\#(pair.quote)","a":\#(3_821_253_461 + trade.number),"p":"\#(Self.padded(price))","q":"0.00068000","f":\#(5_808_851_364 + trade.number),"l":\#(5_808_851_364 + trade.number),"T":\#(milliseconds),"m":true,"M":true}"#
            return isWrapped ? #"{"stream":"\#(name(of: pair))","data":\#(data)}"# : data
        case .coinbase, .cryptocompare:
            return
                #"{"type":"ticker","sequence":\#(137_212_619_516 + trade.number * 20),"product_id":"\#(name(of: pair))","price":"\#(price)","open_24h":"\#(part(0.99))","volume_24h":"1836.96781750","low_24h":"\#(part(0.98))","high_24h":"\#(part(1.02))","volume_30d":"175984.53012145","best_bid":"\#(plus(-1))","best_bid_size":"0.19921154","best_ask":"\#(plus(2))","best_ask_size":"0.05223077","side":"sell","time":"\#(VenueShape.iso(trade.nanoseconds, digits: 6))","trade_id":\#(trade.coinbaseID),"last_size":"0.00782662"}"#
        case .kraken:
            return
                #"{"channel":"ticker","type":"\#(isSnapshot ? "snapshot" : "update")","data":[{"symbol":"\#(pair.rawValue)","bid":\#(plus(-1)),"bid_qty":0.56251979,"ask":\#(plus(2)),"ask_qty":0.00044780,"last":\#(price),"volume":3156.84782110,"vwap":\#(part(1.01)),"low":\#(part(0.98)),"high":\#(part(1.02)),"change":-429.3,"change_pct":-0.51,"trades":135262,"timestamp":"\#(VenueShape.iso(trade.nanoseconds, digits: 6))"}]}"#
        case .bitstamp:
            return
                #"{"data":{"id":\#(650_885_871 + trade.number),"timestamp":"\#(trade.nanoseconds / 1_000_000_000)","amount":0.00274133,"amount_str":"0.00274133","price":\#(price),"price_str":"\#(price)","type":0,"microtimestamp":"\#(trade.nanoseconds / 1_000_000)000","buy_order_id":2058521371389952,"sell_order_id":2058521418514434},"channel":"\#(name(of: pair))","event":"trade"}"#
        }
    }

    /// The heartbeat that the venue sends each second; `nil` for none.
    /// - Parameter trade: The newest trade that the stream knows.
    func heartbeat(of pair: Pair?, trade: Trade, now: Int64) -> String? {
        switch (venue, pair) {
        case (.coinbase, let pair?):
            #"{"type":"heartbeat","last_trade_id":\#(trade.coinbaseID),"product_id":"\#(name(of: pair))","sequence":\#(137_212_619_517 + trade.number * 20),"time":"\#(VenueShape.iso(now, digits: 6))"}"#
        case (.kraken, nil): #"{"channel":"heartbeat"}"#
        default: nil
        }
    }

    /// Kraken's message about its engine.
    func status(isInMaintenance: Bool) -> String {
        #"{"channel":"status","type":"update","data":[{"version":"2.0.10","system":"\#(isInMaintenance ? "maintenance" : "online")","api_version":"v2","connection_id":18125794168470749634,"upcoming_maintenance":[],"emergency":[]}]}"#
    }

    private func coinbaseAcknowledgement(of held: Held) -> String {
        let channels = [("ticker", held.trades), ("heartbeat", held.heartbeats)].filter { !$0.1.isEmpty }
            .map { channel, pairs in
                let names = pairs.map { #""\#(name(of: $0))""# }.joined(separator: ",")
                return #"{"name":"\#(channel)","product_ids":[\#(names)],"account_ids":null}"#
            }
        return #"{"type":"subscriptions","channels":[\#(channels.joined(separator: ","))]}"#
    }

    private static func coinbaseError(_ reason: String) -> String {
        #"{"type":"error","message":"Failed to subscribe","reason":"\#(reason)"}"#
    }

    private static func bitstampError(_ message: String) -> String {
        #"{"event":"bts:error","channel":"","data":{"code":null,"message":"\#(message)"}}"#
    }

    private static func krakenID(_ id: Int?) -> String { id.map { #""req_id":\#($0),"# } ?? "" }

    private static func krakenTimes(_ now: Int64) -> String {
        #""time_in":"\#(VenueShape.iso(now, digits: 6))","time_out":"\#(VenueShape.iso(now + 37_000, digits: 6))""#
    }

    /// The price with eight decimals.
    private static func padded(_ price: String) -> String {
        let fraction = price.drop { $0 != "." }.dropFirst()
        return (fraction.isEmpty ? price.filter { $0 != "." } + "." : price)
            + String(repeating: "0", count: max(0, 8 - fraction.count))
    }
}

extension JSONValue {
    fileprivate func texts(_ name: StaticString) -> [String] { self[name]?.arrayValue?.compactMap(\.stringValue) ?? [] }

    fileprivate func text(_ name: StaticString) -> String? { self[name]?.stringValue }

    fileprivate func number(_ name: StaticString) -> Int? { self[name]?.integerValue.map(Int.init) }
}

extension StreamShape.Held {
    func adding(_ others: Self) -> Self {
        Self(
            trades: trades + others.trades.filter { !trades.contains($0) },
            heartbeats: heartbeats + others.heartbeats.filter { !heartbeats.contains($0) })
    }
}
