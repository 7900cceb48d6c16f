import Glibc

/// The numbers by which prices are judged; `docs/judgement.md` says where each comes from. All moves are differences of natural
/// logarithms: 0.01 is one percent, and a fall and the rise that undoes it are equally large.
package enum JudgementBounds {
    /// The largest move that is believed without a second source.
    ///
    /// Grows with the square root of time, as a random walk does: 0.6 % at once, 0.9 % after a second, 2.9 % after a minute, 19 %
    /// after an hour, never more than 25 %.
    /// - Parameter elapsed: Since the last good quote, milliseconds; below zero counts as none.
    package static func move(after elapsed: Int64) -> Double {
        min(0.006 + 0.003 * (Double(max(0, elapsed)) / 1000).squareRoot(), 0.25)
    }

    /// How far two markets may have drifted apart since they were last seen side by side.
    /// - Parameter age: Since then, milliseconds.
    static func drift(over age: Int64) -> Double {
        min(0.0002 * (Double(max(0, age)) / 1000).squareRoot(), 0.003)
    }

    /// How far two markets may differ and agree all the same.
    static let agreement = 0.005

    /// The same for two that have both moved: in a crash venues are a few percent apart, so it is half of the smaller move, within bounds.
    static func agreement(_ first: Double, _ second: Double) -> Double {
        first * second > 0 ? max(agreement, min(abs(first), abs(second), 0.015) / 2) : agreement
    }

    /// How far a price may move from where another market last agreed with it before one is asked again.
    static let level = 0.004
    /// After so long without a price the next one needs a witness like the first one. Longer if the interval is.
    static let gap = Duration.seconds(60).wholeMilliseconds
    /// A witness whose answer has not changed for so long says nothing of now.
    static let witnessUnchanged = Duration.seconds(3).wholeMilliseconds
    /// How far from the middle of all markets' premiums one can lie.
    static let premium = 0.0065
    /// From so far on it has left them.
    static let stray = 0.006
    /// What of a difference a premium takes over, by the time since it was learned last: a premium is a habit, not a moment.
    static func premiumShare(after elapsed: Int64) -> Double { min(0.5, max(0, Double(elapsed)) / 300_000) }
    /// For so long what a USDT/USD market told may be what USDT is worth now.
    static let tetherTold = Duration.seconds(300).wholeMilliseconds
    /// How far the bitcoin markets and a USDT/USD market may differ over the worth of USDT.
    static let tetherAgreement = 0.01

    /// Two prices are of the same moment if no more than this lies between them.
    static let sideBySide = Duration.seconds(5).wholeMilliseconds
    /// For so long an answer, or what was measured by it, is one of lately.
    static let lately = Duration.seconds(120).wholeMilliseconds
    /// For so long it is known where a market stands, to tell whether it strays.
    static let premiumLasts = Duration.seconds(300).wholeMilliseconds
    /// How much less is known of a source's first price than of the next ones.
    static let levelSlack = 0.003
    /// So many consistent ticks in a row have a jump shown as unconfirmed where nobody can be asked.
    static let ticksToBelieve = 3
    /// For so long after a source was contradicted, persistence alone does not make its jump believed.
    static let contradictionHolds = Duration.seconds(60).wholeMilliseconds
    /// A jump that nobody confirmed and nobody contradicted for so long is the level.
    static let unconfirmedLasts = Duration.seconds(600).wholeMilliseconds
    /// A source that has moved by itself is where it stands if it stays there for so long; one that was contradicted, for longer.
    static let oddLasts = Duration.seconds(180).wholeMilliseconds
    static let suspicionLasts = Duration.seconds(900).wholeMilliseconds
    /// From one look at it to the next it may drift so far.
    static let oddDrift = 0.01
    /// For so long a source has to give the very same answer to be suspected of standing still.
    static let standstill = Duration.seconds(30).wholeMilliseconds
    /// Beside a price that has not changed for so long nothing is learned: it may be the beginning of a standstill.
    static let pause = Duration.seconds(5).wholeMilliseconds
    /// After so long without an answer it may have stopped meanwhile.
    static let longAway = Duration.seconds(600).wholeMilliseconds
    /// Once it is suspected, another one is asked so often.
    static let standstillLook = Duration.seconds(5).wholeMilliseconds
    /// So far the others have to move meanwhile.
    static let standstillMove = 0.0025
    /// From here on USDT is off its peg, and below that it is back: in quiet years it stays within 0.2 %.
    static let offPeg = (from: 0.01, back: 0.008)
    /// The oldest USDT/USD rate that counts. Off its peg a price is converted with one of lately only.
    static let oldestRate = Duration.seconds(3600).wholeMilliseconds
    /// In a median, what lies farther from it is an outlier.
    static let outlier = 0.015
}
