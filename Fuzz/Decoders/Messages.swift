import BTCPriceCore
import BTCPriceFeature
import BTCPriceAPI
import Varlink

@testable import BTCCtl

/// The reader's clocks in every run.
let present = ObservationTime(wall: Timestamp(milliseconds: 1_785_050_000_000), boottime: 5_000_000)

/// A message that is read is printed as one that is read as the same.
/// - Returns: The message, for what else is done with it.
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

/// What the client reads, and shows.
func state(_ input: [UInt8]) {
    guard let message = message(input, StateMessage.init(json:), \.json) else { return }
    show(message.state)
}

func status(_ input: [UInt8]) {
    guard let message = message(input, StatusMessage.init(json:), \.json) else { return }
    show(message.price.state)
    hold(!StatusText(timestamps: ReaderTimestampFormatter()).lines(message, at: present).isEmpty, "no text")
}

func source(_ input: [UInt8]) {
    guard let report = message(input, SourceReport.init(json:), \.json) else { return }
    hold(
        !SourcesText(timestamps: ReaderTimestampFormatter())
            .lines([report], isVerbose: false, at: present).isEmpty, "no text")
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
