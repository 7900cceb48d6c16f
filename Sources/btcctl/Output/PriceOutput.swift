import BTCPriceCore
import BTCPriceFeature

/// How a price is printed.
struct PriceOutput: Equatable {
    enum Form: Equatable {
        /// The line in the fixed format.
        case text
        /// One JSON object per line.
        case json
        /// The exact decimal number only.
        case raw
        /// The user's template, with values.
        case format(FormatTemplate)
        case bar(Bar)
    }

    var form = Form.text
    var timestamps = TimestampFormatter()

    /// Whether the price is shown as the satoshis that one unit of its currency buys.
    var isInSatoshis = false

    /// What is required of a price to be printed.
    var requirements = PriceRequirements()

    var isJSON: Bool { form == .json }

    /// A model that shows prices and times as they are printed.
    func model() -> PriceViewModel {
        let prices: any PriceFormatter = isInSatoshis ? SatoshiFormatter() : MoneyFormatter()
        return PriceViewModel(priceFormatter: prices, timestampFormatter: timestamps)
    }

    /// The status bar, if the output is for one.
    var bar: Bar? {
        if case .bar(let bar) = form { bar } else { nil }
    }

    /// Reports an error.
    /// - Returns: The exit status. For a status bar it is 0, because the bar must keep working.
    func tell(_ complaint: Complaint) -> Int32 {
        guard let bar else {
            Output.tell(complaint, json: isJSON)
            return complaint.status
        }
        Output.line(bar.line(.failed(complaint.message)))
        return ExitStatus.success
    }
}
