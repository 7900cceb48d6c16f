package import BTCPriceCore

/// The reply to `Retry`.
package struct RetryMessage: Sendable, JSONMessage {
    /// A source that stays in cooldown.
    package struct Kept: Sendable, JSONMessage {
        package var source = ""
        /// When the cooldown ends.
        package var until = Timestamp(milliseconds: 0)
        /// The reason, in one line.
        package var reason = ""

        package static var blank: Kept { Kept() }

        package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
            try fields.required("source", &source, .text)
            try fields.required("until", &until, .time)
            try fields.required("reason", &reason, .text)
        }
    }

    /// The sources that get requests again.
    package var retried: [String] = []
    /// The sources whose cooldown an exchange has demanded.
    package var kept: [Kept] = []

    package static var blank: RetryMessage { RetryMessage() }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("retried", &retried, .texts)
        try fields.required("kept", &kept, .list(.message))
    }
}
