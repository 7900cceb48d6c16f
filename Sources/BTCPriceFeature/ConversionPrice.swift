package import BTCPriceCore
import Glibc

/// A price that amounts are computed with. What is computed from it is as uncertain as it is.
package struct ConversionPrice: Sendable, Hashable {
    package let value: Price
    package let currency: Currency
    /// Whether the price is in doubt, old, or only known to be in a range.
    package let isApproximate: Bool
    package let isDerived: Bool
    /// Where the price is or was; `nil` if it is exact or nobody can say it.
    package let range: ClosedRange<Price>?

    /// The price of a state; `nil` without one.
    package init?(_ state: PriceState) {
        guard let quote = state.quote, let currency = Currency(rawValue: quote.currency) else { return nil }
        (value, self.currency) = (quote.value, currency)
        isApproximate = state.isApproximate
        isDerived = state.derivation != nil
        let plusMinus = isApproximate ? state.standing.uncertainty?.plusMinus : nil
        range = plusMinus.flatMap { $0 < quote.value ? (quote.value - $0)...(quote.value + $0) : nil }
    }

    /// The price of a moment.
    package init(_ candle: Candle, _ price: Price, isCoarse: Bool, in currency: Currency) {
        (value, self.currency, isDerived) = (price, currency, candle.isDerived)
        isApproximate = isCoarse || candle.isInDoubt || candle.isDerived
        range = isCoarse ? candle.low...candle.high : nil
    }

    /// `0.05 BTC = 5,000,000 sat = $3,445.06`: an amount, then the other units. What an approximate price makes has only the digits that
    /// are known, and its range: `0.05 BTC = 5,000,000 sat = about $3,397 ($3,329.53 to $3,425.62)`.
    /// - Parameter other: The price in a currency that is not the amount's, for money in it; `nil` for none.
    package func text(_ amount: Amount, and other: ConversionPrice? = nil) -> String {
        let converted = amount.converted(at: value)
        var text = AmountFormatter().string(from: amount)
        for unit in [Amount.Unit.btc, .sat, .money(currency)] where unit != amount.unit {
            let result = Amount(converted[unit], unit)
            let isExact = !amount.unit.isMoney && !unit.isMoney
            text +=
                isExact
                ? " = \(AmountFormatter().string(from: result))"
                : sign() + Self.text(result, range(of: amount, in: unit))
        }
        guard let other else { return text }
        let (money, range) = money(amount.value, by: other)
        return text + sign(with: other) + Self.text(Amount(money, .money(other.currency)), range)
    }

    /// What money in this currency is in another one.
    /// - Returns: To eight places; the range is `nil` if the amount is exact or nobody can say it.
    package func money(_ money: Price, by other: ConversionPrice) -> (money: Price, range: ClosedRange<Price>?) {
        let convert = { (own: Price, theirs: Price) in (money * theirs).divided(by: own, places: 8) }
        let isKnown = [self, other].allSatisfy { !$0.isApproximate || $0.range != nil }
        guard isKnown, isApproximate || other.isApproximate else { return (convert(value, other.value), nil) }
        let (own, theirs) = (range ?? value...value, other.range ?? other.value...other.value)
        let ends = [convert(own.upperBound, theirs.lowerBound), convert(own.lowerBound, theirs.upperBound)].sorted()
        return (convert(value, other.value), ends[0]...ends[1])
    }

    /// An amount in another unit at the ends of the price's range; `nil` without a range.
    package func range(of amount: Amount, in unit: Amount.Unit) -> ClosedRange<Price>? {
        guard let range else { return nil }
        let ends = [range.lowerBound, range.upperBound].map { amount.converted(at: $0)[unit] }.sorted()
        return ends[0]...ends[1]
    }

    private func sign(with other: ConversionPrice? = nil) -> String {
        if isDerived || other?.isDerived == true { return " ≈ " }
        return isApproximate || other?.isApproximate == true ? " = about " : " = "
    }

    /// An amount, rounded to the second digit of its uncertainty, and its range; with all digits if that is not known.
    private static func text(_ amount: Amount, _ range: ClosedRange<Price>?) -> String {
        guard let range else { return AmountFormatter().string(from: amount) }
        let ends = [range.lowerBound, range.upperBound].map {
            AmountFormatter().string(from: Amount($0, amount.unit))
        }
        let plusMinus = (range.upperBound - range.lowerBound).divided(by: 2, places: 12)
        return "\(text(amount, knownTo: plusMinus)) (\(ends[0]) to \(ends[1]))"
    }

    private static func text(_ amount: Amount, knownTo plusMinus: Price) -> String {
        guard let plusMinus = Double(plusMinus.description), plusMinus > 0 else {
            return AmountFormatter().string(from: amount)
        }
        // One digit more than its first one, so that the rounded amount is within the range.
        let digit = Price(1, scale: 1 - Int(log10(plusMinus).rounded(.down)))
        let rounded = AmountFormatter().string(
            from: Amount(amount.value.divided(by: digit, places: 0) * digit, amount.unit))
        return digit >= 1 && rounded.hasSuffix(".00") ? String(rounded.dropLast(3)) : rounded
    }
}
