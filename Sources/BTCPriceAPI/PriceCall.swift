package import BTCPriceCore
package import Varlink

/// A call to `io.btcpriced.Price`, read and checked.
package enum PriceCall: Sendable, Hashable {
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

    /// Whether it changes the daemon, which only administrators may do.
    package var changesTheDaemon: Bool {
        switch self {
        case .pause, .resume, .retry: true
        case .getPrice, .watchPrice, .getStatus, .listSources: false
        }
    }

    /// Reads a call to the interface.
    /// - Returns: The call, or the error to reply with; `nil` if the interface has no such method.
    package static func read(_ call: Call) -> Result<PriceCall, Refusal>? {
        let read = readMethod(call)
        return call.upgrade && read != nil ? .failure(Refusal(.methodNotImplemented(call.method))) : read
    }

    private static func readMethod(_ call: Call) -> Result<PriceCall, Refusal>? {
        switch call.method {
        case PriceInterface.getPrice:
            var policy = CachePolicy.localFirst
            for (name, value) in call.parameters.members {
                guard name.isString("cachePolicy"), value.isNull || value.rawString != nil else {
                    return .failure(Refusal(.invalidParameter(name)))
                }
                guard let text = value.stringValue else { continue }
                guard let named = CachePolicy(rawValue: text) else { return .failure(Refusal(.invalidParameter(name))) }
                policy = named
            }
            return .success(.getPrice(policy))
        case PriceInterface.watchPrice:
            return call.more ? bare(.watchPrice, call) : .failure(Refusal(.expectedMore))
        case PriceInterface.getStatus: return bare(.getStatus, call)
        case PriceInterface.listSources: return bare(.listSources, call)
        case PriceInterface.pause: return bare(.pause, call)
        case PriceInterface.resume: return bare(.resume, call)
        case PriceInterface.retry:
            var source: String?
            for (name, value) in call.parameters.members {
                guard name.isString("source"), value.isNull || value.rawString != nil else {
                    return .failure(Refusal(.invalidParameter(name)))
                }
                source = value.stringValue
            }
            return .success(.retry(source))
        default: return nil
        }
    }

    /// Accepts a call without parameters.
    private static func bare(_ read: PriceCall, _ call: Call) -> Result<PriceCall, Refusal> {
        for (name, _) in call.parameters.members { return .failure(Refusal(.invalidParameter(name))) }
        return .success(read)
    }

    /// The call as a message.
    package var call: Call {
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

    /// A call that fails with an error reply.
    package struct Refusal: Error, Sendable, Hashable {
        package let reply: Reply

        init(_ reply: Reply) {
            self.reply = reply
        }
    }
}

extension Reply {
    /// The reply to `GetPrice` and `WatchPrice`.
    package static func state(_ message: StateMessage, continues: Bool = false) -> Reply {
        Reply(parameters: ["state": .object(message.json)], continues: continues)
    }

    /// The reply to `GetStatus`.
    package static func status(_ message: StatusMessage) -> Reply {
        Reply(parameters: ["status": .object(message.json)])
    }

    /// The reply to `ListSources`.
    package static func sources(_ reports: [SourceReport]) -> Reply {
        Reply(parameters: ["sources": .array(reports.map { .object($0.json) })])
    }

    /// The reply to `Retry`.
    package static func retried(_ retried: [String], kept: [Skipped], now: ObservationTime) -> Reply {
        Reply(parameters: [
            "retried": .array(retried.map { .string($0) }),
            "kept": .array(
                kept.compactMap { kept in
                    guard case .cooldown(let cooldown) = kept.reason else { return nil }
                    return .object([
                        "source": .string(kept.source),
                        "until": .integer(now.wallTime(of: cooldown.until.boottime).milliseconds),
                        "reason": .string(cooldown.reason.description),
                    ])
                }),
        ])
    }

    /// `io.btcpriced.Price.UnknownSource`
    package static func unknownSource(_ source: String, known: [String]) -> Reply {
        Reply(
            parameters: ["source": .string(source), "known": .array(known.map { .string($0) })],
            error: PriceInterface.unknownSource)
    }

    /// `io.btcpriced.Price.Busy`
    package static func busy(limit: Int) -> Reply {
        Reply(parameters: ["limit": .integer(Int64(limit))], error: PriceInterface.busy)
    }

    /// `io.btcpriced.Price.FetchFailed`
    package static func fetchFailed(_ failure: FetchFailure) -> Reply {
        Reply(parameters: ["reason": .string(failure.description)], error: PriceInterface.fetchFailed)
    }
}
