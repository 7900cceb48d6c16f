import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// What `top` knows. A pure value.
struct TopContent {
    /// The state that is shown; `nil` before the first.
    var state: PriceState?
    /// The same as texts.
    var model: PriceViewModel
    /// Why no newer state comes; `nil` while they come. The state is stale then.
    var lost: String?
    /// What is to be known of the sources; `nil` for nothing.
    var note: String?
    var sources: [SourceReport] = []
    /// By their start.
    var events: [EventMessage] = []
    var history: ChartCandles
    /// Whether the daemon refused to read its history.
    var historyIsRefused = false
    /// The reader's clocks; those of the moment in which the picture was frozen.
    var now: ObservationTime
}

/// The picture of `top`: a pure function of what is known, what the user has chosen, and the size.
struct TopView {
    /// The smallest terminal in columns and rows.
    static let least = (width: 30, height: 8)

    let symbols: Chart.Symbols
    let timestamps: TimestampFormatter
    /// The chart drawn last. It is drawn again when its candles change, which they do once a minute, and when the present moves by half a
    /// column.
    private var chart: (key: ChartKey, lines: [StyledLine])?

    private struct ChartKey: Hashable {
        let span: ChartSpan
        let isCandles: Bool
        let width: Int
        let height: Int
        let currency: String
        let count: Int
        let last: Candle?
        let isRefused: Bool
        let column: Int64
    }

    init(symbols: Chart.Symbols, timestamps: TimestampFormatter) {
        (self.symbols, self.timestamps) = (symbols, timestamps)
    }

    private var isASCII: Bool { symbols == .ascii }

    /// The lines from the top, and how many rows of the markets have no room.
    mutating func picture(
        _ content: TopContent, _ state: TopState, in size: (width: Int, height: Int)
    ) -> (lines: [StyledLine], hidden: Int) {
        guard size.width >= Self.least.width, size.height >= Self.least.height else {
            let note =
                "The terminal is too small: \(size.width)x\(size.height), and \(Self.least.width)x\(Self.least.height) are needed."
            return (Table.wrapped("", note, width: max(2, size.width)).prefix(size.height).map { StyledLine($0) }, 0)
        }
        // The last column stays free.
        let width = size.width - 1
        if state.isHelp { return (help(state, width, size.height), 0) }
        let head = head(content, state, width, height: size.height)
        let room = size.height - head.count - 1
        let (markets, events) = (markets(content, width), events(content, width))
        let rows = rows(room: room, markets: markets.count, events: events.count)
        var lines = head
        if rows.chart > 0 { lines += drawn(content, state, width, rows.chart) }
        // Without the heads of the columns if there is hardly room for the rows.
        let hasHead = rows.markets > 3 || rows.markets >= markets.count
        let shown = max(0, rows.markets - (hasHead ? 1 : 0))
        let hidden = max(0, markets.count - 1 - shown)
        if !markets.isEmpty, rows.markets > 0 {
            if hasHead { lines.append(StyledLine([.init(text: markets[0], style: .faint)])) }
            // What they said before the daemon was lost.
            let style: StyledLine.Style = content.lost == nil ? .plain : .faint
            lines += markets.dropFirst(1 + min(state.scrolled, hidden)).prefix(shown)
                .map { StyledLine([.init(text: $0, style: style)]) }
        }
        if rows.events > 0 {
            lines.append(StyledLine([.init(text: "Lately", style: .faint)]))
            lines += events.suffix(rows.events - 1).map { StyledLine($0) }
        }
        lines += Array(repeating: StyledLine(""), count: max(0, size.height - 1 - lines.count))
        return (Array(lines.prefix(size.height - 1)) + [footer(state, hidden, width)], hidden)
    }

    /// The rows of the chart with its title, of the markets, and of the events. The chart has what the markets leave, and at least half;
    /// the events have a quarter if the markets are whole.
    private func rows(room: Int, markets: Int, events: Int) -> (chart: Int, markets: Int, events: Int) {
        let least = Chart.least.height + 1
        guard room >= least else { return (0, room, 0) }
        let lately = min(events, room / 4)
        let events = room / 2 - markets >= lately ? lately : 0
        let chart = max(least, min(room, max(room - markets - events, room / 2)))
        return (chart, room - chart - events, events)
    }

    // MARK: - The price

