package import BTCPriceCore

/// A chart of candles as lines of text: prices on the right, times below, the highest and the lowest price marked. A pure value.
package struct Chart: Sendable {
    package struct Axis: Sendable, Hashable {
        /// The span that is shown, Unix seconds.
        package let range: Range<Int64>
        /// Times with their labels, from the oldest to the newest.
        package let labels: [Label]

        package struct Label: Sendable, Hashable {
            package let second: Int64
            package let text: String
        }
    }

    /// What a line is drawn with.
    package enum Symbols: String, Sendable, CaseIterable {
        /// Braille characters, of two by four dots (Unicode, Braille Patterns).
        case braille
        /// Quarters of a character (Unicode, Block Elements), for fonts without braille.
        case blocks
        case ascii

        /// The dots of a character.
        fileprivate var dots: (across: Int, down: Int) {
            switch self {
            case .braille: (2, 4)
            case .blocks: (2, 2)
            case .ascii: (1, 1)
            }
        }

        private static let quarters = Array(" ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█")
        /// The numbers of the dots are 1, 2, 3, 7 on the left, and 4, 5, 6, 8 on the right.
        private static let brailleBits: [UInt32] = [0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80]

        /// The character with these dots, row by row.
        fileprivate func character(_ dots: [Bool]) -> Character {
            guard dots.contains(true) else { return " " }
            switch self {
            case .braille:
                let code = zip(dots, Self.brailleBits).reduce(0) { $0 | ($1.0 ? $1.1 : 0) }
                return Unicode.Scalar(0x2800 + code).map(Character.init) ?? " "
            case .blocks: return Self.quarters[dots.enumerated().reduce(0) { $0 | ($1.element ? 1 << $1.offset : 0) }]
            case .ascii: return "*"
            }
        }
    }

    /// The minimum size of a chart in columns and rows.
    package static let least = (width: 16, height: 6)

    private let candles: [Candle]
    private let axis: Axis
    private let currency: String
    private let size: (width: Int, height: Int)
    private let isCandles: Bool
    private let symbols: Symbols
    private var isASCII: Bool { symbols == .ascii }

    /// - Parameters:
    ///   - candles: From the oldest to the newest. Those in doubt are left out, unless all are.
    ///   - currency: ISO 4217
    ///   - size: Columns and rows, the axes included; at least ``least``.
    package init(
        _ candles: [Candle], axis: Axis, currency: String, size: (width: Int, height: Int), isCandles: Bool = false,
        symbols: Symbols = .braille
    ) {
        self.candles = candles.filter { axis.range.contains($0.start) }.withoutDoubt
        self.axis = axis
        self.currency = currency
        self.size = (max(size.width, Self.least.width), max(size.height, Self.least.height))
        self.isCandles = isCandles
        self.symbols = symbols
    }

    private typealias Cell = (character: Character, style: StyledLine.Style)

    /// The lines of the chart, from the top. Each is at most as wide as the size. Empty if there are no candles.
    package var lines: [StyledLine] {
        guard let low = candles.map(\.low).min(), let high = candles.map(\.high).max() else { return [] }
        let rows = size.height - 2
        let scale = Scale(low: low.chartValue, high: high.chartValue, rows: rows, currency: currency)
        // If the price labels would leave fewer columns than the minimum for the drawing, they are omitted, never cut.
        let isLabelled = size.width - scale.width - 2 >= Self.least.width
        let columns = isLabelled ? size.width - scale.width - 2 : size.width - 1
        var cells = isCandles ? candleCells(scale, columns, rows) : lineCells(scale, columns, rows)
        markExtremes(&cells, scale)
        let labels = isLabelled ? scale.labels : [:]
        var lines = cells.enumerated().map { row, cells in
            let mark = labels[row] == nil ? (isASCII ? "|" : "│") : (isASCII ? "+" : "┤")
            let label = StyledLine.Part(text: "\(mark)\(labels[row].map { " \($0)" } ?? "")")
            return StyledLine(Self.parts(cells) + [label])
        }
        lines += timeAxis(columns).map { StyledLine($0) }
        return lines
    }

    private static func parts(_ cells: [Cell]) -> [StyledLine.Part] {
        cells.reduce(into: []) { parts, cell in
            // A space has no colour.
            if let last = parts.last, last.style == cell.style || cell.character == " " {
                parts[parts.count - 1].text.append(cell.character)
            } else {
                parts.append(StyledLine.Part(text: String(cell.character), style: cell.style))
            }
        }
    }

    /// Writes the highest and the lowest price next to their positions, where nothing is drawn.
    private func markExtremes(_ cells: inout [[Cell]], _ scale: Scale) {
        guard let high = candles.max(by: { $0.high < $1.high }), let low = candles.min(by: { $0.low < $1.low }) else {
            return
        }
        let columns = cells[0].count
        for (price, second, mark) in [
            (high.high, high.start, isASCII ? "^" : "▲"), (low.low, low.start, isASCII ? "v" : "▼"),
        ] {
            let label = Array("\(mark) \(MoneyFormatter().number(price, currency: currency))")
            let row = scale.row(of: price.chartValue, among: cells.count)
            let column = column(of: second, among: columns)
            // To the right of the position, otherwise to the left, otherwise at the nearest column with enough room.
            let starts =
                [column + 1, column - label.count] + (0..<columns).sorted { abs($0 - column) < abs($1 - column) }
            let start = starts.first { start in
                start >= 0 && start + label.count <= columns
                    && cells[row][start..<start + label.count].allSatisfy { $0.character == " " }
            }
            guard let start else { continue }
            for (index, character) in label.enumerated() { cells[row][start + index] = (character, .plain) }
        }
    }

    // MARK: - The line

    private func lineCells(_ scale: Scale, _ columns: Int, _ rows: Int) -> [[Cell]] {
        let (across, down) = symbols.dots
        let dots = dots(scale, columns * across, rows * down)
        let style: StyledLine.Style =
            (candles.last?.close ?? .zero) < (candles.first?.open ?? .zero) ? .bad : .good
        return (0..<rows).map { row in
            (0..<columns).map { column in
                let own = (0..<down).flatMap { dots[row * down + $0][column * across..<(column + 1) * across] }
                return (symbols.character(own), style)
            }
        }
    }

    /// The dots of the line: from the lowest to the highest price of each column, joined with the column before.
    private func dots(_ scale: Scale, _ columns: Int, _ rows: Int) -> [[Bool]] {
        var dots = [[Bool]](repeating: [Bool](repeating: false, count: columns), count: rows)
        var before: (x: Int, close: Double)?
        // Candles farther apart than this have a gap between them.
        let gap = max(2, 2 * columns / max(1, candles.count))
        for (x, bucket) in buckets(columns).enumerated() {
            guard let bucket else { continue }
            var (low, high) = (bucket.low.chartValue, bucket.high.chartValue)
            if let before, x - before.x <= gap {
                for between in before.x + 1..<max(before.x + 1, x) {
                    let part = Double(between - before.x) / Double(x - before.x)
                    let value = before.close + (bucket.open.chartValue - before.close) * part
                    dots[scale.row(of: value, among: rows)][between] = true
                }
                (low, high) = (min(low, before.close), max(high, before.close))
            }
            for y in scale.row(of: high, among: rows)...scale.row(of: low, among: rows) { dots[y][x] = true }
            before = (x, bucket.close.chartValue)
        }
        return dots
    }

    // MARK: - The candles

    /// The part of a candle that fills half of a character.
    private enum Ink: Int {
        case none
        case wick
        case body
    }

    private static let strokes: [[Character]] = [[" ", "╷", "╻"], ["╵", "│", "╽"], ["╹", "╿", "┃"]]

    /// One candle per column, with a resolution of half a row.
    private func candleCells(_ scale: Scale, _ columns: Int, _ rows: Int) -> [[Cell]] {
        let buckets = buckets(columns)
        return (0..<rows).map { row in
            buckets.map { bucket in
                guard let bucket else { return (" ", .plain) }
                let halves = [2 * row, 2 * row + 1].map { ink(of: bucket, $0, scale, rows) }
                let ascii: Character = halves.contains(.body) ? "#" : halves.contains(.wick) ? "|" : " "
                return (
                    isASCII ? ascii : Self.strokes[halves[0].rawValue][halves[1].rawValue],
                    bucket.close < bucket.open ? .bad : .good
                )
            }
        }
    }

    private func ink(of candle: Candle, _ half: Int, _ scale: Scale, _ rows: Int) -> Ink {
        let row = { (price: Price) in scale.row(of: price.chartValue, among: 2 * rows) }
        let body = row(max(candle.open, candle.close))...row(min(candle.open, candle.close))
        if body.contains(half) { return .body }
        return (row(candle.high)...row(candle.low)).contains(half) ? .wick : .none
    }

    // MARK: - The axes

    /// The candle of each column, merged from all candles in it; `nil` if there are none.
    private func buckets(_ columns: Int) -> [Candle?] {
        var buckets = [Candle?](repeating: nil, count: columns)
        for candle in candles {
            let column = column(of: candle.start, among: columns)
            if buckets[column] == nil { buckets[column] = candle } else { buckets[column]?.add(candle) }
        }
        return buckets
    }

    private func column(of second: Int64, among columns: Int) -> Int {
        let span = axis.range.upperBound - axis.range.lowerBound
        return min(columns - 1, max(0, Int((second - axis.range.lowerBound) * Int64(columns) / max(1, span))))
    }

    private func timeAxis(_ columns: Int) -> [String] {
        var line = [Character](repeating: isASCII ? "-" : "─", count: columns)
        var text = [Character](repeating: " ", count: size.width)
        var free = 0
        for label in axis.labels where axis.range.contains(label.second) {
            let column = column(of: label.second, among: columns)
            let start = max(0, column - label.text.count / 2)
            guard start >= free, start + label.text.count <= size.width else { continue }
            line[column] = isASCII ? "+" : "┬"
            text.replaceSubrange(start..<start + label.text.count, with: Array(label.text))
            free = start + label.text.count + 2
        }
        return [String(line) + (isASCII ? "+" : "┘"), String(text).withoutTrailingSpaces]
    }
}

