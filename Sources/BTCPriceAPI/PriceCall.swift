public import BTCPriceCore
public import Varlink

/// A call to `io.btcpriced.Price`, read and checked.
public enum PriceCall: Sendable, Hashable {
    /// `GetPrice`
    case getPrice(CachePolicy)
    /// `WatchPrice`
    case watchPrice
    /// `GetStatus`
    case getStatus
    /// `ListSources`
    case listSources
    /// `Pause`
    case pause
    /// `Resume`
    case resume
    /// `Retry`
    case retry(String?)

    /// Whether it changes the daemon: not for everybody.
    public var changesTheDaemon: Bool {
        switch self {
        case .pause, .resume, .retry: true
        case .getPrice, .watchPrice, .getStatus, .listSources: false
        }
    }

    /// Reads a call to the interface.
    /// - Parameters:
    ///   - method: The method's own name.
    ///   - call: The call.
    /// - Returns: The call, or the error to reply with.
    public static func read(_ method: some StringProtocol, _ call: Call) -> Result<PriceCall, Refusal> {
        if call.upgrade { return .failure(Refusal(.methodNotImplemented(call.method))) }
        switch method {
        case "GetPrice":
            var policy = CachePolicy.localFirst
            for member in call.parameters.members {
                switch (member.name, member.value) {
                case ("cachePolicy", .null): break
                case ("cachePolicy", .string(let name)):
                    guard let named = CachePolicy(rawValue: name) else { fallthrough }
                    policy = named
                default: return .failure(Refusal(.invalidParameter(member.name)))
                }
            }
            return .success(.getPrice(policy))
        case "WatchPrice":
            return call.more ? bare(.watchPrice, call) : .failure(Refusal(.expectedMore))
        case "GetStatus": return bare(.getStatus, call)
        case "ListSources": return bare(.listSources, call)
        case "Pause": return bare(.pause, call)
        case "Resume": return bare(.resume, call)
        case "Retry":
            var source: String?
            for member in call.parameters.members {
                switch (member.name, member.value) {
                case ("source", .null): break
                case ("source", .string(let name)): source = name
                default: return .failure(Refusal(.invalidParameter(member.name)))
                }
            }
            return .success(.retry(source))
        default:
            return .failure(Refusal(.methodNotFound(call.method)))
        }
    }

    /// A call that takes no parameters.
    private static func bare(_ read: PriceCall, _ call: Call) -> Result<PriceCall, Refusal> {
        if let unknown = call.parameters.members.first { return .failure(Refusal(.invalidParameter(unknown.name))) }
        return .success(read)
    }

    /// The call as a message.
    public var call: Call {
        switch self {
        case .getPrice(.localFirst): Call(method: PriceInterface.getPrice)
        case .getPrice(let policy):
            Call(method: PriceInterface.getPrice, parameters: ["cachePolicy": .string(policy.rawValue)])
        case .watchPrice: Call(method: PriceInterface.watchPrice, more: true)
        case .getStatus: Call(method: PriceInterface.getStatus)
        case .listSources: Call(method: PriceInterface.listSources)
        case .pause: Call(method: PriceInterface.pause)
        case .resume: Call(method: PriceInterface.resume)
        case .retry(let source):
            Call(method: PriceInterface.retry, parameters: source.map { ["source": .string($0)] } ?? [:])
        }
    }

    /// The bytes of the commonest call, for the held price, its NUL included: what ``encoded`` gives and a server may know it by.
    @inlinable public static var commonest: StaticString { "{\"method\":\"io.btcpriced.Price.GetPrice\"}\0" }

    /// The call's bytes, its NUL included.
    public var encoded: [UInt8] {
        guard self == .getPrice(.localFirst) else { return call.encoded() }
        return Self.commonest.withUTF8Buffer { Array($0) }
    }

    /// A call that is answered with an error.
    public struct Refusal: Error, Sendable, Hashable {
        /// The error reply.
        public let reply: Reply

        init(_ reply: Reply) {
            self.reply = reply
        }
    }
}

extension Reply {
    /// The reply to `GetPrice` and `WatchPrice`.
    public static func state(_ message: StateMessage, continues: Bool = false) -> Reply {
        Reply(parameters: ["state": .object(message.json)], continues: continues)
    }

    /// The reply to `GetStatus`.
    public static func status(_ message: StatusMessage) -> Reply {
        Reply(parameters: ["status": .object(message.json)])
    }

    /// The reply to `ListSources`.
    public static func sources(_ reports: [SourceReport]) -> Reply {
        Reply(parameters: ["sources": .array(reports.map { .object($0.json) })])
    }

    /// The reply to `Retry`.
    public static func retried(_ retried: [String], kept: [PassedOver], now: ObservationTime) -> Reply {
        Reply(parameters: [
            "retried": .array(retried.map { .string($0) }),
            "kept": .array(
                kept.compactMap { kept in
                    guard case .rests(let rest) = kept.reason else { return nil }
                    return .object([
                        "source": .string(kept.source),
                        "until": .integer(now.wallTime(of: rest.until.boottime).milliseconds),
                        "reason": .string(rest.reason.description),
                    ])
                }),
        ])
    }

    /// `io.btcpriced.Price.UnknownSource`
    public static func unknownSource(_ source: String, known: [String]) -> Reply {
        Reply(
            parameters: ["source": .string(source), "known": .array(known.map { .string($0) })],
            error: PriceInterface.unknownSource)
    }

    /// `io.btcpriced.Price.Busy`
    public static func busy(limit: Int) -> Reply {
        Reply(parameters: ["limit": .integer(Int64(limit))], error: PriceInterface.busy)
    }

    /// `io.btcpriced.Price.FetchFailed`
    public static func fetchFailed(_ failure: FetchFailure) -> Reply {
        Reply(parameters: ["reason": .string(failure.description)], error: PriceInterface.fetchFailed)
    }
}
