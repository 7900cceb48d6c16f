import Synchronization

/// Where episodes are kept.
package protocol EpisodeArchive: Sendable {
    /// Keeps episodes, in place of earlier forms of the same ones. It does not write them at once.
    func note(_ episodes: [Episode])
}

/// Makes episodes of what the engine publishes and reports.
package final class EpisodeRecorder: StateSubscriber {
    private let archive: any EpisodeArchive
    /// The history's time, and whether it is settled.
    package typealias Reading = @Sendable () -> (time: ObservationTime, isSettled: Bool)

    private struct State {
        var log = EpisodeLog()
        /// The wall clock minus the boot clock, seconds, while the time is not settled.
        var offset: Int64?
        /// The currencies whose price is in doubt.
        var doubted: Set<String> = []
    }

    private let reading: Reading
    private let state = Mutex(State())
    private let wasPaused = Atomic<Bool>(false)
    /// Whether an episode waits: for its length, or until the time is settled.
    private let isWaiting = Atomic<Bool>(false)

    package init(archive: any EpisodeArchive, reading: @escaping Reading) {
        self.archive = archive
        self.reading = reading
    }

    package func receive(_ state: PriceState, _ publication: Publication, isFirst: Bool, kept: KeptState?) {
        if isWaiting.load(ordering: .relaxed) { change { _, _ in } }
        let isDoubted = state.freshness == .fresh && state.standing.isInDoubt && state.derivation == nil
        let hasChanged = self.state.withLock { recorder in
            guard recorder.doubted.contains(state.currency) != isDoubted else { return false }
            if isDoubted { recorder.doubted.insert(state.currency) } else { recorder.doubted.remove(state.currency) }
            return true
        }
        if hasChanged {
            let subject = Episode.Subject(.doubt, Currency(rawValue: state.currency))
            change { isDoubted ? $0.goesOn(subject, at: $1) : $0.ended(subject, at: $1) }
        }
        let isPaused = state.ticks.ticking == .paused
        guard isFirst, wasPaused.exchange(isPaused, ordering: .relaxed) != isPaused else { return }
        change { log, second in
            if isPaused {
                log.goesOn(Episode.Subject(.paused), at: second)
            } else {
                log.ended(Episode.Subject(.paused), at: second)
            }
        }
    }

    /// The configuration was read again.
    package func reloaded() {
        change { log, second in
            log.goesOn(Episode.Subject(.reload), at: second)
            log.ended(Episode.Subject(.reload), at: second)
        }
    }

    /// - Parameter currency: That of the sources which an event names, if it is about one.
    package func report(_ event: PriceEvent, of currency: Currency?) {
        switch event {
        case .kept(let sources):
            state.withLock { $0.doubted.formIntersection(sources.keys.map(\.rawValue)) }
            change { $0.keep(only: sources, at: $1) }
        case .becameStale(_, _, let currency): change { $0.goesOn(Episode.Subject(.outage, currency), at: $1) }
        case .derivedInstead(_, let quote, _):
            change { $0.goesOn(Episode.Subject(.outage, Currency(rawValue: quote.currency)), at: $1) }
        case .becameFresh(let quote, _), .marketAgain(let quote):
            change { $0.ended(Episode.Subject(.outage, Currency(rawValue: quote.currency)), at: $1) }
        case .outvoted(let distances, let currency):
            change { log, second in
                for (source, distance) in distances {
                    log.goesOn(Episode.Subject(.outvoted, currency, source: source), worst: distance, at: second)
                }
                for subject in log.current where subject.kind == .outvoted && subject.currency == currency {
                    if distances[subject.source ?? ""] == nil { log.ended(subject, at: second) }
                }
            }
        case .jumped(let distance, let currency):
            change { log, second in
                log.goesOn(Episode.Subject(.jump, currency), worst: distance, at: second)
                log.ended(Episode.Subject(.jump, currency), at: second)
            }
        case .offPeg(let rate?): change { $0.goesOn(Episode.Subject(.peg), worst: rate.distance, at: $1) }
        case .offPeg(nil): change { $0.ended(Episode.Subject(.peg), at: $1) }
        case .sourceFailed(let failure): failed(failure, currency)
        case .sourceRecovered(let source): change { Self.end(of: source, currency, in: &$0, at: $1) }
        case .clockDiffers(let difference):
            let worst = Int64(clamping: difference.milliseconds.magnitude)
            change { $0.goesOn(Episode.Subject(.clock), worst: worst, at: $1) }
        case .clockAgrees: change { $0.ended(Episode.Subject(.clock), at: $1) }
        case .ticked, .contradicted, .contradictionEnded, .ratesFailed, .ratesRecovered, .ratesRefused, .outliers,
            .pegChanged, .timeAhead, .saveFailed, .saveRecovered:
            break
        }
    }

    /// What goes on is over as far as this run knows.
    package func close() { change(isLast: true) { $0.endAll(at: $1) } }

    private func failed(_ failure: SourceFailure, _ currency: Currency?) {
        let kind: Episode.Kind
        switch failure.error.category {
        case .cancelled: return
        case .rateLimited: kind = .limited
        case .refused: kind = .refused
        case .transient, .invalidData, .staleData: kind = .failed
        }
        change { log, second in
            // The vote says more of it.
            if case .implausible = failure.error {
                let outvoted = Episode.Subject(.outvoted, currency, source: failure.source)
                if log.isCurrent(outvoted) || failure.cooldown == nil { return }
            }
            Self.end(of: failure.source, currency, but: kind, in: &log, at: second)
            log.goesOn(Episode.Subject(kind, currency, source: failure.source), at: second)
        }
    }

    private static func end(
        of source: String, _ currency: Currency?, but kind: Episode.Kind? = nil, in log: inout EpisodeLog,
        at second: Int64
    ) {
        for other in [Episode.Kind.failed, .limited, .refused] where other != kind {
            log.ended(Episode.Subject(other, currency, source: source), at: second)
        }
    }

    /// Until the time is settled, nothing is told, and what waits follows the time.
    private func change(isLast: Bool = false, _ body: (inout EpisodeLog, Int64) -> Void) {
        let (time, isSettled) = reading()
        let second = time.wall.wholeSeconds
        let offset = (time.wall.milliseconds - time.boottime.milliseconds) / 1000
        let changed = state.withLock { state in
            if let before = state.offset, before != offset { state.log.shift(by: offset - before) }
            state.offset = isSettled ? nil : offset
            body(&state.log, second)
            let changed = isSettled || isLast ? state.log.takeChanged(at: second) : []
            isWaiting.store(state.log.hasChanged, ordering: .relaxed)
            return changed
        }
        if !changed.isEmpty { archive.note(changed) }
    }
}
