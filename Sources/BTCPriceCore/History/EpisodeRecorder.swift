import Synchronization

/// Where episodes are kept.
package protocol EpisodeArchive: Sendable {
    /// Keeps episodes, in place of earlier forms of the same ones. It does not write them at once.
    func note(_ episodes: [Episode])
}

/// Makes episodes of what the engine publishes and reports.
package final class EpisodeRecorder: StateSubscriber {
    private let archive: any EpisodeArchive
    private let now: TimeSource
    private let log = Mutex(EpisodeLog())
    private let wasPaused = Atomic<Bool>(false)
    /// Whether an episode may become long enough to be told without another event.
    private let isWaiting = Atomic<Bool>(false)

    /// - Parameter now: The history's time.
    package init(archive: any EpisodeArchive, now: @escaping TimeSource) {
        self.archive = archive
        self.now = now
    }

    package func receive(_ state: PriceState, _ publication: Publication, isFirst: Bool, kept: KeptState?) {
        if isWaiting.load(ordering: .relaxed) { change { _, _ in } }
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
        case .becameStale(_, _, let currency): change { $0.goesOn(Episode.Subject(.outage, currency), at: $1) }
        case .derivedInstead(_, let quote, _):
            change { $0.goesOn(Episode.Subject(.outage, Currency(rawValue: quote.currency)), at: $1) }
        case .becameFresh(let quote, _), .marketAgain(let quote):
            change { $0.ended(Episode.Subject(.outage, Currency(rawValue: quote.currency)), at: $1) }
        case .contradicted(_, let quote):
            change { $0.goesOn(Episode.Subject(.doubt, Currency(rawValue: quote.currency)), at: $1) }
        case .contradictionEnded(let quote, _):
            change { $0.ended(Episode.Subject(.doubt, Currency(rawValue: quote.currency)), at: $1) }
        case .outvoted(let distances, let currency):
            change { log, second in
                for (source, distance) in distances {
                    log.goesOn(Episode.Subject(.outvoted, currency, source: source), worst: distance, at: second)
                }
                for subject in log.current where subject.kind == .outvoted && subject.currency == currency {
                    if distances[subject.source ?? ""] == nil { log.ended(subject, at: second) }
                }
            }
        case .sourceFailed(let failure): failed(failure, currency)
        case .sourceRecovered(let source): change { Self.end(of: source, currency, in: &$0, at: $1) }
        case .clockDiffers(let difference):
            let worst = Int64(clamping: difference.milliseconds.magnitude)
            change { $0.goesOn(Episode.Subject(.clock), worst: worst, at: $1) }
        case .clockAgrees: change { $0.ended(Episode.Subject(.clock), at: $1) }
        case .ticked, .ratesFailed, .ratesRecovered, .ratesRefused, .outliers, .pegChanged, .timeAhead, .saveFailed,
            .saveRecovered:
            break
        }
    }

    /// What goes on is over as far as this run knows.
    package func close() { change { $0.endAll(at: $1) } }

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

    private func change(_ body: (inout EpisodeLog, Int64) -> Void) {
        let second = now().wall.wholeSeconds
        let changed = log.withLock { log in
            body(&log, second)
            let changed = log.takeChanged(at: second)
            isWaiting.store(log.hasChanged, ordering: .relaxed)
            return changed
        }
        if !changed.isEmpty { archive.note(changed) }
    }
}
