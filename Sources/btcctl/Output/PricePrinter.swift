import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import Glibc

/// Prints states in the form of ``output``.
struct PricePrinter {
    let output: PriceOutput
    let model: PriceViewModel

    init(_ output: PriceOutput) {
        self.output = output
        model = output.model()
    }

    /// The text for standard output; `nil` if there is nothing to print.
    func line(_ message: StateMessage, at now: ObservationTime, condition: PriceCondition.Kind? = nil) -> String? {
        model.show(message.state, at: now)
        switch output.form {
        case .text: return model.line
        case .json: return Output.json(message, at: now, condition: condition)
        case .raw:
            let value = message.state.quote?.value
            return (output.isInSatoshis ? value.map(SatoshiFormatter.number) : value)?.description
        case .format(let template): return template.text(message.state, model, at: now)
        case .bar(let bar): return bar.line(Bar.Content(message.state, model))
        }
    }

    /// The notes for standard error. JSON and status bars have them in their line.
    var notes: [String] {
        switch output.form {
        case .text: model.notes
        // The line shows nothing, or only what the template has.
        case .raw, .format: model.notes + [model.derivation.map { "Derived: \($0)." }].compactMap(\.self)
        case .json, .bar: []
        }
    }

    /// Why the price is not current. Only on a terminal, or if there is no price.
    var reason: String? {
        guard !notes.isEmpty, model.price == PriceTexts.placeholder || isatty(STDERR_FILENO) == 1 else { return nil }
        return model.reason
    }

    /// Prints a state and its notes.
    func show(_ message: StateMessage, at now: ObservationTime, condition: PriceCondition.Kind? = nil) {
        if let line = line(message, at: now, condition: condition) { Output.line(line) }
        tell()
    }

    /// Prints the notes on the model's state to standard error.
    func tell() {
        for note in notes + [reason].compactMap(\.self) { Output.note(note) }
    }
}
