import BTCPriceCore
import BTCPriceFeature
import FoundationEssentials

/// What `watch` shows on a terminal: the line of the price, where it is from and how old it is, what is to be said of it, and a
/// sparkline of what was seen.
struct WatchView {
    private static let bars = Array("▁▂▃▄▅▆▇█")
    /// As many as the widest terminal shows.
    private static let mostSeen = 500

    /// Whether the terminal shows more than ASCII.
    private let isUnicode: Bool
    /// The prices of the ticks that were seen, `nil` where one had none.
    private var seen: [Double?] = []

    init(isUnicode: Bool) {
        self.isUnicode = isUnicode
    }

    /// Whether the environment's locale is one of UTF-8 (locale(7): the first that is set counts).
    static func isUnicode(environment: (String) -> String?) -> Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(environment).filter { !$0.isEmpty }
        let locale = (names.first ?? "").lowercased()
        return locale.contains("utf-8") || locale.contains("utf8")
    }

    /// Takes a tick's state into the sparkline.
    mutating func see(_ state: PriceState) {
        let value = state.freshness == .fresh ? state.quote.flatMap { Double($0.value.description) } : nil
        seen.append(value)
        if seen.count > Self.mostSeen { seen.removeFirst(seen.count - Self.mostSeen) }
    }

    /// The lines at so many columns.
    func lines(
        _ state: PriceState, _ model: PriceViewModel, at now: ObservationTime, width: Int
    ) -> [StyledLine] {
        var lines = price(model, width: width)
        if let quote = state.quote, let (age, isEstimate) = state.age(at: now) {
            var words = [quote.source, "\(quote.market),", "\(isEstimate ? "about " : "")\(Table.text(age)) old"]
            if state.confirmation == .unconfirmed {
                words[2] += ","
                words.append("unconfirmed")
            }
            lines += Self.wrapped(words, width: width).map { StyledLine($0) }
        }
        // That it is unconfirmed stands beside the source.
        for note in [model.banner, model.reason, model.warning].compactMap(\.self) {
            let words = note.split(separator: " ").map(String.init)
            lines += Self.wrapped(words, width: width).map { StyledLine([.init(text: $0, style: .alarm)]) }
        }
        if let sparkline = sparkline(width: width) { lines.append(StyledLine(sparkline)) }
        return lines
    }

    /// The fixed line; where it does not fit, the price goes before its time.
    private func price(_ model: PriceViewModel, width: Int) -> [StyledLine] {
        guard model.price != PriceTexts.placeholder else { return [StyledLine(model.line)] }
        var style: StyledLine.Style
        var mark: String
        switch model.direction {
        case .up: (style, mark) = (.good, isUnicode ? " ▲" : " +")
        case .down: (style, mark) = (.bad, isUnicode ? " ▼" : " -")
        case .flat: (style, mark) = (.plain, "")
        }
        // What is not current goes nowhere.
        if model.banner != nil { (style, mark) = (.plain, "") }
        let price = StyledLine.Part(text: model.price + mark, style: style)
        let time = String(model.line.dropLast(model.price.count))
        let line = StyledLine([.init(text: time), price])
        return line.width < width ? [line] : [StyledLine([price]), StyledLine(model.timestamp)]
    }

    /// The last prices between the lowest and the highest of them, a gap where a tick had none.
    private func sparkline(width: Int) -> String? {
        let shown = seen.suffix(max(1, width - 1))
        let values = shown.compactMap(\.self)
        guard isUnicode, values.count > 1, let low = values.min(), let high = values.max() else { return nil }
        return String(
            shown.map { value -> Character in
                guard let value else { return " " }
                guard high > low else { return Self.bars[3] }
                return Self.bars[Int((value - low) / (high - low) * Double(Self.bars.count - 1) + 0.5)]
            })
    }

    /// Words in lines of less than `width` columns.
    static func wrapped(_ words: [String], width: Int) -> [String] {
        var lines: [String] = []
        for word in words {
            if let last = lines.last, last.count + 1 + word.count < width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(word)
            }
        }
        return lines
    }
}
