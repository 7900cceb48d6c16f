package import BTCPriceCore
import BTCPriceSocket
import Dispatch
import Files
import Synchronization

/// Keeps the reference rates over a restart and a reboot, in `reference-rates.json` in the state directory, and those of past days in
/// `rate-history.json`.
package final class RateFile: ReferenceRateStore, RateHistoryStore {
    private let path: String
    private let historyPath: String
    private let tables: Mutex<[ReferenceRateTable]>
    /// The caller, which runs the ticks, must not wait for the disk.
    private let queue = DispatchQueue(label: "io.btcpriced.reference-rates")

    package init(stateDirectory: String) {
        path = "\(stateDirectory)/reference-rates.json"
        historyPath = "\(stateDirectory)/rate-history.json"
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

    package func loadHistory() -> RateHistory? {
        guard let file = Self.json(historyPath), let source = file["source"]?.stringValue,
            let base = file["base"]?.stringValue.flatMap(Currency.init(rawValue:)), let currencies = file["currencies"]
        else { return nil }
        var all: [Currency: RateHistory.Series] = [:]
        for (code, known) in currencies.members {
            guard let currency = code.stringValue.flatMap(Currency.init(rawValue:)),
                let from = known["from"]?.timestampValue, let until = known["until"]?.timestampValue, from <= until
            else { continue }
            let days = RateHistory.day(of: from.wholeSeconds)...RateHistory.day(of: until.wholeSeconds)
            let rates = (known["rates"]?.arrayValue ?? []).compactMap(Self.rate).filter {
                ReferenceRateTable.possible.contains($0.value)
            }.map { (RateHistory.day(of: $0.date.wholeSeconds), $0.value) }
            all[currency] = RateHistory.Series(days: days, rates: Dictionary(rates) { first, _ in first })
        }
        return RateHistory(source, of: base, all, renewed: file["renewed"]?.timestampValue)
    }

    package func save(_ history: RateHistory) {
        queue.async { [historyPath] in
            func date(_ day: Int64) -> JSON { .integer(day * Candle.Step.day.seconds * 1000) }
            var currencies = JSONObject()
            for (currency, known) in history.series.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                let rates = known.rates.sorted { $0.key < $1.key }
                currencies[currency.rawValue] = .object([
                    "from": date(known.days.lowerBound), "until": date(known.days.upperBound),
                    "rates": .array(rates.map { .array([.string($0.value.description), date($0.key)]) }),
                ])
            }
            let file: JSONObject = [
                "source": .string(history.source), "base": .string(history.base.rawValue),
                "renewed": history.renewed.map { .integer($0.milliseconds) } ?? .null,
                "currencies": .object(currencies),
            ]
            // A full disk is reported for the price.
            do { try FileSystem.replace(historyPath, with: Array(JSON.object(file).text.utf8), sync: true) } catch {}
        }
    }

    /// The content of a file. One that can't be read counts as missing: the rates are requested again.
    private static func json(_ path: String) -> JSONValue? {
        guard let bytes = try? FileSystem.read(path) else { return nil }
        return try? JSONValue(parsing: bytes[...])
    }

    private static func read(_ path: String) -> [ReferenceRateTable] {
        json(path)?.members.compactMap { name, table -> ReferenceRateTable? in
            guard let source = name.stringValue,
                let base = table["base"]?.stringValue.flatMap(Currency.init(rawValue:)),
                let received = table["received"]?.timestampValue
            else { return nil }
            return ReferenceRateTable(
                source, of: base, rates(table["rates"]), earlier: rates(table["earlier"]),
                refused: rates(table["refused"]), received: received)
        } ?? []
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
        json?.members.compactMap { code, pair in
            guard let currency = code.stringValue.flatMap(Currency.init(rawValue:)), let rate = rate(pair)
            else { return nil }
            return (currency, rate.value, rate.date)
        } ?? []
    }

    /// `["4.27", 1735776000000]`
    private static func rate(_ json: JSONValue) -> (value: Price, date: Timestamp)? {
        guard let parts = json.arrayValue, parts.count == 2, let value = parts[0].decimalValue,
            let date = parts[1].timestampValue
        else { return nil }
        return (value, date)
    }
}
