import NIOHTTP1

@testable import BTCPriceNetworking

extension HTTPResponse {
    /// A response with the headers that loaders read.
    init(
        status: Int, retryAfter: String? = nil, date: String? = nil, age: String? = nil, encoding: String? = nil,
        body: [UInt8]
    ) {
        let fields = [("retry-after", retryAfter), ("date", date), ("age", age), ("content-encoding", encoding)]
        self.init(
            status: status, headers: HTTPHeaders(fields.compactMap { name, value in value.map { (name, $0) } }),
            body: body)
    }
}
