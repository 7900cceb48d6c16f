import BTCPriceFeature
import BTCPriceSocket

@testable import BTCPriceCore
@testable import BTCPriceNetworking
@testable import btcctl

/// The reader's clocks in every run.
let present = ObservationTime(
    wall: Timestamp(milliseconds: 1_785_050_000_000), boottime: BootTime(milliseconds: 5_000_000))

/// Reads a message, and checks that its JSON is read as the same message.
/// - Returns: The message, for further checks; `nil` if it is refused.
private func message<Message: Equatable>(
    _ input: [UInt8], _ read: (JSONValue) throws(JSONFieldError) -> Message, _ json: (Message) -> JSONObject
) -> Message? {
    guard let object = accepted({ () throws(JSONError) in try JSONValue(parsing: input[...]) })?.objectValue,
        let message = accepted({ () throws(JSONFieldError) in try read(object) })
    else { return nil }
    let again = accepted { () throws(JSONFieldError) in try read(JSONValue(.object(json(message)))) }
    hold(again == message, "\(message) was read again as \(String(describing: again))")
    return message
}

/// Reads a state as a client does, and shows it.
func state(_ input: [UInt8]) {
    guard let message = message(input, StateMessage.init(json:), \.json) else { return }
    show(message.state)
}

func status(_ input: [UInt8]) {
    guard let message = message(input, StatusMessage.init(json:), \.json) else { return }
    show(message.price.state)
    hold(!StatusText(timestamps: TimestampFormatter()).lines(message, at: present).isEmpty, "no text")
}

/// Reads the messages of a peer: its state, its currencies with the intervals of their ticks, and the candles of its history.
func peer(_ input: [UInt8]) {
    guard let value = accepted({ () throws(JSONError) in try JSONValue(parsing: input[...]) }) else { return }
    if let candle = accepted({ () throws(JSONFieldError) in try Candle(json: value) }) { checkCandle(candle) }
    if let currency = accepted({ () throws(JSONFieldError) in try CurrencyMessage(json: value) }) {
        hold(Timestamp.possibleIntervals.contains(currency.interval), "an interval of \(currency.interval)")
        take(currency.price, every: .milliseconds(currency.interval))
    }
    if let state = accepted({ () throws(JSONFieldError) in try StateMessage(json: value) }) {
        take(state, every: .seconds(1))
    }
}

/// Passes a peer's price into the book, as for an exchange.
private func take(_ message: StateMessage, every interval: Duration) {
    if let day = message.state.day { hold(day.low > .zero && day.high > .zero, "\(day)") }
    let market = Market("fuzz", "BTC/USD")
    var reading = PeerReading(ownInstance: "own")
    var tracker = PriceTracker(.usd, interval: .seconds(1))
    for seconds in 0...1 {
        let now = present.advanced(by: .seconds(seconds))
        guard
            let price = accepted({ () throws(PriceLoadingError) in
                try reading.price(in: message, of: market, every: interval, at: now)
            })
        else { return }
        hold(price.observed.map { $0.boottime <= now.boottime } == true, "\(price) of the future")
        guard
            accepted({ () throws(PriceLoadingError) in try tracker.record([price], of: market, pace: .zero, at: now) })
                != nil
        else { continue }
        checkBounds(price.value)
    }
}

func source(_ input: [UInt8]) {
    guard let report = message(input, SourceReport.init(json:), \.json) else { return }
    hold(
        !SourcesText(timestamps: TimestampFormatter())
            .lines([report], isVerbose: true, at: present).isEmpty, "no text")
}

func metrics(_ input: [UInt8]) {
    guard let family = message(input, MetricFamily.init(json:), \.json) else { return }
    for format in [MetricsText.Format.prometheus, .openMetrics] {
        let lines = MetricsText.text([family], as: format).split(separator: "\n")
        let head = family.samples.isEmpty ? 0 : 2
        hold(lines.count == head + family.samples.count + (format == .openMetrics ? 1 : 0), "\(lines)")
    }
}

private func show(_ state: PriceState) {
    if let (age, _) = state.age(at: present) { hold(age >= .zero, "an age of \(age)") }
    let model = PriceViewModel()
    model.show(state.aged(at: present.boottime), at: present)
    hold((model.price == PriceTexts.placeholder) == (state.quote == nil), "\(model.line) for \(state)")
}

/// Reads a table of payments. The rows have all its bytes, and each has a payment or a mistake.
func payments(_ input: [UInt8]) {
    guard let table = accepted({ () throws(PaymentTable.Mistake) in try PaymentTable(input) }) else { return }
    hold(Array(table.start) + table.rows.flatMap { $0.bytes + $0.end } == input, "other bytes than those of the table")
    guard
        let columns = accepted({ () throws(PaymentTable.Mistake) in try PaymentColumns(of: table, .init(isUTC: true)) })
    else { return }
    for cells in table.rows.compactMap(\.cells) {
        _ = accepted { () throws(PaymentTable.Mistake) in
            try columns.payment(cells, now: Timestamp(milliseconds: 1_795_400_000_000))
        }
    }
}

/// Reads a message of an agent's program, and checks that the reply is a line of JSON. The tools find no daemon.
func agent(_ input: [UInt8]) {
    let tools = AgentTools(daemon: DaemonAddress(socket: "/nonexistent")).all
    guard let text = AgentProtocol(tools: tools, instructions: "").reply(to: input[...])?.text else { return }
    hold(!text.utf8.contains(UInt8(ascii: "\n")), "more than a line: \(text)")
    let reply = accepted { () throws(JSONError) in try JSONValue(parsing: Array(text.utf8)[...]) }
    hold((reply?["result"] == nil) != (reply?["error"] == nil), "not a reply: \(text)")
}
