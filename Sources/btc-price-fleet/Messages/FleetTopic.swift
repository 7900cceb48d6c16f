import BTCPriceCore

/// The topics of a fleet: `btcpriced/v1/<publisher>/…`.
enum FleetTopic: Sendable, Hashable {
    /// The price in a currency: `…/quote/BTC-USD`. Retained.
    case quote(publisher: String, currency: String)
    /// Whether the publisher is online: `…/status`. Retained; also its MQTT last will.
    case status(publisher: String)
    /// The publisher's sources: `…/sources`. Retained.
    case sources(publisher: String)
    /// The price for Home Assistant: `…/home-assistant/BTC-USD`. Retained.
    case homeAssistant(publisher: String, currency: String)

    private static let root = "btcpriced/v1"
    private static let pair = "BTC-"

    /// The topic filters with which a follower subscribes to these publishers; `+` is all of them.
    static func filters(of publishers: [String]) -> [String] {
        publishers.flatMap { publisher in
            [quotes(of: publisher)] + ["status", "sources"].map { "\(root)/\(publisher)/\($0)" }
        }
    }

    /// The topic filter of a publisher's prices in all currencies.
    static func quotes(of publisher: String) -> String { "\(root)/\(publisher)/quote/+" }

    /// The level of a topic that names the publisher, not checked; `nil` for other topics.
    static func publisher(in text: String) -> String? {
        guard text.hasPrefix(root + "/") else { return nil }
        return String(text.dropFirst(root.count + 1).prefix { $0 != "/" })
    }

    /// Whether a publisher may have this name: at most 32 lower-case letters, digits and hyphens, and the first is a letter. It is also the
    /// name of a socket file and of a source in the daemon's configuration.
    static func isPublisherName(_ name: String) -> Bool { Market.isVenueName(name) }

    /// - Returns: `nil` if `text` is not a topic that followers read.
    init?(_ text: String) {
        let levels = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard text.hasPrefix(Self.root + "/"), levels.count >= 4, Self.isPublisherName(levels[2]) else { return nil }
        switch (levels[3], levels.count) {
        case ("quote", 5):
            guard levels[4].hasPrefix(Self.pair) else { return nil }
            self = .quote(publisher: levels[2], currency: String(levels[4].dropFirst(Self.pair.count)))
        case ("status", 4): self = .status(publisher: levels[2])
        case ("sources", 4): self = .sources(publisher: levels[2])
        default: return nil
        }
    }

    var publisher: String {
        switch self {
        case .quote(let publisher, _), .status(let publisher), .sources(let publisher),
            .homeAssistant(let publisher, _):
            publisher
        }
    }

    var text: String {
        let prefix = "\(Self.root)/\(publisher)"
        return switch self {
        case .quote(_, let currency): "\(prefix)/quote/\(Self.pair)\(currency)"
        case .status: "\(prefix)/status"
        case .sources: "\(prefix)/sources"
        case .homeAssistant(_, let currency): "\(prefix)/home-assistant/\(Self.pair)\(currency)"
        }
    }
}
