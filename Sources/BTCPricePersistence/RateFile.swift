package import BTCPriceCore
import BTCPriceSocket
import Dispatch
import Synchronization

/// Keeps the reference rates over a restart and a reboot, in `reference-rates.json` in the state directory.
package final class RateFile: ReferenceRateStore {
    private let path: String
    private let tables: Mutex<[ReferenceRateTable]>
    /// The caller, which runs the ticks, must not wait for the disk.
    private let queue = DispatchQueue(label: "io.btcpriced.reference-rates")

    package init(stateDirectory: String) {
        path = "\(stateDirectory)/reference-rates.json"
        tables = Mutex(Self.read(path))
    }

    package func load() -> [ReferenceRateTable] { tables.withLock(\.self) }

    /// Saves the rates without waiting for the file.
    package func save(_ tables: [ReferenceRateTable]) {
        self.tables.withLock { $0 = tables }
        queue.async { [self] in write(tables) }
    }

    /// Waits until the rates are written.
    package func flush() { queue.sync {} }

    private static func read(_ path: String) -> [ReferenceRateTable] {
        // A file that can't be read counts as missing: the rates are requested again.
        do {
            guard let bytes = try FileSystem.read(path) else { return [] }
            return try JSONValue(parsing: bytes[...]).members.compactMap { name, table -> ReferenceRateTable? in
                guard let source = name.stringValue,
                    let base = table["base"]?.stringValue.flatMap(Currency.init(rawValue:)),
                    let received = table["received"]?.integerValue,
                    Timestamp.possibleMilliseconds.contains(received)
                else { return nil }
                return ReferenceRateTable(
                    source, of: base, rates(table["rates"]), earlier: rates(table["earlier"]),
                    refused: rates(table["refused"]), received: Timestamp(milliseconds: received))
            }
        } catch {
            return []
        }
    }

    private func write(_ tables: [ReferenceRateTable]) {
        var file = JSONObject()
        for table in tables {
            var members: JSONObject = [
                "base": .string(table.base.rawValue), "received": .integer(table.received.milliseconds),
                "rates": .object(Self.json(table.rates)), "earlier": .object(Self.json(table.earlier)),
            ]
            if !table.refused.isEmpty { members["refused"] = .object(Self.json(table.refused)) }
            file[table.source] = .object(members)
        }
        var writer = JSONWriter(.lines)
        writer.write(.object(file))
        // A full disk is reported for the price.
        do { try FileSystem.replace(path, with: writer.bytes, sync: true) } catch {}
    }

    private static func json(_ rates: [Currency: ReferenceRateTable.Rate]) -> JSONObject {
        var json = JSONObject()
        for (currency, rate) in rates.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            json[currency.rawValue] = .array([.string(rate.value.description), .integer(rate.date.milliseconds)])
        }
        return json
    }

    /// A rate that is not valid is left out.
    private static func rates(_ json: JSONValue?) -> [(currency: Currency, value: Price, date: Timestamp)] {
        json?.members.compactMap { code, rate in
            guard let currency = code.stringValue.flatMap(Currency.init(rawValue:)), let parts = rate.arrayValue,
                parts.count == 2, let value = parts[0].rawString.flatMap({ Price(utf8: $0) }),
                let date = parts[1].integerValue, Timestamp.possibleMilliseconds.contains(date)
            else { return nil }
            return (currency, value, Timestamp(milliseconds: date))
        } ?? []
    }
}
