import BTCPriceCore
import Synchronization
import Systemd

/// Updates `systemctl status` at every change of freshness or source, else every 10 s. It has no timer of its own.
final class StatusLine: StateSubscriber {
    private struct Last: Equatable {
        var freshness: Freshness?
        var source: String?
        var ticking: Ticking?
        var saidAt = BootTime.boot
    }

    private static let period: Int64 = 10_000
    private let manager: ServiceManager
    private let last = Mutex(Last())

    private let now: TimeSource

    init(manager: ServiceManager, now: @escaping TimeSource) {
        self.manager = manager
        self.now = now
    }

    func receive(_ state: PriceState, _: Publication, isFirst: Bool, kept: KeptState?) {
        guard isFirst else { return }
        let boottime = now().boottime
        let isDue = last.withLock { last in
            var next = Last(
                freshness: state.freshness, source: state.quote?.sourceText, ticking: state.ticks.ticking,
                saidAt: last.saidAt
            )
            guard next != last || boottime - last.saidAt >= Self.period else { return false }
            next.saidAt = boottime
            last = next
            return true
        }
        if isDue { manager.status(Self.text(state)) }
    }

    /// One line with the time of the observation, since an age would become wrong.
    static func text(_ state: PriceState) -> String {
        let reason: String? =
            switch state.ticks.ticking {
            case .paused: "paused by a user until 'btcctl resume'"
            case .idle: "idle until a program reads the price"
            case .running, nil: state.failure
            }
        guard let quote = state.quote else { return "No price yet: \(reason ?? "the first tick is running")" }
        let price = "\(quote.value) \(quote.currency) from \(quote.sourceText) at \(quote.timestamp.utcText)"
        switch state.freshness {
        case .fresh: return price
        case .stale, .none: return "Stale, last value \(price): \(reason ?? "no tick yet")"
        }
    }
}
