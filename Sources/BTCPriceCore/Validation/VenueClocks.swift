/// Compares the venues' clocks with this machine's, to detect old prices: a pure value.
///
/// If a venue's time differs from ours, the venue is wrong, unless most venues agree with it. Offsets are relative to the boot
/// clock, so they stay correct if the wall clock is set.
struct VenueClocks: Sendable {
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
    }

    private var clocks: [String: Clock] = [:]
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
        let recent = clocks.values.filter { now.boottime - $0.at <= Self.lasts && !$0.stands }
        guard recent.count > 1 || recent.first?.isAdvancing == true else { return now.wall }
        let errors = recent.map { $0.offset + now.boottime.milliseconds - now.wall.milliseconds }
        let sorted = errors.sorted { abs($0) < abs($1) }
        return Timestamp(milliseconds: now.wall.milliseconds + sorted[(sorted.count - 1) / 2])
    }
}