    private func head(_ content: TopContent, _ state: TopState, _ width: Int, height: Int) -> [StyledLine] {
        let model = content.model
        let currency = content.state?.currency ?? state.currency ?? ""
        var title: [StyledLine.Part] = [.init(text: "BTC\(currency.isEmpty ? "" : "/\(currency)")", style: .strong)]
        if model.timestamp != PriceTexts.placeholder { title.append(.init(text: "  \(model.timestamp)")) }
        if state.isFrozen { title.append(.init(text: "  frozen", style: .alarm)) }
        // The day, if it has room beside the time.
        let day = model.day.map { "  \($0)" } ?? ""
        let hasDay = StyledLine(title).width + day.count <= width
        if hasDay { title.append(.init(text: day)) }
        var lines = [StyledLine(title)]
        let (style, mark): (StyledLine.Style, String) =
            switch model.banner == nil ? model.direction : .flat {
            case .up: (.good, isASCII ? "+" : "▲")
            case .down: (.bad, isASCII ? "-" : "▼")
            case .flat: (.plain, "")
            }
        let facts = facts(content) + (hasDay ? [] : [model.day].compactMap(\.self))
        let large = isASCII || height < 18 ? [] : LargeDigits.rows(model.price)
        let largeWidth = large.map(\.count).max() ?? 0
        // Beside the large digits, or below them.
        let beside = width - largeWidth - 5
        if large.isEmpty || largeWidth >= width || model.price == PriceTexts.placeholder {
            lines.append(StyledLine([.init(text: mark.isEmpty ? model.price : "\(model.price) \(mark)", style: style)]))
            lines += Table.wrapped(facts.joined(separator: ", ").split(separator: " ").map(String.init), width: width)
                .prefix(height < 18 ? 2 : 4).map { StyledLine($0) }
        } else {
            let texts = beside >= 24 ? facts : []
            for (index, row) in large.enumerated() {
                let pointer = index == 0 ? mark : ""
                lines.append(
                    StyledLine([
                        .init(text: Table.padded(row, largeWidth) + " \(Table.padded(pointer, 1))  ", style: style),
                        .init(text: index < texts.count ? cut(texts[index], beside) : ""),
                    ]))
            }
            if texts.isEmpty { lines += facts.map { StyledLine(cut($0, width)) } }
        }
        // At most a third of the screen. What a key says comes first, because its user waits for it.
        let notes = [
            state.note, model.banner, content.lost ?? model.reason, model.doubt, height < 18 ? nil : content.note,
        ]
        lines += notes.compactMap(\.self)
            .flatMap { Table.wrapped($0.split(separator: " ").map(String.init), width: width) }
            .prefix(height / 3).map { StyledLine([.init(text: $0, style: .alarm)]) }
        return lines
    }

    /// What is known of the price: how sure it is, its source and its age.
    private func facts(_ content: TopContent) -> [String] {
        guard let state = content.state, let quote = state.quote else { return [] }
        let age = state.age(at: content.now).map { "\($0.isEstimate ? "about " : "")\(Table.text($0.age)) old" }
        let sure =
            state.freshness == .fresh && state.derivation == nil ? state.confirmation.map(StatusText.words(for:)) : nil
        return [
            sure, StatusText.uncertainty(of: state, isUnicode: !isASCII),
            "\(quote.sourceText) \(quote.market), \(age ?? "of unknown age")",
            content.model.derivation.map { "derived: \($0)" },
        ].compactMap(\.self)
    }

    // MARK: - The chart

    private mutating func drawn(_ content: TopContent, _ state: TopState, _ width: Int, _ rows: Int) -> [StyledLine] {
        let (history, now) = (content.history, content.now.wall.wholeSeconds)
        let range = history.span.range(now: now, first: history.candles.first?.start)
        let column = max(1, (range.upperBound - range.lowerBound) / Int64(2 * width))
        let key = ChartKey(
            span: history.span, isCandles: state.isCandles, width: width, height: rows, currency: history.currency,
            count: history.candles.count, last: history.candles.last, isRefused: content.historyIsRefused,
            column: now / column)
        if let chart, chart.key == key { return chart.lines }
        let axis = history.span.axis(
            now: now, first: history.candles.first?.start, isUTC: timestamps.isUTC, width: width)
        let drawn = Chart(
            history.candles, axis: axis, currency: history.currency, size: (width, rows - 1),
            isCandles: state.isCandles, symbols: symbols
        ).lines
        var lines: [StyledLine]
        if drawn.isEmpty {
            let note =
                content.historyIsRefused
                ? "the daemon keeps no history that can be read." : "nothing is known of this time."
            lines = [StyledLine("\(history.span.name): \(note)")]
            lines += Array(repeating: StyledLine(""), count: rows - 1)
        } else {
            let title = ChartTitle(history.candles, currency: history.currency, span: history.span, now: now)
            lines = [StyledLine(title.parts(width: width))] + drawn
        }
        chart = (key, lines)
        return lines
    }

