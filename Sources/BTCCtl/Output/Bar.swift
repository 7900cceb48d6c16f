import BTCPriceCore
import BTCPriceFeature
import Varlink

/// A status bar, by the text that it reads.
enum Bar: String, CaseIterable {
    /// A custom module of Waybar with `return-type: json` (waybar-custom(5)).
    case waybar
    /// A block of i3blocks with `format=json` (i3blocks(1)), in the words of the i3bar protocol.
    case i3blocks
    /// A `custom/script` module of polybar, with its formatting tags.
    case polybar

    /// How long a bar is kept waiting for an answer, which a daemon on the same machine has at once.
    static let patience: Duration = .seconds(1)

    /// How it is with the price, as a class for a style sheet.
    enum Condition: String {
        case ok
        case unconfirmed
        case stale
        case error
    }

    /// What is shown, whatever the bar.
    struct Content: Equatable {
        /// Short: it stands in the bar.
        var text: String
        /// Long: it stands beside the pointer, where a bar has that.
        var detail: String
        var condition: Condition
        var direction: PriceDirection

        /// There is no price to show.
        static func failed(_ why: String) -> Content {
            Content(text: PriceTexts.placeholder, detail: why, condition: .error, direction: .flat)
        }

        init(text: String, detail: String, condition: Condition, direction: PriceDirection) {
            self.text = text
            self.detail = detail
            self.condition = condition
            self.direction = direction
        }

        /// A price that is not current stands with its time.
        init(_ state: PriceState, _ model: PriceViewModel) {
            guard let quote = state.quote else {
                self = .failed([model.banner, model.reason].compactMap(\.self).joined(separator: " "))
                return
            }
            let isFresh = model.banner == nil
            self.init(
                text: isFresh ? model.price : "\(model.price) (\(model.timestamp))",
                detail: ([model.line, "\(quote.source) \(quote.market)"] + model.notes
                    + [model.reason].compactMap(\.self)).joined(separator: "\n"),
                condition: !isFresh ? .stale : model.isUnconfirmed ? .unconfirmed : .ok, direction: model.direction)
        }

        /// The price without its time.
        var short: String { String(text.prefix { $0 != " " }) }

        /// The classes for a style sheet; a price that is old goes nowhere.
        var classes: [String] {
            condition == .ok && direction != .flat ? [condition.rawValue, direction.rawValue] : [condition.rawValue]
        }

        /// Where there is no style sheet: readable on dark and on light, `#RRGGBB`. `nil` for the bar's own.
        var color: String? {
            switch (condition, direction) {
            case (.error, _), (.ok, .down): "#e5534b"
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
        }
    }

    private static func block(_ content: Content) -> String {
        var block: JSONObject = [
            "full_text": .string(content.text),
            // A price that is not current must not look like one.
            "short_text": .string(content.condition == .stale ? "(\(content.short))" : content.short),
        ]
        if let color = content.color { block["color"] = .string(color) }
        // The protocol leaves names with an underscore to whoever writes them.
        block["_class"] = .string(content.classes.joined(separator: " "))
        return JSON.object(block).text
    }

    /// Waybar reads Pango's markup.
    private static func markup(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}
