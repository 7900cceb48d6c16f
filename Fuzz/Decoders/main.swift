import CLibFuzzer
import Glibc

@testable import BTCPriceCore
@testable import BTCPriceNetworking

/// The decoders by their names: `fuzz-decoders NAME [libFuzzer's arguments]`.
let decoders: [String: Run] = [
    "binance": {
        each($0, $1) {
            exchange($0) { (answer) throws(PriceLoadingError) in
                try prices(answer, Market("binance", "BTC/USDT"))
            }
        }
    },
    "cryptocompare": {
        each($0, $1) {
            exchange($0) { (answer) throws(PriceLoadingError) in
                try prices(answer, Market("cryptocompare", "BTC/USD"))
            }
        }
    },
    "coinbase": {
        each($0, $1) {
            exchange($0) { (answer) throws(PriceLoadingError) in
                try prices(answer, Market("coinbase", "BTC/USD"))
            }
        }
    },
    "bitstamp": {
        each($0, $1) {
            exchange($0) { (answer) throws(PriceLoadingError) in
                try prices(answer, Market("bitstamp", "BTC/USD"))
            }
        }
    },
    "kraken": {
        each($0, $1) {
            exchange($0) { (answer) throws(PriceLoadingError) in
                try prices(answer, Market("kraken", "BTC/USD"), Market("kraken", Market.pegPair))
            }
        }
    },
    "described": {
        each($0, $1) {
            exchange($0) { (answer) throws(PriceLoadingError) in
                try described.prices(answer, of: [Market("fuzz", "BTC/USD")])
            }
        }
    },
    "stream-binance": {
        each($0, $1) {
            streamMessage($0, of: .binance, [Market("binance", "BTC/USDT"), Market("binance", "BTC/EUR")])
        }
    },
    "stream-bitstamp": {
        each($0, $1) {
            streamMessage($0, of: .bitstamp, [Market("bitstamp", "BTC/USD"), Market("bitstamp", "BTC/EUR")])
        }
    },
    "stream-coinbase": {
        each($0, $1) {
            streamMessage($0, of: .coinbase, [Market("coinbase", "BTC/USD"), Market("coinbase", "BTC/EUR")])
        }
    },
    "stream-kraken": {
        each($0, $1) {
            streamMessage($0, of: .kraken, [Market("kraken", "BTC/USD"), Market("kraken", "BTC/JPY")])
        }
    },
    "websocket": { each($0, $1, webSocket) },
    "candles": { each($0, $1, candles) },
    "reader-time": { each($0, $1) { readerTime(String(decoding: $0, as: UTF8.self)) } },
    "http-response": { each($0, $1, httpResponse) },
    "time": { each($0, $1) { times(String(decoding: $0, as: UTF8.self)) } },
    "decimal": { each($0, $1) { decimal(String(decoding: $0, as: UTF8.self)) } },
    "json": { each($0, $1, json) },
    "framing": { each($0, $1, framing) },
    "call": { each($0, $1, call) },
    "reply": { each($0, $1, reply) },
    "connection": { each($0, $1, connection) },
    "state": { each($0, $1, state) },
    "status": { each($0, $1, status) },
    "source": { each($0, $1, source) },
    "peer": { each($0, $1, peer) },
    "fleet-quote": { each($0, $1, fleetQuote) },
    "metrics": { each($0, $1, metrics) },
    "agent": { each($0, $1, agent) },
    "payments": { each($0, $1, payments) },
    "quote-file": { each($0, $1, quoteFile) },
    "configuration": { each($0, $1, configuration) },
]

// `fuzz-decoders json-text` reads paths from standard input and prints a line for each.
if CommandLine.arguments.dropFirst() == ["json-text"] {
    while let path = readLine() {
        guard let file = fopen(path, "r") else { continue }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = fread(&bytes, 1, bytes.count, file)
        fclose(file)
        print(jsonText(Array(bytes[..<count])))
    }
    exit(0)
}
guard CommandLine.arguments.count > 1, let run = decoders[CommandLine.arguments[1]] else {
    print(decoders.keys.sorted().joined(separator: "\n"))
    exit(64)
}
// Hides the decoder's name from libFuzzer, which would use it as the folder of a corpus.
var arguments = (CommandLine.arguments.prefix(1) + CommandLine.arguments.dropFirst(2)).map { strdup($0) } + [nil]
exit(
    arguments.withUnsafeMutableBufferPointer { buffer in
        var count = Int32(buffer.count - 1)
        var start = buffer.baseAddress
        return LLVMFuzzerRunDriver(&count, &start, run)
    })
