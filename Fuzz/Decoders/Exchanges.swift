import BTCPriceFeature
import BTCPriceSocket
import Configuration

@testable import BTCPriceCore
@testable import BTCPriceNetworking
@testable import BTCPricePersistence

/// The longest pause that a response may request (``HTTPResponse/pause``): three days.
private let longestPause = Duration.seconds(259_200)

/// The exchange's clock if the input has none, as in the tests of responses. A fixed one makes every run the same.
private let standardDate = "Sun, 26 Jul 2026 07:13:20 GMT"

/// The response that an input describes: a line `status|Retry-After|Date|Content-Encoding`, then the body. It is text, so that seeds
/// are readable. Fields missing at the end of the line are not sent.
private func answer(_ input: [UInt8]) -> HTTPResponse {
    let end = input.firstIndex(of: UInt8(ascii: "\n")) ?? input.endIndex
    let head = String(decoding: input[..<end], as: UTF8.self).split(separator: "|", omittingEmptySubsequences: false)
    func header(_ index: Int) -> String? { head.indices.contains(index) ? String(head[index]) : nil }
    // The HTTP parser accepts no other status.
    let status = head.first.flatMap { Int($0) }.flatMap { (100...999).contains($0) ? $0 : nil } ?? 200
    let date = header(2).flatMap { VenueTime.milliseconds(fromHTTPDate: $0) == nil ? nil : $0 } ?? standardDate
    let fields = [("Date", date), ("Retry-After", header(1)), ("Content-Encoding", header(3))]
    // As the parser does, a line that is no field is refused.
    let lines = fields.compactMap { name, value in value.map { Array("\(name): \($0)".utf8) } }
        .filter { HTTPField(0..<$0.count, in: $0.span) != nil }
    return HTTPResponse(
        status: status, fields: HTTPFields(lines.flatMap { $0 + Array("\r\n".utf8) }[...]),
        body: input[end...].dropFirst())
}

/// Reads a response, and checks the result against the invariants that the rest of the daemon relies on.
func exchange(_ input: [UInt8], _ read: (HTTPResponse) throws(PriceLoadingError) -> [LoadedPrice]) {
    let answer = answer(input)
    do throws(PriceLoadingError) {
        let loaded = try read(answer)
        hold(answer.status == 200, "a price with status \(answer.status)")
        hold(!loaded.isEmpty, "no price and no error")
        let now = ObservationTime(wall: answer.time, boottime: BootTime(milliseconds: 1))
        var book = ObservationBook(currency: .usd)
        try book.record(loaded, of: loaded[0].market, at: now)
        checkAccepted(loaded[0], book.positions, at: now.wall)
    } catch {
        checkFailure(error)
    }
}

private func checkAccepted(_ loaded: LoadedPrice, _ positions: [KeptPosition], at now: Timestamp) {
    checkBounds(loaded.value)
    let quote = PriceQuote(value: loaded.value, currency: "USD", timestamp: now, source: "fuzz", market: "BTC/USD")
    // An accepted price is stored and sent to clients. Neither may change or refuse it.
    let price = ShownPrice(quote, observedBoottime: BootTime(milliseconds: 1), confirmation: .single)
    let file = QuoteFile(sequence: 1, prices: [CachedPrice(price, positions: positions)])
    hold(accepted { try QuoteFile(decoding: try file.encoded()) } == file, "\(loaded) is not kept as it is")
    let message = StateMessage(
        instance: "",
        state: PriceState(price, TickState(number: 1, freshness: .fresh), currency: "USD"))
    hold(
        accepted { () throws(JSONFieldError) in try StateMessage(json: JSONValue(.object(message.json))) } == message,
        "\(loaded) is not told as it is")
}

/// Checks that a price is within the bounds of every price that is shown, whatever its origin.
func checkBounds(_ value: Price) {
    hold(Currency.usd.prices.contains(value), "\(value) was taken")
}

private func checkFailure(_ error: PriceLoadingError) {
    if let pause = error.retryAfter {
        hold(pause >= .zero && pause <= longestPause, "a pause of \(pause)")
    }
    // The text goes to the journal as one line, and to clients.
    let text = error.description
    hold(!text.unicodeScalars.contains { $0.properties.generalCategory == .control }, "more than a line: \(text)")
    hold(text.unicodeScalars.count < 500, "a long line: \(text)")
}

