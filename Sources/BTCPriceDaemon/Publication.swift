import BTCPriceCore
import BTCPriceServer
import Synchronization
import BTCPriceNetworking

/// Passes states to the server, and ticks to the tick control. It breaks the cycle between them: the keeper publishes to the server,
/// and the server fetches through the keeper.
final class Publication: Sendable {
    private let ends = Mutex<(server: PriceServer, control: TickControl<TickClock>)?>(nil)

    func connect(_ server: PriceServer, _ control: TickControl<TickClock>) {
        ends.withLock { $0 = (server, control) }
    }

    func publish(_ state: PriceState, toWatchers: Bool) {
        ends.withLock { $0 }?.server.publish(state, toWatchers: toWatchers)
    }

    /// Called at the end of a tick. Pauses the ticks if no client has wanted a price for long.
    func ticked() {
        guard let control = ends.withLock({ $0 })?.control, control.mayPause else { return }
        // Not awaited: a pause waits for the end of this tick.
        Task { await control.pauseIfIdle() }
    }
}
