import TLS

/// A folder with the certificates of the simulated venues, each with its key: `server.pem` and `server.key`. The certificates that a
/// client must reject have the names of ``FaultScript/Certificate``. docs/simulator.md shows how to make the valid one with openssl.
struct CertificateFolder: Sendable {
    let path: String

    /// A server's TLS context.
    /// - Parameter fault: What is wrong with its certificate; `nil` for the valid one.
    /// - Throws: ``Simulator/Failure`` if a file is absent or is not PEM.
    func context(_ fault: FaultScript.Certificate?) throws -> TLSContext {
        let file = "\(path)/\(fault?.rawValue ?? "server")"
        do {
            return try .server(certificates: "\(file).pem", key: "\(file).key")
        } catch {
            throw Simulator.Failure(
                description: "\(file).pem and \(file).key are not a certificate and its key: \(error)")
        }
    }
}
