package import BTCPriceCore

/// The line above a chart: the price, and how it changed in the span.
package struct ChartTitle: Sendable {
    private let candles: [Candle]
    private let currency: String
    private let span: ChartSpan
    private let now: Int64

    /// - Parameters:
    ///   - candles: The candles of the chart.
    ///   - currency: ISO 4217
    ///   - now: The present, Unix seconds.
    package init(_ candles: [Candle], currency: String, span: ChartSpan, now: Int64) {
        self.candles = candles
        self.currency = currency
        self.span = span
        self.now = now
    }

    /// `24h`, or `since 7 h` if less is known.
    private func known(since start: Int64) -> String {
        let range = span.range(now: now, first: start)
        let length = range.upperBound - range.lowerBound
        guard start - range.lowerBound > length / 20 else { return span.name }
        if span.end != nil { return "\(span.name), known in part" }
        return now - start < 60 ? span.name : PriceTexts.since(minutes: (now - start) / 60)
    }

    /// `BTC/USD $68,901.23  24h +1.25 %  low $67,800.00  high $69,120.50`, cut to fit. A stale price and candles in doubt come first. A
    /// chart of the past has no present price: `BTC/USD  Aug 1 to Aug 25 +1.25 %  low $67,800.00  high $69,120.50`.
    package func parts(_ state: PriceState, width: Int) -> [StyledLine.Part] {
        let money = MoneyFormatter()
        let price = state.quote.map { money.string(from: $0.value, currency: currency) } ?? PriceTexts.placeholder
        let isPast = span.end != nil
        let head = StyledLine.Part(text: "BTC/\(currency)\(isPast ? "" : " \(price)")")
        var more = change
        guard !more.isEmpty else { return [head] }
        // What is known of the price comes before what is known of the candles.
        if !isPast, let doubt = state.doubt { more.insert(StyledLine.Part(text: doubt, style: .bad), at: 0) }
        if !isPast, state.freshness != .fresh { more.insert(StyledLine.Part(text: "not current", style: .bad), at: 0) }
        return Self.fitting([head] + more, width)
    }

    /// `24h +1.25 %  low $67,800.00  high $69,120.50`, cut to fit. Candles in doubt come first. Empty without candles.
    package func parts(width: Int) -> [StyledLine.Part] { Self.fitting(change, width) }

    private var change: [StyledLine.Part] {
        let money = MoneyFormatter()
        let shown = candles.withoutDoubt
        guard let first = shown.first, let last = shown.last, let low = shown.map(\.low).min(),
            let high = shown.map(\.high).max()
        else { return [] }
        let day = PriceDay(
            since: Timestamp(milliseconds: first.start * 1000), open: first.open, high: high, low: low,
            close: last.close)
        let style: StyledLine.Style = day.change < .zero ? .bad : .good
        var parts = [
            StyledLine.Part(
                text: "\(known(since: first.start)) \(PriceTexts.percent(day.changePercent))", style: style),
            StyledLine.Part(text: "low \(money.string(from: low, currency: currency))"),
            StyledLine.Part(text: "high \(money.string(from: high, currency: currency))"),
        ]
        let unconfirmed = candles.count(where: \.isInDoubt)
        // The first and the last one may begin before the span, or end after it.
        let partial = candles.dropFirst().dropLast().count { $0.covered != nil }
        for (count, what) in [(unconfirmed, "unconfirmed"), (partial, "known in part")] where count > 0 {
            parts.insert(StyledLine.Part(text: "\(count) of \(candles.count) \(what)", style: .bad), at: 0)
        }
        return parts
    }

    /// The parts that have room, two spaces apart. The first one always has.
    private static func fitting(_ parts: [StyledLine.Part], _ width: Int) -> [StyledLine.Part] {
        var (kept, left) = ([StyledLine.Part](), width)
        for part in parts {
            let text = (kept.isEmpty ? "" : "  ") + part.text
            guard kept.isEmpty || text.count <= left else { continue }
            kept.append(StyledLine.Part(text: text, style: part.style))
            left -= text.count
        }
        return kept
    }
}
