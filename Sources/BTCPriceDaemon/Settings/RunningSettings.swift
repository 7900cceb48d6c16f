import BTCPriceCore
import Logging
import Synchronization

/// A value that a reload replaces.
final class Replaceable<Value: Sendable>: Sendable {
    private let current: Mutex<Value>

    init(_ value: Value) {
        current = Mutex(value)
    }

    var value: Value {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }
}

/// The settings in force, and their sources.
struct RunningSettings: Sendable {
    let settings: Settings
    let sources: ConfiguredSources

    /// The longest silence of a healthy ticker.
    var longestSilence: Duration { settings.first.interval * 2 + settings.budget + .seconds(1) }
}

/// A handler whose level can be changed while it is in use.
struct AdjustableLogHandler: LogHandler {
    /// The lowest level that is logged, for every logger of the daemon at once.
    private let shared: Replaceable<Logger.Level>
    /// This logger's own level. It applies if it is higher than the shared one.
    private var own = Logger.Level.trace
    private var handler: any LogHandler

    init(_ handler: any LogHandler, level: Replaceable<Logger.Level>) {
        self.handler = handler
        shared = level
    }

    var logLevel: Logger.Level {
        get { max(own, shared.value) }
        set { own = newValue }
    }

    var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        handler.log(event: event)
    }
}
