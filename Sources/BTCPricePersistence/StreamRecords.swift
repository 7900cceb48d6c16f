package import BTCPriceCore
import Dispatch
import Synchronization
import Varlink

/// Keeps what a restart must not forget of the exchanges' streams, in a file in the runtime directory: a supervisor that starts the
/// daemon again and again must not have it connect again and again. By the address of the stream: another one is another server.
package final class StreamRecords: Sendable {
    private let path: String
    private let now: TimeSource
    private let records: Mutex<[String: StreamRecord]>
    /// The directory may be on a disk, which the thread of the streams must not wait for.
    private let queue = DispatchQueue(label: "io.btcpriced.stream-records")

    /// - Parameters:
    ///   - runtimeDirectory: A reboot should empty it. If it does not, what is of another boot is mostly recognized by its times.
    ///   - now: Reads the clocks.
    package init(runtimeDirectory: String, now: @escaping TimeSource) {
        path = "\(runtimeDirectory)/streams"
        self.now = now
        records = Mutex(Self.read(path, at: now().boottime))
    }

    /// What is known of the stream at an address.
    package func record(of address: String) -> StreamRecord { records.withLock { $0[address] ?? StreamRecord() } }

    /// Keeps what is known of the stream at an address, without waiting for the file. If it can't be written, it is forgotten with
    /// the next restart.
    package func keep(_ record: StreamRecord, of address: String) {
        records.withLock { $0[address] = record }
        queue.async { [self] in
            let text = JSON.object(Self.json(records.withLock(\.self))).text
            do { try FileSystem.replace(path, with: Array(text.utf8), sync: false) } catch {}
        }
    }

    /// Waits until what is known is written.
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

    /// A file that can't be read is as none. Times that can't be are left out.
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

    /// The longest rest that an exchange gets, milliseconds.
    private static let longestRest: Int64 = 86_400_000
}
