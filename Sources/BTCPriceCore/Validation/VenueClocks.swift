/// How this machine's clock compares with the venues' clocks.
package enum ClockComparison: Sendable, Hashable {
    /// No venue has stated a time, the only one contradicts this machine's, or the venues do not agree with each other.
    case unknown
    /// At least half of the venues agree with this machine's clock, within a minute.
    case agrees
    /// Most venues, at least two, agree on another time.
    case differs(ClockDifference)
}

/// How far this machine's clock is from the time that most venues agree on.
package struct ClockDifference: Sendable, Hashable {
    /// Their time minus this machine's, milliseconds: above zero if this machine's clock is behind.
    package var milliseconds: Int64
    /// The number of venues that agree on the other time.
    package var venues: Int64
    /// The number of venues whose time is known.
    package var known: Int64

    package init(milliseconds: Int64, venues: Int64, known: Int64) {
        self.milliseconds = milliseconds
        self.venues = venues
        self.known = known
    }
}

/// Compares the venues' clocks with this machine's, to detect old prices and a wrong clock: a pure value.
///
/// If a venue's time differs from ours, the venue is wrong, unless most venues agree with it. Offsets are relative to the boot
/// clock, so they stay correct if the wall clock is set.
package struct VenueClocks: Sendable {
    /// The clock of a venue, as the `Date` headers of its responses show it. Its times are milliseconds since 1970.
    private struct Clock: Sendable {
        /// Its wall clock minus this machine's boot clock, in milliseconds, and the time of that observation.
        var offset: Int64
        var at: BootTime
        /// When the first response with the newest time came.
        var since: BootTime
        /// An earlier observation, to compare the newest one with.
        var earlier: (time: Int64, at: BootTime)
        /// Whether it has advanced as the boot clock has.
        var isAdvancing = false
        /// Whether it has not advanced for longer than the venue's servers cache a response.
        var stands = false

        var time: Int64 { offset + at.milliseconds }

        /// Whether it is that of a venue, observed in the last so many milliseconds.
        func counts(at now: ObservationTime, within longest: Int64 = VenueClocks.lasts) -> Bool {
            now.boottime - at <= longest && !stands
        }

        /// Its time minus this machine's, milliseconds.
        func difference(at now: ObservationTime) -> Int64 { offset + now.boottime.milliseconds - now.wall.milliseconds }
    }

    private var clocks: [String: Clock] = [:]

    package init() {}

    /// Clocks that differ by at most this, in milliseconds, agree.
    static let tolerance = Duration.seconds(60).wholeMilliseconds
    /// After this time, in milliseconds, a venue's time counts only if no two newer ones are known: this machine may have been stopped.
    private static let newest = Duration.seconds(120).wholeMilliseconds
    /// How long a venue's clock offset is used, in milliseconds.
    private static let lasts = Duration.seconds(3600).wholeMilliseconds
    /// The resolution of `Date`, a whole second, in milliseconds.
    private static let resolution: Int64 = 1000
    /// How far a correct venue clock may seem to differ from ours, in milliseconds: by its resolution and the response's time.
    private static let slack: Int64 = 2000
    /// How long a venue's clock is compared with the same earlier observation, in milliseconds.
    private static let compared = Duration.seconds(60).wholeMilliseconds

    /// Records a venue's clock: the `Date` header of its response (RFC 9110, section 6.6.1), and the response's age.
    /// - Parameter cacheTime: How long its servers cache a response.
    mutating func record(_ time: Timestamp, of venue: String, cacheTime: Duration = .zero, at now: ObservationTime) {
        let (time, now) = (time.milliseconds, now.boottime)
        var clock = clocks[venue] ?? Clock(offset: time - now.milliseconds, at: now, since: now, earlier: (time, now))
        let slack = cacheTime.wholeMilliseconds + Self.slack
        if time != clock.time { clock.since = now }
        clock.offset = time - now.milliseconds
        clock.at = now
        clock.stands = now - clock.since > slack
        let (theirs, ours) = (time - clock.earlier.time, now - clock.earlier.at)
        if abs(theirs - ours) > slack {
            clock.earlier = (time, now)
            clock.isAdvancing = false
        } else if theirs >= Self.resolution {
            clock.isAdvancing = true
            // Clocks drift apart.
            if ours > Self.compared { clock.earlier = (time, now) }
        }
        clocks[venue] = clock
    }

    /// Forgets the clocks of all venues but these.
    mutating func keep(only venues: Set<String>) { clocks = clocks.filter { venues.contains($0.key) } }

    /// Whether a venue's newest responses all have the same time: they come from a cache.
    func stands(_ venue: String) -> Bool { clocks[venue]?.stands ?? false }

    /// The wall-clock time that most venues agree on; this machine's if no offset is known.
    ///
    /// A clock that stands still is that of a cache, and does not count. A single clock may be that of a cache, too, until it has advanced.
    func wallTime(at now: ObservationTime) -> Timestamp {
        let recent = clocks.values.filter { $0.counts(at: now) }
        guard recent.count > 1 || recent.first?.isAdvancing == true else { return now.wall }
        let errors = recent.map { $0.difference(at: now) }
        let sorted = errors.sorted { abs($0) < abs($1) }
        return Timestamp(milliseconds: now.wall.milliseconds + sorted[(sorted.count - 1) / 2])
    }

    /// A venue's time minus this machine's, milliseconds; `nil` if it is not known, or is that of a cache.
    func difference(of venue: String, at now: ObservationTime) -> Int64? {
        clocks[venue].flatMap { $0.counts(at: now) ? $0.difference(at: now) : nil }
    }

    /// Compares this machine's clock with those of all venues.
    func comparison(at now: ObservationTime) -> ClockComparison {
        let areNewest = clocks.values.count { $0.counts(at: now, within: Self.newest) } > 1
        let longest = areNewest ? Self.newest : Self.lasts
        var (known, agreeing) = (0, 0)
        for clock in clocks.values where clock.counts(at: now, within: longest) {
            known += 1
            if abs(clock.difference(at: now)) <= Self.tolerance { agreeing += 1 }
        }
        // This machine's clock is a witness, too.
        if agreeing > 0, agreeing * 2 >= known { return .agrees }
        guard known > 1 else { return .unknown }
        let differences = clocks.values.filter { $0.counts(at: now, within: longest) }.map { $0.difference(at: now) }
            .sorted()
        let median = differences[known / 2]
        let with = differences.count { abs($0 - median) <= Self.tolerance }
        guard with > 1, with * 2 > known, abs(median) > Self.tolerance else { return .unknown }
        return .differs(ClockDifference(milliseconds: median, venues: Int64(with), known: Int64(known)))
    }
}
