package import BTCPriceCore
import BTCPriceFeature
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceSocket
package import Logging
import Synchronization

/// Turns events into few log lines: only transitions, with each kind at growing intervals and with counts. A condition whose line was left
/// out is logged after ten minutes if it still lasts.
package final class Reporter: Sendable {
    /// The last kind of line about a condition.
    private struct Standing {
        let kind: String
        let since: BootTime
        let message: JournalMessage
        let line: String
        let metadata: Logger.Metadata
        /// Whether a line of this kind was logged since the condition is like this.
        var isSaid: Bool
    }

    private struct Lines {
        var throttle = LineThrottle()
        /// By condition.
        var standing: [String: Standing] = [:]
        /// Whether a line of one of them was left out.
        var hasUnsaid = false
    }

    private static let lasting = Duration.seconds(600)

    private let logger: Logger
    private let now: TimeSource
    private let lines = Mutex(Lines())

    package init(logger: Logger, now: @escaping TimeSource) {
        self.logger = logger
        self.now = now
    }

    /// Logs an event, if a line of its kind may be logged now.
    package func report(_ event: PriceEvent) {
        switch event {
        case .ticked(let tick, let lateness, let skipped):
            logger.debug("tick \(tick) began \(lateness.microsecondsText) ms late, \(skipped) skipped before it")
            sayWhatLasts()
        case .kept(let sources): forget(allBut: sources)
        case .becameFresh(let quote, 0):
            say(
                .fresh, "fresh \(quote.currency)", "The price is \(text(quote)).",
                ["source": "\(quote.source)", "price": "\(quote.value)"], of: "price \(quote.currency)")
        case .becameFresh(let quote, let failed):
            say(
                .currentAgain, "current again \(quote.currency)",
                "The price is current again after \(failed) failed tick\(failed == 1 ? "" : "s"): \(text(quote)).",
                ["source": "\(quote.source)", "price": "\(quote.value)"], of: "price \(quote.currency)")
        case .becameStale(let failure, let quote?, _):
            say(
                .stale, "stale \(quote.currency)",
                "\(PriceTexts.stale(from: quote.timestamp.utcText)): \(failure)",
                ["error": "\(failure)"], of: "price \(quote.currency)")
        case .becameStale(let failure, nil, let currency):
            say(
                .stale, "stale \(currency)", "\(PriceTexts.failed) No value is held yet: \(failure)",
                ["error": "\(failure)"], of: "price \(currency)")
        case .contradicted(let warning, let quote):
            say(
                .contradicted, "contradicted \(quote.currency)",
                "The price is in doubt: \(warning). Shown is \(text(quote)).",
                ["source": "\(quote.source)", "price": "\(quote.value)"], of: "doubt \(quote.currency)")
        case .contradictionEnded(let quote, let duration):
            say(
                .contradictionEnded, "contradiction ended \(quote.currency)",
                "The price is no longer contradicted, after \(duration.wholeUnits): \(text(quote)).",
                ["source": "\(quote.source)", "price": "\(quote.value)"], of: "doubt \(quote.currency)")
        case .sourceFailed(let failure): report(failure)
        case .sourceRecovered(let source):
            say(
                .sourceRecovered, "\(source) recovered", "\(source) has prices again.", ["source": "\(source)"],
                of: "source \(source)")
        case .outliers(let sources, let value):
            let names = sources.joined(separator: ", ")
            say(
                .outliers, "outliers", "Not counted, since they are far from the median \(value): \(names).",
                ["source": "\(names)", "price": "\(value)"], detail: names)
        // A source that is newly outvoted has failed. The others are told by 'btcctl events'.
        case .outvoted, .jumped, .offPeg: break
        case .pegChanged(let rate) where rate.isOffPeg:
            say(
                .tetherOffPeg, "off peg", "USDT is off its peg: \(rate.text). Prices in USDT are not dollar prices.",
                ["rate": "\(rate.value)"], of: "peg")
        case .pegChanged(let rate):
            say(
                .tetherBack, "back at peg", "USDT is back at its peg: \(rate.text).", ["rate": "\(rate.value)"],
                of: "peg")
        case .timeAhead(let source):
            say(
                .sourceAhead, "\(source) ahead",
                "\(source) dates its prices in the future: they count as prices without a time. Its clock or this machine's is wrong.",
                ["source": "\(source)"], detail: source)
        case .derivedInstead(let failure, let quote, let derivation):
            say(
                .derivedInstead, "derived \(quote.currency)",
                "The price in \(quote.currency) is derived from that in \(derivation.currency), at the rate of \(derivation.rateSource) of \(derivation.rateDate): \(failure)",
                of: "price \(quote.currency)")
        case .marketAgain(let quote):
            say(
                .marketAgain, "market \(quote.currency)", "A market has the price again: \(text(quote)).",
                of: "price \(quote.currency)")
        case .ratesFailed(let source, let error, let isHeld):
            let rest =
                isHeld
                ? "Rates received before are used until they are \(ReferenceRates.oldest) days old."
                : "None were received before."
            say(
                .ratesFailed, "rates of \(source) failed", "\(source) gave no reference rates: \(error). \(rest)",
                ["source": "\(source)", "error": "\(error.kind)"], of: "rates of \(source)")
        case .ratesRecovered(let source):
            say(
                .ratesRecovered, "rates of \(source) recovered", "\(source) gave reference rates again.",
                ["source": "\(source)"], of: "rates of \(source)")
        case .ratesRefused(let source, let currencies):
            let codes = currencies.map(\.rawValue).joined(separator: ", ")
            say(
                .ratesRefused, "rates of \(source) refused",
                "The reference rates of \(codes) by \(source) are not used: they have moved by more than 20 %, and no second source agrees.",
                ["source": "\(source)"])
        case .clockDiffers(let difference):
            let side = difference.milliseconds > 0 ? "behind" : "ahead of"
            let span = Duration.milliseconds(difference.milliseconds.magnitude).wholeUnits
            say(
                .clockWrong, "clock wrong",
                "This machine's clock is \(span) \(side) the time that \(difference.venues) of \(difference.known) sources agree on. A history is kept by their time. 'timedatectl status' shows whether the clock is synchronized.",
                ["difference": "\(difference.milliseconds)"], of: "clock")
        case .clockAgrees:
            say(.clockRight, "clock right", "This machine's clock agrees with most sources again.", of: "clock")
        case .saveFailed(let error):
            say(
                .saveFailed, "save failed", "The last price cannot be saved: \(error). Prices are still served.",
                ["error": "\(error)"], of: "save")
        case .saveRecovered:
            say(.saveRecovered, "save recovered", "The last price is saved again.", of: "save")
        }
    }

    /// Invalid responses, rate limits and refusals each are a kind. Failures to get a response are one kind: they often alternate.
    private func report(_ failure: SourceFailure) {
        let category = failure.error.category
        let kind = category == .transient ? "failed" : failure.error.kind
        // A refused source may still be requested once a minute, if there is no other.
        let what = category == .refused ? "it has a cooldown until" : "it is not requested until"
        let cooldown = failure.cooldown.map { "; \(what) \($0.until.wall.utcText)" } ?? ""
        let message: JournalMessage =
            switch category {
            case .rateLimited: .sourceLimited
            case .refused: .sourceRefused
            default: .sourceFailed
            }
        say(
            message, "\(failure.source) \(kind)",
            "\(failure.source) gave no price: \(failure.error)\(category.isBinding || failure.error.retryAfter != nil ? cooldown : "")",
            ["source": "\(failure.source)", "error": "\(failure.error.kind)"], detail: failure.error.kind,
            daily: category == .refused, of: "source \(failure.source)")
    }

    /// Logs a stream event. Only a refusal is a notice: the source is still requested at every tick if its stream ends.
    func report(_ event: StreamEvent, ofStream source: String) {
        switch event {
        case .refusedMarket(let market, let reason):
            say(
                .streamRefused, "\(source) stream \(market.pair)",
                "The stream of \(source) refuses \(market.pair): \(reason). Its price changes at the ticks only.",
                ["source": "\(source)"], daily: true)
        case .ended(let reason, true, let retry):
            say(
                .streamRefused, "\(source) stream",
                "The stream of \(source) can't be used: \(reason). It is tried again in \(retry.components.seconds) s.",
                ["source": "\(source)"], daily: true)
        case .ended(let reason, false, let retry):
            logger.debug(
                "the stream of \(source) has ended: \(reason); it is tried again in \(retry.wholeMilliseconds) ms")
        }
    }

    func report(_ ticking: Ticking) {
        if ticking == .idle { say(.idle, "idle", "No client needs a price: the ticks stop until one does.") }
    }

    func report(_ event: HistoryStore.Event) {
        switch event {
        case .failed(let error):
            say(
                .historyFailed, "history failed",
                "The history can't be written: \(error). New candles are held in memory. The price is still updated.",
                ["error": "\(error)"], of: "history")
        case .recovered(let candles):
            let held = candles > 0 ? ", with \(candles) candle\(candles == 1 ? "" : "s") held in memory" : ""
            say(.historyRecovered, "history recovered", "The history is written again\(held).", of: "history")
        case .damaged(let path, let reason, let setAside):
            say(
                .historyDamaged, "history damaged",
                "\(path) is damaged (\(reason)), so a new history is begun. "
                    + (setAside.map { "The damaged file is \($0)." } ?? "The damaged file could not be moved."),
                ["error": "\(reason)"])
        case .salvaged(let path, let candles):
            let count =
                candles == 0 ? "Nothing could be read" : "\(candles) candle\(candles == 1 ? " was" : "s were") saved"
            say(.historySaved, "history saved", "\(count) of the damaged history \(path).")
        case .noRoom(let path, let bytes):
            say(
                .historyNotSaved, "history not saved",
                "The damaged history \(path) is not read, since that needs \(bytes >> 20) MiB of room on the disk. The next start tries again."
            )
        }
    }

    func report(_ news: Backfill.News) {
        switch news {
        case .filled(let filled): report(filled)
        case .unused(let count, let market):
            say(
                .historyUnfilled, "candles of \(market) unused",
                "\(count) of the candles of \(market.venue) for \(market.pair) are not valid and not used.",
                ["source": "\(market.venue)"], daily: true)
        case .failed(let market, let error):
            say(
                .historyUnfilled, "candles of \(market)",
                "\(market.venue) gave no candles of \(market.pair): \(error). Gaps of the history are filled later.",
                ["source": "\(market.venue)", "error": "\(error.kind)"], detail: error.kind, daily: true)
        }
    }

    private func report(_ filled: Backfill.Filled) {
        let count = "\(filled.candles) \(filled.step)\(filled.candles == 1 ? "" : "s")"
        say(
            .historyFilled, "history filled \(filled.currency) \(filled.step)",
            "Gaps of the history in \(filled.currency) were filled: \(count) from \(filled.venues.joined(separator: ", ")).",
            ["source": "\(filled.venues.joined(separator: " "))"])
    }

    func report(_ event: ServerEvent) {
        switch event {
        case .limitHit(let limit, _, let uid):
            say(
                .clientLimit, "limit \(limit)",
                "\(event.text). 'btcctl status' counts these.",
                ["uid": "\(uid)", "limit": "\(limit.rawValue)"], detail: "user \(uid)", daily: limit == .idleTimeout)
        case .acceptFailed: say(.acceptFailed, "accept", "\(event.text). The price is still updated.")
        }
    }

    /// - Parameter condition: What the line tells the state of. It is logged once more if it was left out and the condition lasts.
    private func say(
        _ message: JournalMessage, _ kind: String, _ line: String, _ metadata: Logger.Metadata = [:],
        detail: String = "", daily: Bool = false, of condition: String? = nil
    ) {
        let boottime = now().boottime
        let summary = lines.withLock { lines in
            let summary = lines.throttle.admit(kind, detail: detail, daily: daily, at: boottime)
            if let condition {
                let before = lines.standing[condition].flatMap { $0.kind == kind ? $0 : nil }
                let isSaid = summary != nil || before?.isSaid == true
                lines.standing[condition] = Standing(
                    kind: kind, since: before?.since ?? boottime, message: message, line: line, metadata: metadata,
                    isSaid: isSaid)
                if !isSaid { lines.hasUnsaid = true }
            }
            return summary
        }
        guard let summary else { return }
        logger.tell(message, "\(line)\(summary)", metadata)
    }

    /// Forgets the conditions of what is no longer kept: nobody tells that they are over.
    private func forget(allBut sources: [Currency: Set<String>]) {
        let (codes, names) = (Set(sources.keys.map(\.rawValue)), Set(sources.values.joined()))
        lines.withLock { lines in
            lines.standing = lines.standing.filter { condition, _ in
                let words = condition.split(separator: " ").map(String.init)
                switch words[0] {
                case "price", "doubt": return codes.contains(words[1])
                case "source": return names.contains(words[1])
                default: return true
                }
            }
        }
    }

    /// Logs the conditions that have lasted for ten minutes and whose line was left out.
    private func sayWhatLasts() {
        let boottime = now().boottime
        let due = lines.withLock { lines in
            guard lines.hasUnsaid else { return [Standing]() }
            let unsaid = lines.standing.filter { !$0.value.isSaid }
            let due = unsaid.filter { boottime - $0.value.since >= Self.lasting.wholeMilliseconds }
            for condition in due.keys { lines.standing[condition]?.isSaid = true }
            lines.hasUnsaid = unsaid.count > due.count
            return due.values.sorted { $0.since < $1.since }
        }
        for each in due {
            logger.tell(each.message, "\(each.line) (for \((boottime - each.since) / 60_000) min)", each.metadata)
        }
    }

    private func text(_ quote: PriceQuote) -> String {
        "\(quote.value) \(quote.currency), from \(quote.sourceText) (\(quote.market))"
    }
}

extension Duration {
    /// Milliseconds with three decimal places: `0.214`.
    fileprivate var microsecondsText: String {
        let microseconds = components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
        return "\(microseconds / 1000).\((microseconds % 1000).padded(3))"
    }
}
