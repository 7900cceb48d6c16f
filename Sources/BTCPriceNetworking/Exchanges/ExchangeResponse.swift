/// A request to an exchange, which can be sent many times.
struct ExchangeRequest: Sendable {
    /// The complete URL.
    let url: String
    /// `nil` if the URL is invalid.
    let request: HTTPRequest?

    /// - Parameters:
    ///   - url: The complete URL.
    ///   - headers: Headers in addition to Accept, Host and User-Agent.
    ///   - longestBody: The longest body of the response, bytes.
    init(_ url: String, headers: [(name: String, value: String)] = [], longestBody: Int = HTTPRequest.usualBody) {
        self.url = url
        request = HTTPRequest(url, headers: [("Accept", "application/json")] + headers, longestBody: longestBody)
    }
}

/// A complete response of an exchange.
struct ExchangeResponse: Sendable {
    var status: Int
    var retryAfter: String?
    /// The `Date` header: the exchange's clock, if it sends one.
    var date: String?
    /// The `Age` header: how long a cache has kept the response (RFC 9111, section 5.1).
    var age: String?
    /// The `Content-Encoding` header, if there is one. None was requested.
    var encoding: String?
    var body: [UInt8]
}

extension ExchangeResponse {
    /// Takes the parts of an HTTP response that the loaders use.
    init(_ response: HTTPResponse) {
        self.init(
            status: response.status, retryAfter: response.header("retry-after"), date: response.header("date"),
            age: response.header("age"),
            encoding: response.header("content-encoding"), body: response.body)
    }
}
