package import BTCPriceCore

/// A call to `io.btcpriced.History`, read and checked.
package enum HistoryCall: Sendable, Hashable {
    case getHistory(HistoryQuery)
    /// `GetPriceAt`: in this currency; `nil` for the first one. With `fetch`, a minute that is not known is requested from an exchange.
    case getPriceAt(Timestamp, String? = nil, fetch: Bool = false)
    /// `GetPricesAt`: at most ``mostTimes`` moments. With `fetch`, one page of an exchange is requested.
    case getPricesAt([Timestamp], String? = nil, fetch: Bool = false)
    /// `GetDay`: of this currency; `nil` for the first one.
    case getDay(String? = nil)
    case getEvents(EventQuery)

    /// The maximum number of moments in one call: they fit in a message.
    package static let mostTimes = 400

    /// The currency that the call names; `nil` for the first one.
    package var currency: String? {
        switch self {
        case .getHistory(let query): query.currency
        case .getEvents(let query): query.currency
        case .getPriceAt(_, let currency, _), .getPricesAt(_, let currency, _), .getDay(let currency): currency
        }
    }

    package var call: Call { PriceCall.history(self).call }
}

/// The parameters of `GetHistory`.
package struct HistoryQuery: Sendable, Hashable {
    /// The maximum number of candles in one reply.
    package static let batch = 100

    /// ISO 4217; `nil` for the first currency.
    package var currency: String?
    /// `nil` for 24 hours before ``to``.
    package var from: Timestamp?
    /// The end; `nil` means the present time.
    package var to: Timestamp?
    package var step: Candle.Step
    /// The maximum number of candles; `nil` for all.
    package var limit: Int?
    /// Whether the daemon may send more than one reply.
    package var more: Bool

    package init(
        currency: String? = nil, from: Timestamp? = nil, to: Timestamp? = nil, step: Candle.Step = .minute,
        limit: Int? = nil, more: Bool = false
    ) {
        self.currency = currency
        self.from = from
        self.to = to
        self.step = step
        self.limit = limit
        self.more = more
    }
}

/// The parameters of `GetEvents`.
package struct EventQuery: Sendable, Hashable {
    /// The maximum number of events in one reply. Those that began in one second are not parted.
    package static let batch = 100

    /// ISO 4217; `nil` for all currencies.
    package var currency: String?
    /// `nil` for 24 hours before ``to``.
    package var from: Timestamp?
    /// The end; `nil` means the present time.
    package var to: Timestamp?
    /// Only those that began at it or later; `nil` for all. It is the `next` of the reply before.
    package var after: Timestamp?

    package init(
        currency: String? = nil, from: Timestamp? = nil, to: Timestamp? = nil, after: Timestamp? = nil
    ) {
        (self.currency, self.from, self.to, self.after) = (currency, from, to, after)
    }
}

extension Reply {
    /// - Parameter next: The start of the next event; `nil` if there are no more.
    package static func events(_ events: [EventMessage], next: Timestamp?) -> Reply {
        Reply(parameters: [
            "events": .array(events.map { .object($0.json) }),
            "next": next.map { .integer($0.milliseconds) } ?? .null,
        ])
    }

    /// - Parameter next: The start of the next candle; `nil` if there are no more.
    package static func history(
        _ candles: [Candle], of currency: String, _ step: Candle.Step, next: Timestamp?
    ) -> Reply {
        Reply(parameters: [
            "currency": .string(currency), "step": .string(step.rawValue),
            "candles": .array(candles.map { .object($0.json) }),
            "next": next.map { .integer($0.milliseconds) } ?? .null,
        ])
    }

    /// - Parameter reason: Why the minute could not be requested.
    package static func priceAt(_ known: PriceAt?, in currency: String, notFetched reason: String? = nil) -> Reply {
        var parameters: JSONObject = ["currency": .string(currency)]
        parameters.append(known, notFetched: reason)
        return Reply(parameters: parameters)
    }

    /// - Parameter wait: After what time the moments may be requested that have not been, milliseconds; `nil` if there are none.
    package static func pricesAt(_ prices: [MomentMessage], in currency: String, wait: Int64?) -> Reply {
        Reply(parameters: [
            "currency": .string(currency), "prices": JSONKind<[MomentMessage]>.list(.moment).write(prices),
            "waitMs": wait.map { .integer($0) } ?? .null,
        ])
    }

    package static func day(_ day: PriceDay?, of currency: String) -> Reply {
        Reply(parameters: ["currency": .string(currency), "day": day.map { .object($0.json) } ?? .null])
    }

    package static func noSuchCurrency(_ currency: String, kept: [Currency]) -> Reply {
        Reply(
            parameters: ["currency": .string(currency.shortened), "known": .array(kept.map { .string($0.rawValue) })],
            error: HistoryInterface.unknownCurrency)
    }

    package static let historyDisabled = Reply(error: HistoryInterface.disabled)

    package static func historyUnavailable(_ reason: String) -> Reply {
        Reply(parameters: ["reason": .string(reason)], error: HistoryInterface.unavailable)
    }
}
