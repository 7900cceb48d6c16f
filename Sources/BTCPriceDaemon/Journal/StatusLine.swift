import BTCPriceCore
import Synchronization
import Systemd

/// Updates `systemctl status` at every change of freshness or source, else every 10 s. It has no timer of its own.
final class StatusLine: StateSubscriber {
    private struct Last {
        var freshness: Freshness?
        var source: String?
        var saidAt: Int64 = 0
    }

    private static let period: Int64 = 10_000
    private let manager: ServiceManager
    private let last = Mutex(Last())

    private let now: TimeSource

    init(manager: ServiceManager, now: @escaping TimeSource) {
        self.manager = manager
        self.now = now
    }

    func receive(_ state: PriceState, isTick: Bool, isFirst: Bool, kept: KeptState?) {
        guard isFirst else { return }
        let boottime = now().boottime
        let isDue = last.withLock { last in
            let isChange = last.freshness != state.freshness || last.source != state.quote?.sourceText
            guard isChange || boottime - last.saidAt >= Self.period else { return false }
            last = Last(freshness: state.freshness, source: state.quote?.sourceText, saidAt: boottime)
            return true
        }
        if isDue { manager.status(Self.text(state)) }
    }

    /// One line with the time of the observation, since an age would become wrong.
    static func text(_ state: PriceState) -> String {
        guard let quote = state.quote else { return "No price yet: \(state.failure ?? "the first tick is running")" }
        let price = "\(quote.value) \(quote.currency) from \(quote.sourceText) at \(quote.timestamp.utcText)"
        switch state.freshness {
        case .fresh: return price
        case .stale, .none: return "Stale, last value \(price): \(state.failure ?? "no tick yet")"
        }
    }
}
