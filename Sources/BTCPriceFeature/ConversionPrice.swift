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
    /// - Parameter last: The amount in one more currency, and the price of that one; `nil` for none.
    package func text(_ amount: Amount, and last: (amount: Amount, price: ConversionPrice)? = nil) -> String {
        let converted = amount.converted(at: value)
        var text = AmountFormatter().string(from: amount)
        for unit in [Amount.Unit.btc, .sat, .money(currency)] where unit != amount.unit {
            let other = Amount(converted[unit], unit)
            guard amount.unit.isMoney || unit.isMoney else {
                text += " = \(AmountFormatter().string(from: other))"
                continue
            }
            let range = range(of: amount, in: unit)
            text +=
                sign()
                + Self.text(other, knownTo: range.map { ($0.upperBound - $0.lowerBound).divided(by: 2, places: 12) })
            if let range {
                let ends = [range.lowerBound, range.upperBound].map { AmountFormatter().string(from: Amount($0, unit)) }
                text += " (\(ends[0]) to \(ends[1]))"
            }
        }
        guard let last else { return text }
        return text + sign(with: last.price) + AmountFormatter().string(from: last.amount)
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

    /// An amount, rounded to the second digit of its uncertainty; with all digits if that is not known.
    private static func text(_ amount: Amount, knownTo plusMinus: Price?) -> String {
        guard let plusMinus = plusMinus.flatMap({ Double($0.description) }), plusMinus > 0 else {
            return AmountFormatter().string(from: amount)
        }
        // One digit more than its first one, so that the rounded amount is within the range.
        let digit = Price(1, scale: 1 - Int(log10(plusMinus).rounded(.down)))
        let rounded = AmountFormatter().string(
            from: Amount(amount.value.divided(by: digit, places: 0) * digit, amount.unit))
        return digit >= 1 && rounded.hasSuffix(".00") ? String(rounded.dropLast(3)) : rounded
    }
}
