import BTCPriceCore

/// What `btc-priced --diagnose` prints, as one JSON object.
package struct DiagnosisMessage: Sendable, Hashable {
    /// One thing that was looked at.
    package struct Check: Sendable, Hashable {
        /// `configuration`, `sources`, `disk`, `clock` or `limits`; a newer program may have others.
        package var subject: String
        package var isGood: Bool
        /// What was found, in one line.
        package var text: String
        /// What to do, in one line; `nil` if nothing is wrong.
        package var advice: String?

        package init(_ subject: String, isGood: Bool = true, _ text: String, advice: String? = nil) {
            (self.subject, self.isGood, self.text, self.advice) = (subject, isGood, text, advice)
        }
    }

    /// The version of the program.
    package var version: String
    package var checks: [Check]

    package init(version: String = Product.version, checks: [Check] = []) {
        (self.version, self.checks) = (version, checks)
    }
}

extension DiagnosisMessage: JSONMessage {
    package static var blank: DiagnosisMessage { DiagnosisMessage(version: "") }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("version", &version, .text)
        try fields.required("checks", &checks, .list(.message))
    }
}

extension DiagnosisMessage.Check: JSONMessage {
    package static var blank: DiagnosisMessage.Check { DiagnosisMessage.Check("", "") }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("subject", &subject, .text)
        try fields.required("good", &isGood, .flag)
        try fields.required("text", &text, .text)
        try fields.optional("advice", &advice, .text)
        guard fields.isReading else { return }
        (subject, text, advice) = (subject.printable, text.printable, advice?.printable)
        if isGood { advice = nil } else { advice = advice ?? "" }
    }
}
