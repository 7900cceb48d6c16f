package import BTCPriceCore
import Varlink

/// Keeps the reference rates over a restart and a reboot, in `reference-rates.json` in the state directory.
package struct RateFile: ReferenceRateStore {
    private let path: String

    package init(stateDirectory: String) {
        path = "\(stateDirectory)/reference-rates.json"
    }

    package func load() -> [ReferenceRateTable] {
        // A file that can't be read counts as missing: the rates are requested again.
        do {
            guard let bytes = try FileSystem.read(path) else { return [] }
            return try JSONValue(parsing: bytes[...]).members.compactMap { name, table -> ReferenceRateTable? in
                guard let source = name.stringValue,
                    let base = table["base"]?.stringValue.flatMap(Currency.init(rawValue:)),
                    let received = table["received"]?.integerValue,
                    Timestamp.possibleMilliseconds.contains(received)
                else { return nil }
                let rates = table["rates"]?.members.compactMap { Self.rate($0.name.stringValue ?? "", $0.value) }
                return ReferenceRateTable(source, of: base, rates ?? [], received: Timestamp(milliseconds: received))
            }
        } catch {
            return []
        }
    }

    package func save(_ tables: [ReferenceRateTable]) {
        var file = JSONObject()
        for table in tables {
            var rates = JSONObject()
            for (currency, rate) in table.rates.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                rates[currency.rawValue] = .array([
                    .string(rate.value.description), .integer(rate.date.milliseconds),
                ])
            }
            file[table.source] = .object([
                "base": .string(table.base.rawValue), "received": .integer(table.received.milliseconds),
                "rates": .object(rates),
            ])
        }
        var bytes: [UInt8] = []
        file.write(to: &bytes, .lines)
        // A full disk is reported for the price.
        do { try FileSystem.replace(path, with: bytes, sync: true) } catch {}
    }

    private static func rate(_ code: String, _ rate: JSONValue) -> (currency: Currency, value: Price, date: Timestamp)?
    {
        guard let currency = Currency(rawValue: code), let parts = rate.arrayValue, parts.count == 2,
            let value = parts[0].rawString.flatMap({ Price(utf8: $0) }), let date = parts[1].integerValue,
            Timestamp.possibleMilliseconds.contains(date)
        else { return nil }
        return (currency, value, Timestamp(milliseconds: date))
    }
}
