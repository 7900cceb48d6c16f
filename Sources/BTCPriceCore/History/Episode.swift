/// Something that went on for a time, for people who ask later what happened.
package struct Episode: Sendable, Hashable {
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// No source gave a price: the last one was shown as not current, or one was derived instead.
        case outage
        /// Others contradicted the shown price, none confirmed a first price or a jump, or USDT was off its peg.
        case doubt
        /// The shown price moved further at once than a price may without another exchange. ``worst`` is how far. It takes no time.
        case jump
        /// USDT was off its peg. ``worst`` is by how much.
        case peg
        /// Most exchanges contradicted the price of a source. ``worst`` is how far it was from the shown price.
        case outvoted
        /// A source gave no valid price.
        case failed
        /// An exchange demanded a pause: a limit or a ban.
        case limited
        /// An exchange refused the requests: the key, the region or the protocol.
        case refused
        /// An administrator paused the ticks.
        case paused
        /// This machine's clock was wrong. ``worst`` is by how much when that was found.
        case clock
        /// The configuration was read again. It takes no time.
        case reload

        /// Whether it takes no time. The time of several is that from the first to the last.
        package var isMoment: Bool { self == .jump || self == .reload }
    }

    /// What it is about.
    package struct Subject: Sendable, Hashable {
        package let kind: Kind
        /// `nil` if it concerns all.
        package let currency: Currency?
        /// A source, if it is about one.
        package let source: String?

        package init(_ kind: Kind, _ currency: Currency? = nil, source: String? = nil) {
            (self.kind, self.currency, self.source) = (kind, currency, source)
        }
    }

    /// The largest ``worst``: a thousand times the price, or thirty years.
    package static let mostWorst: Int64 = 1_000_000_000_000

    package let subject: Subject
    /// Unix seconds.
    package fileprivate(set) var start: Int64
    /// Unix seconds; `nil` while it goes on.
    package var end: Int64?
    /// The farthest distance: from the price or the peg, in millionths of it; for ``Kind/clock`` in milliseconds. `nil` if it has none.
    package var worst: Int64?
    /// How often it began: several short ones that follow each other are one.
    package var count: Int64

    package init(_ subject: Subject, start: Int64, end: Int64? = nil, worst: Int64? = nil, count: Int64 = 1) {
        (self.subject, self.start, self.end, self.worst, self.count) = (subject, start, end, worst, count)
    }
}

/// The episodes that go on, and those that have changed since they were taken. A pure value. Times are Unix seconds.
package struct EpisodeLog: Sendable {
    /// The most episodes of a subject that begin on one day. Beyond it, the last one goes on.
    package static let mostADay = 100
    /// An episode that begins again within this time goes on.
    package static let pause: Int64 = 60
    /// A source's failure that is over sooner is none: single requests fail everywhere. So is a doubt, such as that of a first price.
    package static let shortest: Int64 = 5

    private struct Day {
        var start: Int64
        var count: Int
    }

    private var last: [Episode.Subject: Episode] = [:]
    private var days: [Episode.Subject: Day] = [:]
    private var changed: [Episode.Subject: [Int64: Episode]] = [:]

    package init() {}

    /// Something has begun or goes on.
    /// - Parameter worst: As in ``Episode/worst``; without a sign.
    package mutating func goesOn(_ subject: Episode.Subject, worst: Int64? = nil, at second: Int64) {
        var episode = last[subject] ?? Episode(subject, start: second, end: .min, count: 0)
        if let end = episode.end {
            let today = Candle.Step.day.start(of: second)
            let count = days[subject].map { $0.start == today ? $0.count : 0 } ?? 0
            let isAgain = episode.count > 0 && (second - end <= Self.pause && second >= end || count >= Self.mostADay)
            if isAgain {
                (episode.end, episode.count) = (nil, episode.count + 1)
            } else {
                episode = Episode(subject, start: second)
                days[subject] = Day(start: today, count: count + 1)
            }
        }
        let farther = worst.map { max($0, episode.worst ?? 0) } ?? episode.worst
        let isNew = last[subject] != episode || farther != episode.worst
        episode.worst = farther
        last[subject] = episode
        if isNew { change(episode) }
    }

    /// Something is over, if it was going on.
    package mutating func ended(_ subject: Episode.Subject, at second: Int64) {
        guard var episode = last[subject], episode.end == nil else { return }
        episode.end = max(episode.start, second)
        last[subject] = episode
        // It was not to be told.
        if isTooShort(episode, at: second) {
            changed[subject]?[episode.start] = nil
            if changed[subject]?.isEmpty == true { changed[subject] = nil }
            days[subject]?.count -= 1
        } else {
            change(episode)
        }
    }

    /// Ends what is about something that is no longer kept.
    /// - Parameter sources: The currencies that are kept, with their sources.
    package mutating func keep(only sources: [Currency: Set<String>], at second: Int64) {
        for subject in current {
            // What USDT is worth is known from the dollar's markets.
            guard let currency = subject.kind == .peg ? .usd : subject.currency else { continue }
            // A price that is always derived has none, and can't come back from them.
            let isDerived = subject.kind == .outage && sources[currency]?.isEmpty == true
            if isDerived || sources[currency] == nil
                || subject.source.map({ sources[currency]?.contains($0) == false }) ?? false
            {
                ended(subject, at: second)
            }
        }
    }

    /// Moves what was not taken yet: its times were those of a wrong clock.
    /// - Parameter seconds: How far.
    package mutating func shift(by seconds: Int64) {
        func shifted(_ episode: Episode) -> Episode {
            var episode = episode
            episode.start += seconds
            episode.end? += seconds
            return episode
        }
        for (subject, episodes) in changed {
            let moved = episodes.values.map(shifted)
            changed[subject] = Dictionary(moved.map { ($0.start, $0) }) { $1 }
            if let known = last[subject], episodes[known.start] != nil { last[subject] = shifted(known) }
        }
    }

    /// Ends all that goes on.
    package mutating func endAll(at second: Int64) {
        for subject in Array(last.keys) { ended(subject, at: second) }
    }

    /// What goes on.
    package var current: [Episode.Subject] { last.filter { $0.value.end == nil }.map(\.key) }

    package func isCurrent(_ subject: Episode.Subject) -> Bool { last[subject].map { $0.end == nil } ?? false }

    /// The episodes that have changed since the last call and are long enough to be told.
    package mutating func takeChanged(at second: Int64) -> [Episode] {
        var taken: [Episode] = []
        for (subject, episodes) in changed {
            for episode in episodes.values where !isTooShort(episode, at: second) {
                taken.append(episode)
                changed[subject]?[episode.start] = nil
            }
            if changed[subject]?.isEmpty == true { changed[subject] = nil }
        }
        return taken.sorted { $0.start < $1.start }
    }

    /// Whether some are too short to be told.
    package var hasChanged: Bool { !changed.isEmpty }

    private mutating func change(_ episode: Episode) {
        changed[episode.subject, default: [:]][episode.start] = episode
    }

    private func isTooShort(_ episode: Episode, at second: Int64) -> Bool {
        [.failed, .doubt].contains(episode.subject.kind) && episode.count == 1
            && (episode.end ?? second) - episode.start < Self.shortest
    }
}
