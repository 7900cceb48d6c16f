import BTCPriceCore
import BTCPriceFeature

/// An alert fires.
struct Firing: Sendable, Hashable {
    /// When the condition began to hold.
    enum Moment: Sendable, Hashable {
        /// While prices were checked.
        case seen(Timestamp)
        /// While none was: the history says when. `isOver`: it holds no more.
        case missed(Timestamp, isOver: Bool)
        /// While none was, and the history does not say when. `isOver`: it holds no more.
        case between(Timestamp, Timestamp, isOver: Bool)
    }

    let alert: Alert
    let moment: Moment
    /// Whether only unconfirmed prices of the history say so.
    let wasUnconfirmed: Bool
    let heldBack: Int
    /// For a change: the prices between which it was.
    let move: PriceMove?
    /// What is known of the price now.
    let state: PriceState
    /// When it fires.
    let time: Timestamp

    /// Identifies the firing. A repetition has the same.
    var id: String { "\(alert.name)-\(time.milliseconds)" }

    /// What it says: `Bitcoin is below $60,000.00: $59,990.00.`
    /// - Parameter timestamps: Formats times of the past.
    func message(_ timestamps: TimestampFormatter) -> String {
        let money = { (value: Price) in MoneyFormatter().string(from: value, currency: alert.currency) }
        let price = PriceTexts.money(state)
        var text: String
        switch alert.rule.condition {
        case .above(let bound): text = "Bitcoin \(verb) above \(money(bound))"
        case .below(let bound): text = "Bitcoin \(verb) below \(money(bound))"
        case .change(let change, let within):
            text = "Bitcoin has \(moved(change, money))\(within.map { " within \($0.wholeUnits)" } ?? "")"
        case .stale(let longest): text = "There has been no fresh price in \(alert.currency) for \(longest.wholeUnits)"
        case .unsure: text = "The price in \(alert.currency) is unsure"
        }
        var isOver = false
        switch moment {
        case .seen: break
        case .missed(let time, let ended):
            text += ", at \(timestamps.string(from: time)), while no price was checked"
            isOver = ended
        case .between(let start, let end, let ended):
            text += ", between \(timestamps.string(from: start)) and \(timestamps.string(from: end))"
            isOver = ended
        }
        if wasUnconfirmed { text += "; no other exchange confirmed that" }
        if isOver { text += "; that is over" }
        if let price { text += ": \(state.freshness == .fresh ? "" : "last ")\(price)" }
        let isUnconfirmed = state.freshness == .fresh && state.confirmation == .unconfirmed
        text += isUnconfirmed ? ", which no other exchange confirms." : "."
        if case .unsure = alert.rule.condition, let warning = state.standing.warning { text += " \(sentence(warning))" }
        if case .stale = alert.rule.condition, let failure = state.failure { text += " \(sentence(failure))" }
        return heldBack == 0 ? text : "\(text) It did \(heldBack) more times since the last message."
    }

    /// `fallen by 5.2 %`, in the unit of the condition.
    private func moved(_ change: PriceChange, _ money: (Price) -> String) -> String {
        guard let move else { return "moved" }
        let distance = (move.to - move.from).magnitude
        let verb = move.direction == .down ? "fallen" : "risen"
        switch change {
        case .amount: return "\(verb) by \(money(distance))"
        case .percent: return "\(verb) by \((distance * 100).divided(by: move.from, places: 2)) %"
        }
    }

    private func sentence(_ reason: String) -> String { reason.hasSuffix("?") ? reason : "\(reason)." }

    private var verb: String {
        if case .seen = moment { return "is" }
        return "went"
    }
}
