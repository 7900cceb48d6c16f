import FoundationEssentials
import NIOHTTP1

/// A request of a client. It has no body.
struct GatewayRequest: Sendable {
    /// As it was received; the key of bodies that are made once.
    let target: String
    /// The segments of the path, as they are: no path here needs an escape. Empty ones do not count.
    let path: [String]
    /// The parameters of the query in their order, decoded. A plus sign is one: it is in the zones of times.
    let parameters: [(name: String, value: String)]
    /// The authority: that of an absolute target, else the Host header (RFC 9112, section 3.2.2).
    let authority: String?
    let method: HTTPMethod
    let arrival: AccessPolicy.Arrival
    private let headers: HTTPHeaders

    init(_ head: HTTPRequestHead, _ arrival: AccessPolicy.Arrival) {
        target = head.uri
        method = head.method
        headers = head.headers
        self.arrival = arrival
        let parts = URLComponents(string: head.uri)
        path = (parts?.percentEncodedPath ?? "").split(separator: "/").map(String.init)
        parameters = parts?.queryItems?.map { ($0.name, $0.value ?? "") } ?? []
        // Without a scheme it is no absolute target, whatever follows two slashes.
        let named = parts?.scheme == nil ? nil : parts?.host.map { "\($0)\(parts?.port.map { ":\($0)" } ?? "")" }
        authority = named ?? head.headers.first(name: "host")
    }

    /// The value of a parameter; the first one if it occurs more than once.
    subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// The value of a header; the first one if it occurs more than once.
    func header(_ name: String) -> String? { headers.first(name: name) }
}
