import HTTPTransport

/// What an exchange is asked, again and again.
struct ExchangeQuestion: Sendable {
    /// The whole address.
    let url: String
    /// `nil` where the address is none.
    let question: HTTPQuestion?

    /// - Parameters:
    ///   - url: The whole address.
    ///   - headers: What is told beside who asks.
    init(_ url: String, headers: [(name: String, value: String)] = []) {
        self.url = url
        question = HTTPQuestion(url, fields: [("Accept", "application/json")] + headers)
    }
}

/// An exchange's answer, whole.
struct ExchangeAnswer: Sendable {
    var status: Int
    var retryAfter: String?
    /// The header of that name: the exchange's clock, where it tells it.
    var date: String?
    /// `Content-Encoding`, where there is one: none was asked for.
    var encoding: String?
    var body: [UInt8]
}

extension ExchangeAnswer {
    /// What of an answer an exchange's loader looks at.
    init(_ answer: HTTPAnswer) {
        self.init(
            status: answer.status, retryAfter: answer.field("retry-after"), date: answer.field("date"),
            encoding: answer.field("content-encoding"), body: answer.body)
    }
}
