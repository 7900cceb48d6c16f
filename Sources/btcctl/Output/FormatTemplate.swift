import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine

/// The template of `--format`: text with fields such as `{price}`. `{{` and `}}` are literal braces; `\n` is a new line, `\t` a tab
/// and `\\` a backslash.
struct FormatTemplate: Equatable {
    enum Field: String, CaseIterable {
        case price, value, time, age, ageMs, source, market, currency, freshness, confirmation, failure, warning,
            direction, uncertainty, symbol
        case sats, tick, timestamp
        case change24h, high24h, low24h, since24h
        case derived
    }

    enum Part: Equatable {
        case text(String)
        case field(Field)
    }

    let parts: [Part]

    /// What stands for a character after a backslash. Before another character, a backslash is itself.
    private static let escapes: [Character: Character] = ["n": "\n", "t": "\t", "\\": "\\"]

    /// - Throws: ``UsageError`` for an empty text, an unmatched brace or an unknown field.
    init(_ text: String) throws(UsageError) {
        guard !text.isEmpty else { throw UsageError("--format is empty; for the price alone: '{price}'") }
        var parts: [Part] = []
        var literal = ""
        var rest = Substring(text)
        while let character = rest.popFirst() {
            guard character == "{" || character == "}" else {
                let escaped = character == "\\" ? rest.first.flatMap { Self.escapes[$0] } : nil
                if escaped != nil { rest.removeFirst() }
                literal.append(escaped ?? character)
                continue
            }
            if rest.first == character {
                literal.append(character)
                rest.removeFirst()
                continue
            }
            guard character == "{", let end = rest.firstIndex(of: "}") else {
                throw UsageError(
                    "a '\(character)' stands alone in --format; '\(character)\(character)' prints one")
            }
            guard let field = Field(rawValue: String(rest[..<end])) else {
                let names = Field.allCases.map(\.rawValue).joined(separator: ", ")
                throw UsageError("there is no {\(rest[..<end])} in --format; there are: \(names)")
            }
            if !literal.isEmpty { parts.append(.text(literal)) }
            literal = ""
            parts.append(.field(field))
            rest = rest[rest.index(after: end)...]
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
        self.parts = parts
    }

    /// The text with its values. A missing value is `-`; a missing failure, warning or derivation is empty.
    func text(_ state: PriceState, _ model: PriceViewModel, at now: ObservationTime) -> String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .field(let field): Self.value(of: field, state, model, at: now)
            }
        }.joined()
    }

    private static func value(
        of field: Field, _ state: PriceState, _ model: PriceViewModel, at now: ObservationTime
    ) -> String {
        let (quote, day) = (state.quote, state.shownDay(at: now.wall))
        let text: String? =
            switch field {
            case .price: model.price
            case .value: quote?.value.description
            case .time: model.timestamp
            case .age: state.age(at: now).map { Table.text($0.age) }
            case .ageMs: state.age(at: now).map { "\($0.age.wholeMilliseconds)" }
            case .source: quote?.source
            case .market: quote?.market
            case .currency: quote?.currency
            case .freshness: state.freshness.rawValue
            case .confirmation: state.confirmation?.rawValue
            case .failure: state.failure ?? ""
            case .warning: state.standing.warning ?? ""
            case .derived: model.derivation ?? ""
            case .uncertainty: state.standing.uncertainty?.plusMinus.description
            case .direction: model.direction.rawValue
            case .symbol: Currency(rawValue: state.currency).map { String($0.symbol.filter { $0 != " " }) }
            case .sats: quote.map { SatoshiFormatter.number($0.value).description }
            case .tick: "\(state.ticks.number)"
            case .change24h: day.map { PriceTexts.percent($0.changePercent) }
            case .high24h: day.map { MoneyFormatter().string(from: $0.high, currency: state.currency) }
            case .low24h: day.map { MoneyFormatter().string(from: $0.low, currency: state.currency) }
            case .since24h: day.map { PriceTexts.span(of: $0, at: now.wall) }
            case .timestamp: quote.map { "\($0.timestamp.milliseconds)" }
            }
        return text ?? PriceTexts.placeholder
    }
}