/// The price axis of a chart.
private struct Scale {
    let low: Double
    let high: Double
    private let rows: Int
    private let currency: String

    init(low: Double, high: Double, rows: Int, currency: String) {
        // If the price hardly moved, widen the range, so that the line is in the middle.
        let least = high * 0.000_05
        let middle = (low + high) / 2
        self.low = high - low < least ? middle - least / 2 : low
        self.high = high - low < least ? middle + least / 2 : high
        self.rows = rows
        self.currency = currency
    }

    /// The row of a value, from the top.
    func row(of value: Double, among rows: Int) -> Int {
        min(rows - 1, max(0, Int(((high - value) / (high - low) * Double(rows - 1)).rounded())))
    }

    /// Labels with round prices, by row.
    var labels: [Int: String] {
        var labels: [Int: String] = [:]
        var value = (low / step).rounded(.up) * step
        while value <= high {
            labels[row(of: value, among: rows)] = text(value)
            value += step
        }
        return labels
    }

    /// The width of the longest label, in columns.
    var width: Int { labels.values.map(\.count).max() ?? 0 }

    /// The distance between two labels: 1, 2 or 5 times a power of ten, for a label about every three rows.
    private var step: Double {
        let wanted = (high - low) / Double(max(2, rows / 3))
        var power = 1.0
        while power > wanted { power /= 10 }
        while power * 10 <= wanted { power *= 10 }
        return power * ([1.0, 2, 5, 10].first { $0 * power >= wanted } ?? 10)
    }

    private func text(_ value: Double) -> String {
        let digits = step >= 1 ? 0 : 2
        let number = Price(Int64((value * (digits == 0 ? 1 : 100)).rounded()), scale: digits)
        let text = MoneyFormatter().number(number, currency: currency)
        return digits == 0 ? String(text.prefix { $0 != "." }) : text
    }
}

extension [Candle] {
    /// Those that are not in doubt; all if all are.
    var withoutDoubt: [Candle] {
        let certain = filter { !$0.isInDoubt }
        return certain.isEmpty ? self : certain
    }
}

extension Price {
    /// The nearest floating-point number, for drawing only.
    fileprivate var chartValue: Double { Double(description) ?? 0 }
}
