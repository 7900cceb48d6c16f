package import BTCPriceCore
import Dispatch
import Synchronization
import Varlink

/// Keeps the records of the exchanges' streams over a restart, in a file in the runtime directory.
///
/// A supervisor that starts the daemon again and again must not make it connect again and again. The records are kept by the address of
/// the stream, since another address is another server.
package final class StreamRecords: Sendable {
    private let path: String
    private let now: TimeSource
    private let records: Mutex<[String: StreamRecord]>
    /// The directory may be on a disk, which the thread of the streams must not wait for.
    private let queue = DispatchQueue(label: "io.btcpriced.stream-records")

    /// - Parameters:
    ///   - runtimeDirectory: A reboot should empty it. If it does not, most records of another boot are recognized by their times.
    ///   - now: Reads the clocks.
    package init(runtimeDirectory: String, now: @escaping TimeSource) {
        path = "\(runtimeDirectory)/streams"
        self.now = now
        records = Mutex(Self.read(path, at: now().boottime))
    }

    /// The record of the stream at an address.
    package func record(of address: String) -> StreamRecord { records.withLock { $0[address] ?? StreamRecord() } }

    /// Keeps the record of the stream at an address, without waiting for the file. If the file can't be written, the record is lost with
    /// the next restart.
    package func keep(_ record: StreamRecord, of address: String) {
        records.withLock { $0[address] = record }
        queue.async { [self] in
            let text = JSON.object(Self.json(records.withLock(\.self))).text
            do { try FileSystem.replace(path, with: Array(text.utf8), sync: false) } catch {}
        }
    }

    /// Waits until the records are written.
    package func flush() { queue.sync {} }

    private static func json(_ records: [String: StreamRecord]) -> JSONObject {
        var object = JSONObject()
        for (address, record) in records.sorted(by: { $0.key < $1.key }) {
            object[address] = .object([
                "attempts": .array(record.attempts.map { .integer($0) }), "restUntil": .integer(record.restUntil),
            ])
        }
        return object
    }

    /// Reads the file. A file that can't be read counts as missing. Impossible times are left out.
    private static func read(_ path: String, at boottime: Int64) -> [String: StreamRecord] {
        do {
            guard let bytes = try FileSystem.read(path) else { return [:] }
            let all = try JSONValue(parsing: bytes[...]).members.compactMap { address, record in
                address.stringValue.map { name in
                    let attempts = record["attempts"]?.arrayValue?.compactMap(\.integerValue) ?? []
                    let rest = record["restUntil"]?.integerValue ?? .min
                    return (
                        name,
                        StreamRecord(
                            attempts: attempts.filter { $0 <= boottime },
                            restUntil: rest <= boottime + longestRest ? rest : .min)
                    )
                }
            }
            return Dictionary(all, uniquingKeysWith: { first, _ in first })
        } catch {
            return [:]
        }
    }

    /// The longest cooldown of a stream, milliseconds.
    private static let longestRest: Int64 = 86_400_000
}
