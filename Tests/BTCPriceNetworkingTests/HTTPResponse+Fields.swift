@testable import BTCPriceNetworking

extension HTTPResponse {
    /// A response with the headers that loaders read.
    init(
        status: Int, retryAfter: String? = nil, date: String? = nil, age: String? = nil, encoding: String? = nil,
        body: [UInt8]
    ) {
        let fields = [("Retry-After", retryAfter), ("Date", date), ("Age", age), ("Content-Encoding", encoding)]
        let lines = fields.map { name, value in value.map { "\(name): \($0)\r\n" } ?? "" }.joined()
        self.init(status: status, fields: HTTPFields(Array(lines.utf8)[...]), body: body[...])
    }
}
