package import BTCPriceCore

extension HistoryClock {
    /// A history's clock with which the venues have agreed already.
    package static func confirmed(_ now: @escaping TimeSource) -> HistoryClock {
        let clock = HistoryClock(now: now)
        clock.check(.agrees, at: now())
        return clock
    }
}

extension Timestamp {
    /// The moment that is `duration` later.
    package func advanced(by duration: Duration) -> Timestamp {
        Timestamp(milliseconds: milliseconds + duration.wholeMilliseconds)
    }
}
