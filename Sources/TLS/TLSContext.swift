import COpenSSL
import Glibc

/// What the connections of a client, or of a server, have in common: certificates and rules. TLS is that of the system's OpenSSL 3, 1.2 at
/// least, without renegotiation.
///
/// A client's connections, which share its sessions, are on one event loop.
// The pointer is constant, and OpenSSL's reference count is atomic. The rest is accessed on the event loop's thread only.
package final class TLSContext: @unchecked Sendable {
    /// Who a client expects. Its certificate must show it (RFC 9525).
    package enum Peer: Hashable, Sendable {
        case name(String)
        /// An IP address as text, without brackets.
        case address(String)
    }

    let pointer: OpaquePointer
    /// A session of each server, which makes its next handshake shorter. Each is used once (RFC 8446, appendix C.4).
    private var sessions: [Peer: OpaquePointer] = [:]
    private var hasUnreadFile = false
    /// The number of servers whose sessions are kept.
    private static let mostSessions = 100
    /// For how long a session is kept, in seconds. The certificate is not checked again meanwhile.
    private static let longestSession = 3600

    private init(_ method: OpaquePointer?) throws(TLSError) {
        // exit(3) would free what the event loop's thread still uses.
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        guard let pointer = SSL_CTX_new(method) else { throw .last() }
        self.pointer = pointer
        guard btc_priced_prepare(pointer) == 1 else { throw .last() }
    }

    /// A client that trusts the system's authorities, as OpenSSL is configured.
    /// - Parameters:
    ///   - file: A PEM file with more trusted certificates; `nil` for none.
    ///   - protocols: What the client speaks above TLS, for ALPN (RFC 7301).
    ///   - resumes: Whether sessions are resumed. A server can tell by one that two connections are of the same client.
    /// - Throws: ``TLSError`` if the file can't be used, or OpenSSL's configuration is not valid.
    package static func client(
        trusting file: String?, protocols: [String], resumes: Bool = true
    ) throws(TLSError) -> TLSContext {
        let context = try TLSContext(TLS_client_method())
        SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
        // A file would be read whole, 0.9 MB of memory, when the context is made. See ``readAuthorities()``.
        context.hasUnreadFile = hasDirectory
        let isReady =
            context.hasUnreadFile
            ? SSL_CTX_set_default_verify_dir(context.pointer) : SSL_CTX_set_default_verify_paths(context.pointer)
        guard isReady == 1 else { throw .last() }
        if let file { try context.trust(file) }
        let list = protocols.flatMap { [UInt8($0.utf8.count)] + $0.utf8 }
        // Unlike the others, it returns 0 for success.
        guard SSL_CTX_set_alpn_protos(context.pointer, list, UInt32(list.count)) == 0 else { throw .last() }
        guard resumes else { return context }
        btc_priced_keep_sessions(context.pointer) { connection, session in
            guard let connection, let session, let handler = SSL_get_ex_data(connection, 0) else { return 0 }
            return Unmanaged<TLSHandler>.fromOpaque(handler).takeUnretainedValue().keep(session) ? 1 : 0
        }
        return context
    }

    /// Reads the system's file of authorities, if only the directory was used so far. The next handshake trusts what it has.
    ///
    /// Called when an authority is missing: a container often has the directory of its image, and a file from outside with one more.
    func readAuthorities() {
        guard hasUnreadFile else { return }
        hasUnreadFile = false
        SSL_CTX_set_default_verify_file(pointer)
    }

    /// Trusts the certificates in a PEM file, too.
    /// - Throws: ``TLSError`` if it can't be read, or has none.
    package func trust(_ file: String) throws(TLSError) {
        guard SSL_CTX_load_verify_file(pointer, file) == 1 else { throw .last() }
    }

    /// Whether the system has a directory of all authorities in which OpenSSL looks for the one that it needs, as `openssl rehash` makes it,
    /// and the environment names no file (SSL_CTX_set_default_verify_paths(3)). Where the file has them all, the directory has few or none.
    private static var hasDirectory: Bool {
        let path =
            getenv(X509_get_default_cert_dir_env()) ?? UnsafeMutablePointer(mutating: X509_get_default_cert_dir())
        guard getenv(X509_get_default_cert_file_env()) == nil, let path, let directory = opendir(path) else {
            return false
        }
        defer { closedir(directory) }
        var count = 0
        while let entry = readdir(directory) {
            let isHash = withUnsafeBytes(of: entry.pointee.d_name) {
                $0.prefix { $0 != 0 }.suffix(2).elementsEqual(".0".utf8)
            }
            if isHash { count += 1 }
        }
        return count >= 50
    }

    /// A server.
    /// - Parameters:
    ///   - certificates: A PEM file with its certificate, followed by those of the intermediate authorities.
    ///   - key: A PEM file with the certificate's private key.
    /// - Throws: ``TLSError`` if a file can't be used.
    package static func server(certificates: String, key: String) throws(TLSError) -> TLSContext {
        let context = try TLSContext(TLS_server_method())
        guard SSL_CTX_use_certificate_chain_file(context.pointer, certificates) == 1,
            SSL_CTX_use_PrivateKey_file(context.pointer, key, SSL_FILETYPE_PEM) == 1
        else { throw .last() }
        return context
    }

    deinit {
        forgetSessions()
        SSL_CTX_free(pointer)
    }

    /// Makes the next handshake with each server a full one. Called on the event loop's thread.
    package func forgetSessions() {
        for session in sessions.values { SSL_SESSION_free(session) }
        sessions = [:]
    }

    /// Keeps a session, and then owns it.
    func keep(_ session: OpaquePointer, of peer: Peer) -> Bool {
        guard sessions[peer] != nil || sessions.count < Self.mostSessions else { return false }
        if let old = sessions.updateValue(session, forKey: peer) { SSL_SESSION_free(old) }
        return true
    }

    /// Takes a session, which the caller then owns.
    func session(of peer: Peer) -> OpaquePointer? {
        guard let session = sessions.removeValue(forKey: peer) else { return nil }
        // OpenSSL has noted the time by this clock.
        if (0...Self.longestSession).contains(time(nil) - Int(SSL_SESSION_get_time(session))) { return session }
        SSL_SESSION_free(session)
        return nil
    }
}
