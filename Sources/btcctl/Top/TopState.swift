import BTCPriceFeature

/// What the user of `top` has chosen, and what a key changes in it. A pure value.
struct TopState: Equatable {
    /// What a key requires of the caller.
    enum Effect {
        case none
        /// The whole screen is to be drawn.
        case redraw
        /// Another currency is shown.
        case currency
        /// Another span is shown.
        case span
        case quit
    }

    /// A key of the footer and of the help.
    struct Hint: Equatable {
        let keys: String
        let name: String
        let help: String
        /// Why it can't be used; `nil` if it can.
        let obstacle: String?
    }

    var span: ChartSpan
    var isCandles = false
    var isInSatoshis = false
    var isFrozen = false
    var isHelp = false
    /// The currencies that the daemon keeps; empty while they are not known.
    var currencies: [String] = []
    /// The currency that is shown; `nil` for the daemon's first.
    var currency: String?
    /// How many rows of the markets are scrolled out of sight.
    var scrolled = 0
    /// Why the last key had no effect.
    private(set) var note: String?

    init(span: ChartSpan = .day, currency: String? = nil) {
        (self.span, self.currency) = (span, currency)
    }

    /// The keys, in the order of their importance.
    /// - Parameter hidden: How many rows of the markets have no room.
    func hints(hidden: Int) -> [Hint] {
        let frozen = isFrozen ? "The picture is frozen: p goes on." : nil
        let single =
            currencies.count == 1
            ? "The daemon keeps no currency but \(currencies[0])."
            : currencies.isEmpty
                ? "The daemon's currencies are not known yet." : nil
        return [
            Hint(keys: "q", name: "quit", help: "End.", obstacle: nil),
            Hint(keys: "?", name: "help", help: "Show or hide this help.", obstacle: nil),
            Hint(
                keys: "1-6", name: "span",
                help:
                    "Show \(ChartSpan.named.map(\.name).joined(separator: ", ")). So do the arrows left and right, h and l.",
                obstacle: frozen),
            Hint(keys: "c", name: isCandles ? "line" : "candles", help: "Draw candles, or a line.", obstacle: nil),
            Hint(
                keys: "Tab", name: "currency", help: "Show the next currency; with Shift, the one before.",
                obstacle: frozen ?? single),
            Hint(keys: "s", name: isInSatoshis ? "money" : "sats", help: "Show satoshis, or money.", obstacle: nil),
            Hint(
                keys: "p", name: isFrozen ? "go on" : "freeze", help: "Freeze the picture, or let it go on.",
                obstacle: nil),
            Hint(
                keys: "j/k", name: "markets",
                help: "Scroll the markets. So do the arrows up and down, Page Up and Page Down.",
                obstacle: hidden == 0 ? "All markets are shown." : nil),
        ]
    }

    /// - Parameter hidden: How many rows of the markets have no room.
    mutating func press(_ key: Key, hidden: Int) -> Effect {
        if case .mode = key { return .none }
        note = nil
        switch key {
        case .character("q"): return .quit
        case .character("?"): isHelp.toggle()
        case .escape where isHelp: isHelp = false
        case .redraw: return .redraw
        case .character("1"..."6"):
            guard isUsable("1-6", hidden), case .character(let digit) = key, let number = digit.wholeNumberValue
            else { break }
            return show(ChartSpan.named[number - 1])
        case .left, .character("h"), .right, .character("l"):
            guard isUsable("1-6", hidden) else { break }
            let step = key == .left || key == .character("h") ? -1 : 1
            // From a span without a key, to the first one.
            let index = ChartSpan.named.firstIndex { $0.start == span.start } ?? -1
            return show(ChartSpan.named[min(max(index + step, 0), ChartSpan.named.count - 1)])
        case .character("c"): isCandles.toggle()
        case .character("s"): isInSatoshis.toggle()
        case .character("p"): isFrozen.toggle()
        case .tab, .backTab:
            guard isUsable("Tab", hidden) else { break }
            let index = currency.flatMap(currencies.firstIndex) ?? 0
            currency = currencies[(index + (key == .tab ? 1 : currencies.count - 1)) % currencies.count]
            scrolled = 0
            return .currency
        case .up, .character("k"): scroll(by: -1, hidden)
        case .down, .character("j"): scroll(by: 1, hidden)
        case .pageUp: scroll(by: -10, hidden)
        case .pageDown: scroll(by: 10, hidden)
        case .home: scroll(by: -hidden, hidden)
        case .end: scroll(by: hidden, hidden)
        case .character, .other, .escape: note = "This key does nothing here: ? shows those that do."
        case .mode: break
        }
        return .none
    }

    private mutating func show(_ span: ChartSpan) -> Effect {
        if span.start == self.span.start { note = "\(span.name) is shown already." }
        self.span = span
        return .span
    }

    private mutating func scroll(by rows: Int, _ hidden: Int) {
        guard isUsable("j/k", hidden) else { return }
        scrolled = min(max(min(scrolled, hidden) + rows, 0), hidden)
    }

    /// Whether the keys can be used; if not, says why.
    private mutating func isUsable(_ keys: String, _ hidden: Int) -> Bool {
        note = hints(hidden: hidden).first { $0.keys == keys }?.obstacle
        return note == nil
    }
}
