import BTCPriceCore
import BTCPriceFeature

/// What `watch` shows on a terminal: the price line, its source and age, notes, and a sparkline of the prices seen.
struct WatchView {
    private static let bars = Array("▁▂▃▄▅▆▇█")
    /// The maximum number of prices kept: enough for the widest terminal.
    private static let mostSeen = 500

    /// Whether the terminal shows characters beyond ASCII.
    private let isUnicode: Bool
    /// The prices of the ticks seen; `nil` for a tick without a fresh price.
    private var seen: [Double?] = []

    init(isUnicode: Bool) {
        self.isUnicode = isUnicode
    }

    /// Adds a tick's state to the sparkline.
    mutating func see(_ state: PriceState) {
        let value = state.freshness == .fresh ? state.quote.flatMap { Double($0.value.description) } : nil
        seen.append(value)
        if seen.count > Self.mostSeen { seen.removeFirst(seen.count - Self.mostSeen) }
    }

    /// Adds the prices of the last minutes before those already seen.
    mutating func see(_ candles: [Candle]) {
        seen = Array((candles.map { Double($0.close.description) } + seen).suffix(Self.mostSeen))
    }

    /// The lines for this width in columns.
    func lines(
        _ state: PriceState, _ model: PriceViewModel, at now: ObservationTime, width: Int
    ) -> [StyledLine] {
        var lines = price(model, width: width)
        if let quote = state.quote {
            let age = state.age(at: now).map { "\($0.isEstimate ? "about " : "")\(Table.text($0.age)) old" }
            var words = [quote.sourceText, "\(quote.market),", age ?? "of unknown age"]
            if let note = model.derivation.map({ "derived: \($0)" }) ?? (model.isUnconfirmed ? "unconfirmed" : nil) {
                words[2] += ","
                words += note.split(separator: " ").map(String.init)
            }
            lines += Table.wrapped(words, width: width).map { StyledLine($0) }
        }
        if let day = model.day {
            lines += Table.wrapped(day.split(separator: " ").map(String.init), width: width).map { StyledLine($0) }
        }
        // The note on an unconfirmed price is next to the source.
        for note in [model.banner, model.reason, model.warning].compactMap(\.self) {
            let words = note.split(separator: " ").map(String.init)
            lines += Table.wrapped(words, width: width).map { StyledLine([.init(text: $0, style: .alarm)]) }
        }
        if let sparkline = sparkline(width: width) { lines.append(StyledLine(sparkline)) }
        return lines
    }

    /// The price line. If it does not fit, the price comes first and the time is on a second line.
    private func price(_ model: PriceViewModel, width: Int) -> [StyledLine] {
        guard model.price != PriceTexts.placeholder else { return [StyledLine(model.line)] }
        // A price that is not current has no direction.
        let (style, mark): (StyledLine.Style, String) =
            switch model.banner == nil ? model.direction : .flat {
            case .up: (.good, isUnicode ? " ▲" : " +")
            case .down: (.bad, isUnicode ? " ▼" : " -")
            case .flat: (.plain, "")
            }
        let price = StyledLine.Part(text: model.price + mark, style: style)
        let time = PriceTexts.line(model.timestamp, "")
        let line = StyledLine([.init(text: time), price])
        return line.width < width ? [line] : [StyledLine([price]), StyledLine(model.timestamp)]
    }

    /// The last prices, scaled between their minimum and maximum, with a gap for a tick without a price.
    private func sparkline(width: Int) -> String? {
        // The last line has room for the ^C that a terminal echoes.
        let shown = seen.suffix(max(1, width - 3))
        let values = shown.compactMap(\.self)
        guard isUnicode, values.count > 1, let low = values.min(), let high = values.max() else { return nil }
        return String(
            shown.map { value -> Character in
                guard let value else { return " " }
                guard high > low else { return Self.bars[3] }
                return Self.bars[Int((value - low) / (high - low) * Double(Self.bars.count - 1) + 0.5)]
            })
    }
}
