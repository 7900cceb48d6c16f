import BTCPriceCore
import BTCPriceFeature
import BTCPriceVarlink
import FoundationEssentials
import Glibc
import Varlink

/// Prints states as the user wants them.
struct PricePrinter {
    let output: PriceOutput
    let model: PriceViewModel

    init(_ output: PriceOutput) {
        self.output = output
        model = PriceViewModel(timestampFormatter: output.timestamps)
    }

    /// What of a state goes to standard output; `nil` where there is nothing to print.
    func line(_ message: StateMessage, at now: ObservationTime, condition: PriceCondition.Kind? = nil) -> String? {
        model.show(message.state, at: now)
        switch output.form {
        case .text: return model.line
        case .json: return Output.json(message, at: now, condition: condition)
        case .raw: return message.state.quote?.value.description
        case .format(let template): return template.text(message.state, model, at: now)
        case .bar(let bar): return bar.line(Bar.Content(message.state, model))
        }
    }

    /// What goes to standard error beside it: for people, who have it in the line otherwise.
    var notes: [String] {
        switch output.form {
        case .text, .raw, .format: model.notes
        case .json, .bar: []
        }
    }

    /// Why the price is not current: on a terminal, and if there is no price at all.
    var reason: String? {
        guard !notes.isEmpty, model.price == PriceTexts.placeholder || isatty(STDERR_FILENO) == 1 else { return nil }
        return model.reason
    }

    /// Prints a state, and what is to be said of it.
    func show(_ message: StateMessage, at now: ObservationTime, condition: PriceCondition.Kind? = nil) {
        if let line = line(message, at: now, condition: condition) { Output.line(line) }
        tell()
    }

    /// Prints what is to be said of the state that the model shows, to standard error.
    func tell() {
        for note in notes + [reason].compactMap(\.self) { Output.complain(note) }
    }
}
