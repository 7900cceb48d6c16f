import BTCPriceCore
import BTCPriceFeature

/// What is printed of a price.
struct PriceOutput: Equatable {
    enum Form: Equatable {
        /// The fixed line.
        case text
        /// One JSON object a line.
        case json
        /// The exact decimal, and nothing else.
        case raw
        /// What the user has written, with values in it.
        case format(FormatTemplate)
        /// What a status bar reads.
        case bar(Bar)
    }

    var form = Form.text
    /// How times are printed.
    var timestamps = ReaderTimestampFormatter()

    var isJSON: Bool { form == .json }

    /// The status bar that reads it, if one does.
    var bar: Bar? {
        if case .bar(let bar) = form { bar } else { nil }
    }

    /// Tells of what went wrong.
    /// - Returns: The exit status: 0 where a status bar reads, which must not break whatever fails.
    func tell(_ complaint: Complaint) -> Int32 {
        guard let bar else {
            Output.tell(complaint, json: isJSON)
            return complaint.status
        }
        Output.line(bar.line(.failed(complaint.message)))
        return ExitStatus.success
    }
}
