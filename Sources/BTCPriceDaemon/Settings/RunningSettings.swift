import BTCPriceCore
import Logging
import Synchronization

/// The settings in force. A reload replaces them.
final class RunningSettings: Sendable {
    /// The settings, and the sources that they leave unusable.
    struct Value: Sendable {
        var settings: Settings
        /// Sources that are configured but never requested.
        var unusable: [SourceReport]

        /// The longest silence of a healthy ticker.
        var longestSilence: Duration { settings.first.interval * 2 + settings.budget + .seconds(1) }
    }

    private let current: Mutex<Value>

    init(_ settings: Settings, unusable: [SourceReport]) {
        current = Mutex(Value(settings: settings, unusable: unusable))
    }

    var value: Value {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }
}

/// The lowest level that is logged, for every logger of the daemon at once.
final class SharedLogLevel: Sendable {
    private let current: Mutex<Logger.Level>

    init(_ level: Logger.Level) {
        current = Mutex(level)
    }

    var level: Logger.Level {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }
}

/// A handler whose level can be changed while it is in use.
struct AdjustableLogHandler: LogHandler {
    private let shared: SharedLogLevel
    /// This logger's own level. It applies if it is higher than the shared one.
    private var own = Logger.Level.trace
    private var handler: any LogHandler

    init(_ handler: any LogHandler, level: SharedLogLevel) {
        self.handler = handler
        shared = level
    }

    var logLevel: Logger.Level {
        get { max(own, shared.level) }
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
