import BTCPriceCore
import BTCPriceServer
import Synchronization
import BTCPriceNetworking

/// Brings states to the server, and ticks to what watches over them. Keeper and server need each other: the one to show, the other
/// to fetch.
final class Publication: Sendable {
    private let ends = Mutex<(server: PriceServer, control: TickControl<TickClock>)?>(nil)

    func connect(_ server: PriceServer, _ control: TickControl<TickClock>) {
        ends.withLock { $0 = (server, control) }
    }

    func publish(_ state: PriceState, toWatchers: Bool) {
        ends.withLock { $0 }?.server.publish(state, toWatchers: toWatchers)
    }

    /// A tick has ended: the last one for now, if nobody wanted a price for long.
    func ticked() {
        guard let control = ends.withLock({ $0 })?.control, control.mayPause else { return }
        // Not awaited: a pause waits for the end of this tick.
        Task { await control.pauseIfIdle() }
    }
}