    // MARK: - The markets

    /// A row for each source below the heads of the columns.
    private func markets(_ content: TopContent, _ width: Int) -> [String] {
        guard !content.sources.isEmpty else { return [] }
        let texts = SourcesText(timestamps: timestamps)
        let rows = content.sources.map { report in
            let currency = SourcesText.currency(report)
            let number = { (price: Price) in MoneyFormatter().number(price, currency: currency) }
            return [
                String(report.letter), report.name, report.market,
                report.lastPrice.map(number) ?? PriceTexts.placeholder,
                report.claim.map { "\(number($0.low)) to \(number($0.high))" } ?? PriceTexts.placeholder,
                report.lastSuccess.map { texts.age($0, content.now) } ?? "never", texts.words(report, at: content.now),
            ]
        }
        var table = [["", "Source", "Market", "Price", "Interval", "Age", "Why"]] + rows
        // The reason has at least 18 columns; the market, the interval and the age go first.
        for column in [2, 4, 5] where Self.width(of: table) + 18 > width {
            table = table.map { row in row.enumerated().map { $0.offset == column ? "" : $0.element } }
        }
        return Table.lines(Self.packed(table)).map { cut($0, width) }
    }

    /// A head, and the last events.
    private func events(_ content: TopContent, _ width: Int) -> [String] {
        guard !content.events.isEmpty else { return [] }
        let lines = EventsText(timestamps: timestamps).lines(content.events.suffix(20), at: content.now)
        return ["Lately"] + lines.map { cut($0, width) }
    }

    /// The width of all columns but the last.
    private static func width(of table: [[String]]) -> Int {
        guard let first = table.first else { return 0 }
        return first.indices.dropLast().reduce(0) { sum, column in
            let width = table.map { $0[column].count }.max() ?? 0
            return sum + (width == 0 ? 0 : width + 2)
        }
    }

    /// The table without its empty columns.
    private static func packed(_ table: [[String]]) -> [[String]] {
        let kept = table[0].indices.filter { column in table.contains { !$0[column].isEmpty } }
        return table.map { row in kept.map { row[$0] } }
    }

    // MARK: - The keys

    private func footer(_ state: TopState, _ hidden: Int, _ width: Int) -> StyledLine {
        var parts: [StyledLine.Part] = []
        var left = width
        for hint in state.hints(hidden: hidden) {
            let text = (parts.isEmpty ? "" : "  ") + "\(hint.keys) \(hint.name)"
            guard text.count <= left else { break }
            left -= text.count
            parts.append(.init(text: text, style: hint.obstacle == nil ? .plain : .faint))
        }
        return StyledLine(parts)
    }

    private func help(_ state: TopState, _ width: Int, _ height: Int) -> [StyledLine] {
        let keys = state.hints(hidden: 0).flatMap { Table.wrapped(Table.padded($0.keys, 7), $0.help, width: width) }
        let more = [
            "Ctrl-C ends, too, Ctrl-L draws the screen again, Ctrl-Z stops until fg.",
            "The letter of a market: 'btcctl sources -v' explains it.",
            "For a screen reader: 'btcctl watch | cat' prints a line at each tick.",
        ].flatMap { Table.wrapped("", $0, width: width) }
        let lines = (["btcctl top", ""] + keys + [""] + more).prefix(height - 1)
        return lines.map { StyledLine($0) } + Array(repeating: StyledLine(""), count: height - 1 - lines.count)
            + [footer(state, 0, width)]
    }

    private func cut(_ text: String, _ width: Int) -> String {
        StyledLine(text).cut(to: width, isUnicode: !isASCII).text(isColored: false)
    }
}
