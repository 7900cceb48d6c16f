import Crypto
import FoundationEssentials
import HTTPTypes
import Hummingbird

/// The page: one HTML file. Its policy allows nothing but the style and the script that are in it, by their digests, and requests to
/// the gateway itself (W3C, Content Security Policy Level 3).
struct Page: Sendable {
    private let representation: Representation
    private let policy: String

    init() {
        let html = String(decoding: PackageResources.index_html, as: UTF8.self)
        representation = Representation(html, contentType: "text/html; charset=utf-8", cacheControl: "no-cache")
        policy =
            "default-src 'none'; connect-src 'self'; img-src data:; script-src \(Self.digest(of: "script", in: html)); "
            + "style-src \(Self.digest(of: "style", in: html)); base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    }

    func response(to request: Request) -> Response {
        var response = representation.response(to: request)
        response.headers[.contentSecurityPolicy] = policy
        response.headers[.referrerPolicy] = "no-referrer"
        return response
    }

    /// The digest of what is between the first tags of this name.
    private static func digest(of element: String, in html: String) -> String {
        guard let start = html.firstRange(of: "<\(element)>")?.upperBound,
            let end = html[start...].firstRange(of: "</\(element)>")?.lowerBound
        else { return "'none'" }
        return "'sha256-\(Data(SHA256.hash(data: Array(html[start..<end].utf8))).base64EncodedString())'"
    }
}
