import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// A status bar, and the format that it reads.
enum Bar: String, CaseIterable {
    /// A custom module of Waybar with `return-type: json` (waybar-custom(5)).
    case waybar
    /// A block of i3blocks with `format=json` (i3blocks(1)), in the i3bar protocol.
    case i3blocks
    /// A `custom/script` module of polybar, with its formatting tags.
    case polybar
    /// The text alone, for tmux, conky, xfce4-genmon and others: a price in doubt has a question mark.
    case plain

    /// The timeout for a bar. A daemon on the same machine responds at once.
    static let patience: Duration = .seconds(1)

    /// The condition of the price, as a class for a style sheet.
    enum Condition: String {
        case ok
        case unconfirmed
        case stale
        case error
    }

    /// What is shown, independent of the bar.
    struct Content: Equatable {
        /// The short text in the bar.
        var text: String
        /// The long text of the tooltip, if the bar has one.
        var detail: String
        var condition: Condition
        var direction: PriceDirection
        /// Whether the price is derived from another currency's.
        var isDerived = false
        /// Whether only one of the exchanges gives a price.
        var isSingle = false
        /// Whether the price is in doubt, or was at its moment.
        var isInDoubt = false

        /// The content if there is no price to show.
        static func failed(_ why: String) -> Content {
            Content(text: PriceTexts.placeholder, detail: why, condition: .error, direction: .flat)
        }

        /// The price without its time.
        var short: String { String(text[..<(text.start(of: " (") ?? text.endIndex)]) }

        /// The classes for a style sheet. Only a current, confirmed price has a direction.
        var classes: [String] {
            let moves = condition == .ok && direction != .flat
            return [condition.rawValue] + (moves ? [direction.rawValue] : [])
                + (isSingle ? ["single"] : []) + (isDerived ? ["derived"] : [])
        }

        /// The colour for bars without style sheets, `#RRGGBB`, readable on dark and light; `nil` for the bar's own.
        var color: String? {
            switch (condition, direction) {
            case (.error, _): "#b083f0"
            case (.ok, .down): "#e5534b"
            case (.stale, _), (.unconfirmed, _): "#c69026"
            case (.ok, .up): "#46954a"
            case (.ok, .flat): nil
            }
        }
    }

    /// The one line that the bar reads.
    func line(_ content: Content) -> String {
        switch self {
        case .waybar:
            JSON.object([
                "text": .string(Self.markup(content.text)), "alt": .string(content.condition.rawValue),
                "tooltip": .string(Self.markup(content.detail)), "class": .array(content.classes.map { .string($0) }),
            ]).text
        case .i3blocks: Self.block(content)
        case .polybar:
            content.color.map { "%{F\($0)}\(content.text)%{F-}" } ?? content.text
        case .plain:
            content.isInDoubt ? "\(content.short)?\(content.text.dropFirst(content.short.count))" : content.text
        }
    }

    private static func block(_ content: Content) -> String {
        var block: JSONObject = [
            "full_text": .string(content.text),
            // A price that is not current must not look like one.
            "short_text": .string(content.condition == .stale ? "(\(content.short))" : content.short),
        ]
        if let color = content.color { block["color"] = .string(color) }
        // In the i3bar protocol, a name with a leading underscore belongs to the writer of the block.
        block["_class"] = .string(content.classes.joined(separator: " "))
        return JSON.object(block).text
    }

    /// Escapes text for Pango markup, which Waybar reads.
    private static func markup(_ text: String) -> String {
        text.escaped(["&": "&amp;", "<": "&lt;", ">": "&gt;"])
    }
}

extension Bar.Content {
    /// A price that is not current is shown with its time.
    init(_ state: PriceState, _ model: PriceViewModel) {
        guard let quote = state.quote else {
            self = .failed([model.banner, model.reason].compactMap(\.self).joined(separator: " "))
            return
        }
        let isFresh = model.banner == nil
        let isDerived = model.derivation != nil
        self.init(
            text: isFresh ? model.price : "\(model.price) (\(model.timestamp))",
            detail: ([model.line, model.day, "\(quote.sourceText) \(quote.market)"].compactMap(\.self) + model.notes
                + [model.reason].compactMap(\.self)).joined(separator: "\n"),
            condition: !isFresh ? .stale : model.isUnconfirmed || isDerived ? .unconfirmed : .ok,
            direction: model.trend, isDerived: isDerived,
            isSingle: isFresh && state.isSingleOfSeveral,
            isInDoubt: state.doubt != nil)
    }
}
