/// What an exchange is asked, again and again.
struct ExchangeRequest: Sendable {
    /// The whole address.
    let url: String
    /// `nil` where the address is none.
    let request: HTTPRequest?

    /// - Parameters:
    ///   - url: The whole address.
    ///   - headers: What is told beside who asks.
    init(_ url: String, headers: [(name: String, value: String)] = []) {
        self.url = url
        request = HTTPRequest(url, headers: [("Accept", "application/json")] + headers)
    }
}

/// An exchange's answer, whole.
struct ExchangeResponse: Sendable {
    var status: Int
    var retryAfter: String?
    /// The header of that name: the exchange's clock, where it tells it.
    var date: String?
    /// `Content-Encoding`, where there is one: none was asked for.
    var encoding: String?
    var body: [UInt8]
}

extension ExchangeResponse {
    /// What of an answer an exchange's loader looks at.
    init(_ response: HTTPResponse) {
        self.init(
            status: response.status, retryAfter: response.header("retry-after"), date: response.header("date"),
            encoding: response.header("content-encoding"), body: response.body)
    }
}