/// Reads a time in each of the formats that exchanges use.
func times(_ text: String) {
    if let time = VenueTime.milliseconds(fromISO8601: text) { checkTime(time) }
    if let time = VenueTime.milliseconds(fromHTTPDate: text) { checkTime(time) }
    if let number = Int64(text), let time = VenueTime.milliseconds(fromEpoch: number) {
        hold((1_000_000_000_000..<100_000_000_000_000).contains(time), "\(number) is taken for \(time)")
    }
}

/// Checks that a printed time is read as the same time: printing and reading are inverse.
private func checkTime(_ time: Int64) {
    // 31 December 9999, 23:59:60 is the year 10000.
    guard time < 253_402_300_800_000 else { return hold(time < 253_402_300_802_000, "\(time) was read") }
    let printed = Timestamp(milliseconds: time).utcText.split(separator: " ")
    let again = VenueTime.milliseconds(fromISO8601: "\(printed[0])T\(printed[1])Z")
    hold(again == time - (time % 1000 + 1000) % 1000, "\(time) is printed as \(printed), which is \(again ?? .min)")
}

/// Reads a response as each exchange's candles.
func candles(_ input: [UInt8]) {
    let answer = answer(input)
    for exchange in Exchange.all {
        guard let source = exchange.candles else { continue }
        do throws(PriceLoadingError) {
            for candle in try source.candles(answer, exchange.description, exchange.description.markets[0]).candles {
                hold(answer.status == 200, "candles with status \(answer.status)")
                checkCandle(candle)
            }
        } catch {
            checkFailure(error)
        }
    }
}

/// Checks that an accepted candle is within the bounds, can be added to others, and fits into the history's columns.
func checkCandle(_ candle: Candle) {
    for price in [candle.open, candle.high, candle.low, candle.close] {
        hold(price >= Currency.usd.prices.lowerBound && price <= Currency.jpy.prices.upperBound, "\(candle)")
        hold(price.units(ofPlaces: 8) != nil, "\(candle) fits into no column")
    }
    hold(candle.low <= min(candle.open, candle.close) && candle.high >= max(candle.open, candle.close), "\(candle)")
    hold(candle.ticks >= candle.fresh && candle.fresh >= 0, "\(candle)")
    let day = Candle.merged(Array(repeating: candle, count: 1440), of: .minute, to: .day, at: .max)
    hold(day.count == 1 && day[0].ticks == 1440 * candle.ticks, "\(day)")
    let again = accepted { () throws(JSONFieldError) in try Candle(json: JSONValue(.object(candle.json))) }
    hold(again == candle, "\(candle) was read again as \(String(describing: again))")
}

/// Reads a text as a point in time.
func readerTime(_ text: String) {
    let now = Timestamp(milliseconds: 1_787_659_200_000)
    do throws(ReaderTime.Mistake) {
        let read = try ReaderTime.reading(text, isUTC: true, now: now).time
        hold(Timestamp.possibleMilliseconds.contains(read.milliseconds), "\(text): \(read)")
    } catch {
        hold(!error.message.isEmpty, "no reason")
    }
}

/// The prices that a built-in exchange's description finds in a response.
func prices(_ answer: HTTPResponse, _ markets: Market...) throws(PriceLoadingError) -> [LoadedPrice] {
    guard let exchange = Exchange.all.first(where: { $0.name == markets[0].venue }) else { fatalError("\(markets)") }
    return try exchange.prices(answer, of: markets)
}

extension Exchange {
    /// The prices of some markets in a response.
    func prices(_ response: HTTPResponse, of wanted: [Market]) throws(PriceLoadingError) -> [LoadedPrice] {
        let markets = wanted.compactMap { market in description.markets.first { $0.market == market } }
        return try TickerReader(description, markets).prices(response)
    }
}

/// An exchange whose description has what no built-in one has: a row, quotes, a time outside the row, errors of two kinds.
let described: Exchange = {
    let text = """
        [exchange.fuzz]
        url = "https://fuzz.example/{names}"
        row = { of = "/data", where = "/symbol", is = "{name}" }
        price = "/last"
        bid = "/bid"
        ask = "/ask"
        time = "//meta/time"
        time-is = "book"
        sequence = "/id"
        require = { "/open" = true, "//meta/version" = 2 }
        error = ["/error/message", "/code"]
        limited = ["limit"]
        unavailable = ["busy"]
        markets = { USD = {}, EUR = {} }
        """
    do throws(SettingsError) {
        let table = try ConfigurationFile(text: text, path: "fuzz.toml").tables(in: "exchange")[0]
        return Exchange(try ExchangeDescription(table.name, table.table))
    } catch {
        fatalError("\(error)")
    }
}()
