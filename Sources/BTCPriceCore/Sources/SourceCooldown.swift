/// A time in which a source is not asked, and why.
package struct SourceCooldown: Sendable, Hashable {
    /// What began it.
    package let reason: PriceLoadingError
    /// When it began.
    package let since: ObservationTime
    /// When it is over, on both clocks as they stood at its beginning.
    package let until: ObservationTime
    /// How many rests of this kind came one after another, this one included.
    package let consecutiveFailures: Int

    /// A rest of which every part is given.
    package init(reason: PriceLoadingError, since: ObservationTime, until: ObservationTime, consecutiveFailures: Int) {
        self.reason = reason
        self.since = since
        self.until = until
        self.consecutiveFailures = consecutiveFailures
    }

    /// The same rest by the wall clock as it is set now: it may have been set since the rest began.
    func dated(by now: ObservationTime) -> SourceCooldown {
        SourceCooldown(
            reason: reason, since: ObservationTime(wall: now.wallTime(of: since.boottime), boottime: since.boottime),
            until: ObservationTime(wall: now.wallTime(of: until.boottime), boottime: until.boottime),
            consecutiveFailures: consecutiveFailures)
    }

    /// Whether asking before it is over would make things worse: a ban, a limit, a refusal.
    package var isBinding: Bool { reason.category.isBinding }
}

/// A rest as it is kept over a restart.
package struct KeptCooldown: Sendable, Hashable {
    /// The base address it was earned at: another address is another host.
    package let address: String
    /// The rest. After a reboot its boot clock is of another boot.
    package let cooldown: SourceCooldown
    /// Whether the boot clock is this boot's.
    package let isOfThisBoot: Bool

    /// - Parameters:
    ///   - address: The base address it was earned at.
    ///   - rest: The rest.
    ///   - isOfThisBoot: Whether its boot clock is this boot's.
    package init(address: String, cooldown: SourceCooldown, isOfThisBoot: Bool) {
        self.address = address
        self.cooldown = cooldown
        self.isOfThisBoot = isOfThisBoot
    }

    /// The rest as far as another boot may know it.
    package var ofAnotherBoot: KeptCooldown { KeptCooldown(address: address, cooldown: cooldown, isOfThisBoot: false) }

    /// What is left of it.
    ///
    /// By the boot clock where it is this boot's. By the wall clock else, which may have been set meanwhile: never longer than
    /// the whole rest.
    func remaining(at now: ObservationTime) -> Duration {
        if isOfThisBoot { return .milliseconds(cooldown.until.boottime - now.boottime) }
        let whole = cooldown.until.wall.milliseconds - cooldown.since.wall.milliseconds
        return .milliseconds(min(cooldown.until.wall.milliseconds - now.wall.milliseconds, whole))
    }
}

/// How long a source rests, and how that grows.
enum CooldownRule {
    /// The first rest and the longest, without the exchange's word for it.
    static func bounds(_ category: PriceLoadingError.Category) -> (first: Duration, longest: Duration) {
        switch category {
        // Binance counts by the minute, and its shortest ban has two.
        case .rateLimited: (.seconds(60), .seconds(6 * 3600))
        // What is refused for good is asked for about once a day in the end.
        case .refused: (.seconds(600), .seconds(86_400))
        case .transient, .invalidData, .staleData, .cancelled: (.seconds(5), .seconds(300))
        }
    }

    /// The longest rest that an exchange's word is taken for: as long as Binance's longest ban (REST API, IP limits).
    static let longestTold = Duration.seconds(3 * 86_400)
    /// If nobody else is left, a source that refuses us is asked again so often: a VPN's exit that was refused may be another one by now.
    static let refusalProbe = Duration.seconds(60)

    /// The length of a rest.
    /// - Parameters:
    ///   - error: What begins it.
    ///   - strikes: How many of its kind came one after another, this one included.
    ///   - jitter: From 0 to 1: machines that failed together must not come back together.
    static func length(_ error: PriceLoadingError, consecutiveFailures: Int, jitter: Double) -> Duration {
        let (first, longest) = bounds(error.category)
        let doubled = min(first * Int(1 << min(20, max(0, consecutiveFailures - 1))), longest)
        guard error.category.isBinding else { return doubled.times(0.5 + jitter / 2) }
        // Never before what was told, and a little later: our clock and theirs are two.
        if case .rateLimited(_, let told?) = error {
            // Whoever comes back as told and is turned away again waits longer of itself.
            let grown = consecutiveFailures > 1 ? doubled / 2 : .zero
            let length = max(min(max(told, .seconds(1)), longestTold), grown)
            return length + min(length.times(jitter / 20), .seconds(30)) + .seconds(1)
        }
        return doubled.times(1 + jitter / 10)
    }
}

extension Duration {
    /// So many times the duration, to the millisecond.
    fileprivate func times(_ factor: Double) -> Duration {
        .milliseconds(Int64((Double(wholeMilliseconds) * factor).rounded()))
    }
}
