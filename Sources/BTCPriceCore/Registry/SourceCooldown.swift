/// A period in which a source is not requested, and its reason.
package struct SourceCooldown: Sendable, Hashable {
    /// The error that started it.
    package let reason: PriceLoadingError
    package let since: ObservationTime
    /// When it ends, on both clocks as they were at its start.
    package let until: ObservationTime
    /// The number of consecutive cooldowns of this kind, including this one.
    package let consecutiveFailures: Int

    package init(reason: PriceLoadingError, since: ObservationTime, until: ObservationTime, consecutiveFailures: Int) {
        self.reason = reason
        self.since = since
        self.until = until
        self.consecutiveFailures = consecutiveFailures
    }

    /// The same cooldown with wall-clock times from the current wall clock, which may have been set since the cooldown started.
    func dated(by now: ObservationTime) -> SourceCooldown {
        SourceCooldown(
            reason: reason, since: ObservationTime(wall: now.wallTime(of: since.boottime), boottime: since.boottime),
            until: ObservationTime(wall: now.wallTime(of: until.boottime), boottime: until.boottime),
            consecutiveFailures: consecutiveFailures)
    }

    /// Whether the time is not over that the exchange has named for the end of its maintenance. The cooldown may be longer.
    func isTold(at boottime: BootTime) -> Bool {
        guard case .unavailable(_, let told?) = reason else { return false }
        return boottime < since.advanced(by: CooldownRule.accepted(told) + .seconds(1)).boottime
    }

    /// Whether a request before its end would make things worse, because of a ban, a limit or a refusal.
    package var isBinding: Bool { reason.category.isBinding }
}

/// A cooldown as it is stored across a restart.
package struct KeptCooldown: Sendable, Hashable {
    /// The base address that it applies to: another address is another host.
    package let address: String
    /// The cooldown. After a reboot its boot times are those of another boot.
    package let cooldown: SourceCooldown
    package let isOfThisBoot: Bool

    package init(address: String, cooldown: SourceCooldown, isOfThisBoot: Bool) {
        self.address = address
        self.cooldown = cooldown
        self.isOfThisBoot = isOfThisBoot
    }

    /// The same cooldown, marked as one of another boot.
    package var ofAnotherBoot: KeptCooldown { KeptCooldown(address: address, cooldown: cooldown, isOfThisBoot: false) }

    /// The time until it ends.
    ///
    /// Measured with the boot clock if the boot times are those of this boot. Otherwise measured with the wall clock, which may have
    /// been set since: then it is never longer than the whole cooldown.
    func remaining(at now: ObservationTime) -> Duration {
        if isOfThisBoot { return .milliseconds(cooldown.until.boottime - now.boottime) }
        let whole = cooldown.until.wall.milliseconds - cooldown.since.wall.milliseconds
        return .milliseconds(min(cooldown.until.wall.milliseconds - now.wall.milliseconds, whole))
    }
}

/// The length of a cooldown and its growth.
package enum CooldownRule {
    /// The first and the longest cooldown, if the exchange gives no time.
    static func bounds(_ category: PriceLoadingError.Category) -> (first: Duration, longest: Duration) {
        switch category {
        // Binance counts per minute, and its shortest ban is two minutes.
        case .rateLimited: (.seconds(60), .seconds(6 * 3600))
        // A lasting refusal is eventually retried only about once a day.
        case .refused: (.seconds(600), .seconds(86_400))
        case .transient, .invalidData, .staleData, .cancelled: (.seconds(5), .seconds(300))
        }
    }

    /// The longest time accepted from an exchange: as long as Binance's longest ban (REST API, IP limits).
    package static let longestTold = Duration.seconds(3 * 86_400)

    /// A time that an exchange names, as far as it is accepted. A second is added to it, because the two clocks may differ.
    static func accepted(_ told: Duration) -> Duration { min(max(told, .seconds(1)), longestTold) }

    /// How often a source that refuses requests is tried if no other is available: a VPN may have changed its exit.
    static let refusalProbe = Duration.seconds(60)

    /// The length of a cooldown.
    /// - Parameters:
    ///   - consecutiveFailures: The number of consecutive cooldowns of its kind, including this one.
    ///   - jitter: From 0 to 1. It prevents machines that failed together from returning together.
    static func length(_ error: PriceLoadingError, consecutiveFailures: Int, jitter: Double) -> Duration {
        let (first, longest) = bounds(error.category)
        let doubled = Backoff.wait(from: first, to: longest, after: consecutiveFailures - 1)
        // If a request after the exchange's time fails again, wait longer than that.
        let grown =
            switch (error.category.isBinding, error.retryAfter) {
            case (false, _): doubled.times(0.5 + jitter / 2)
            case (true, nil): doubled.times(1 + jitter / 10)
            case (true, _): consecutiveFailures > 1 ? doubled / 2 : .zero
            }
        guard let told = error.retryAfter.map(accepted) else { return grown }
        // Never before the time that the exchange gave.
        let length = max(told, grown)
        return length + min(length.times(jitter / 20), .seconds(30)) + .seconds(1)
    }
}

extension Duration {
    /// The duration multiplied by `factor`, rounded to the millisecond.
    fileprivate func times(_ factor: Double) -> Duration {
        .milliseconds(Int64((Double(wholeMilliseconds) * factor).rounded()))
    }
}

/// Why one source gave no price.
package struct SourceFailure: Sendable, Hashable {
    package let source: String
    package let error: PriceLoadingError
    package let cooldown: SourceCooldown?

    package init(source: String, error: PriceLoadingError, cooldown: SourceCooldown? = nil) {
        self.source = source
        self.error = error
        self.cooldown = cooldown
    }
}
