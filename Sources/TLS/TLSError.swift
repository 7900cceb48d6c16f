import COpenSSL

/// A failure of TLS.
package enum TLSError: Error, Hashable, Sendable {
    /// The server's certificate is for another host.
    case otherHost
    /// The server's certificate is not valid yet, or not any more, by this machine's clock.
    case notValidNow(reason: String)
    /// The server's certificate is not from a trusted authority, or is refused for another reason.
    case untrusted(reason: String)
    /// The connection was closed without the message that ends TLS: what came may not be all (RFC 8446, section 6.1).
    case truncated
    /// Anything else, in OpenSSL's words.
    case failed(reason: String)

    /// The first error of this thread's queue, which is then empty.
    static func last() -> TLSError {
        let code = ERR_get_error()
        ERR_clear_error()
        let reason = ERR_reason_error_string(code).map { String(cString: $0) }
        // An error of the system has no reason of OpenSSL's.
        return .failed(reason: reason ?? "error \(code)")
    }

    /// Why a certificate was refused.
    /// - Parameter result: OpenSSL's `X509_V_ERR_...`.
    init(verifyResult result: Int) {
        let reason = String(cString: X509_verify_cert_error_string(result))
        self =
            switch Int32(result) {
            case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .otherHost
            case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID: .notValidNow(reason: reason)
            default: .untrusted(reason: reason)
            }
    }
}
