import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// `btcctl currencies` as text: a row for each currency.
struct CurrenciesText {
    let timestamps: ReaderTimestampFormatter

    func lines(_ currencies: [CurrencyMessage], at now: ObservationTime) -> [String] {
        let head = ["Currency", "Price", "Age", "State", "Every", "Sources"]
        return Table.lines([head] + currencies.map { row($0, at: now) })
    }

    private func row(_ currency: CurrencyMessage, at now: ObservationTime) -> [String] {
        let state = currency.price.state
        let model = PriceViewModel(timestampFormatter: timestamps)
        model.show(state, at: now)
        let kind = state.derivation == nil ? state.confirmation?.rawValue : "derived"
        return [
            currency.currency, model.price, state.age(at: now).map { Table.text($0.age) } ?? PriceTexts.placeholder,
            [state.freshness.rawValue, kind].compactMap(\.self).joined(separator: ", "),
            Table.text(.milliseconds(currency.interval)), currency.sources.joined(separator: ", "),
        ]
    }
}
