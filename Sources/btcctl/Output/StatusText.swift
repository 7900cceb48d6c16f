import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// `btcctl status` as text: one line per subject, like `chronyc tracking`.
struct StatusText {
    let timestamps: TimestampFormatter

    /// The note on sources that are not requested at the exchanges' own addresses.
    static func elsewhere(_ sources: [String]) -> String? {
        sources.isEmpty
            ? nil
            : "Not from the exchanges' own addresses (a simulator, a mirror or a proxy): \(sources.joined(separator: ", "))."
    }

    /// - Parameters:
    ///   - sources: Those of the first currency.
    ///   - currencies: All that are kept.
    ///   - width: The maximum number of columns of a line. Longer lines are wrapped.
    func lines(
        _ status: StatusMessage, _ sources: [SourceReport] = [], _ currencies: [CurrencyMessage] = [],
        at now: ObservationTime, width: Int = .max
    ) -> [String] {
        (Self.elsewhere(status.elsewhere).map { Table.wrapped("", $0, width: width) } ?? [])
            + [
                ("Price", price(status.price.state)),
                ("State", state(status)),
                ("Source", source(status.price.state, at: now)),
                (
                    "Off",
                    status.sourcesOff.isEmpty
                        ? nil : "\(status.sourcesOff.listed); 'btcctl source NAME on' switches it on"
                ),
                ("In trouble", SourcesText(timestamps: timestamps).troubles(sources, at: now)),
                ("Others", others(currencies)),
                ("Ticks", ticks(status)),
                ("Compared", validated(status.ticks.validated)),
                ("USDT", tether(status.pegRate, at: now)),
                ("Store", store(status.store, at: now)),
                ("Clients", clients(status.clients)),
                ("Limits hit", limits(status.clients.limits)),
                ("Clock", clock(status.clock)),
                ("Daemon", daemon(status)),
            ].flatMap { name, text in
                text.map { Table.wrapped("\(Table.padded(name, 11)): ", $0, width: width) } ?? []
            }
    }

    /// The prices in the currencies after the first; `nil` if there are none.
    private func others(_ currencies: [CurrencyMessage]) -> String? {
        let texts = currencies.dropFirst().map { currency in
            let state = currency.price.state
            let doubt =
                state.freshness != .fresh
                ? state.freshness.rawValue
                : state.derivation == nil
                    ? state.doubt ?? (state.isSingleOfSeveral ? state.confirmation?.rawValue : nil) : nil
            return ([price(state)] + [doubt].compactMap(\.self)).joined(separator: " ")
        }
        return texts.isEmpty ? nil : texts.joined(separator: "; ")
    }

    private func price(_ state: PriceState) -> String {
        guard let price = PriceTexts.money(state) else { return PriceTexts.placeholder }
        return "\(price)\(Self.uncertainty(of: state, isUnicode: Output.isUnicode).map { " \($0)" } ?? "")"
    }

    /// `± 54.36 (4 markets)`; `nil` if it is not known.
    static func uncertainty(of state: PriceState, isUnicode: Bool) -> String? {
        guard let quote = state.quote, let uncertainty = state.standing.uncertainty else { return nil }
        let plusMinus = MoneyFormatter().number(uncertainty.plusMinus, currency: quote.currency)
        return "\(isUnicode ? "±" : "+/-") \(plusMinus) (\(count(uncertainty.markets, "market")))"
    }

    private func state(_ status: StatusMessage) -> String {
        let state = status.price.state
        var text = "\(state.freshness.rawValue) since \(timestamps.string(from: status.since))"
        if state.freshness == .fresh, let confirmation = state.confirmation {
            text += "; \(state.derivation == nil ? Self.words(for: confirmation) : "derived, and no market's price")"
        }
        if let failure = state.failure {
            text += ": \(failure)\(failure == PriceState.pausedFailure ? Self.cause(of: status.ticking) : "")"
        }
        let isUnconfirmed = state.freshness == .fresh && state.confirmation == .unconfirmed && state.derivation == nil
        if let warning = state.standing.warning ?? (isUnconfirmed ? "no other exchange confirms it" : nil) {
            text += "\(isUnconfirmed ? ": " : "; ")\(warning)"
        }
        return text
    }

    /// Why the ticks are paused.
    static func cause(of ticking: Ticking) -> String {
        switch ticking {
        case .paused: " by an administrator"
        case .idle: " while no program reads the price"
        case .running: " because the machine is about to sleep"
        }
    }

    static func words(for confirmation: Confirmation) -> String {
        switch confirmation {
        case .single: "no other exchange to compare it with"
        case .confirmed: "another exchange agrees"
        case .unconfirmed: "unconfirmed"
        }
    }

    private func source(_ state: PriceState, at now: ObservationTime) -> String {
        guard let quote = state.quote else { return PriceTexts.placeholder }
        let age = state.age(at: now).map { "\($0.isEstimate ? "about " : "")\(Table.text($0.age)) ago" }
        var text = "\(quote.sourceText) (\(quote.market)), \(age ?? "of unknown age")"
        if let consensus = state.standing.consensus {
            let spread = MoneyFormatter().string(from: consensus.spread, currency: quote.currency)
            text += "; of \(consensus.sources.joined(separator: ", ")) within \(spread)"
            if !consensus.outliers.isEmpty { text += ", without \(consensus.outliers.joined(separator: ", "))" }
        }
        if let derivation = state.derivation { text += "; \(PriceTexts.derivation(derivation))" }
        if let conversion = state.price?.conversion {
            let age = Table.text(.milliseconds(max(0, now.boottime - conversion.measuredBoottime)))
            text += "; \(conversion.value) USDT at \(conversion.rate) USD"
            text += ", by \(conversion.sources.joined(separator: ", ")) \(age) ago"
        }
        return text
    }

    private func validated(_ validated: ValidatedTicks) -> String {
        "\(count(validated.confirmed, "tick")) confirmed by another exchange, \(validated.unconfirmed) unconfirmed, "
            + "\(validated.withheld) not shown"
    }

    private func tether(_ rate: PegRate?, at now: ObservationTime) -> String {
        guard let rate else { return "not measured yet" }
        let age = Table.text(.milliseconds(max(0, now.boottime - rate.measuredBoottime)))
        return "\(rate.value) USD, by \(rate.sources.joined(separator: ", ")) \(age) ago"
            + (rate.isOffPeg ? "; off its peg" : "")
    }

    private func clock(_ clock: StatusMessage.Clock) -> String {
        guard let difference = Self.difference(clock) else {
            return clock.state == .agrees
                ? "agrees with most sources, within a minute"
                : "not known: too few sources state the time, or they do not agree"
        }
        return "\(difference); a history is kept by their time"
    }

    /// `2 h 0 min behind the time that 3 of 4 sources agree on`; `nil` if the clock does not differ.
    static func difference(_ clock: StatusMessage.Clock) -> String? {
        guard let difference = clock.difference else { return nil }
        let span = Table.text(.milliseconds(difference.magnitude))
        let side = difference > 0 ? "behind" : "ahead of"
        return "\(span) \(side) the time that \(clock.sources ?? 0) of \(clock.known ?? 0) sources agree on"
    }

    private func ticks(_ status: StatusMessage) -> String {
        let ticks = status.ticks
        let pace =
            switch status.ticking {
            case .running: "one every \(Table.text(.milliseconds(ticks.interval)))"
            case .paused: "paused, until 'btcctl resume'"
            case .idle: "stopped until a client wants a price"
            }
        return "\(ticks.done) done, \(ticks.failed) failed, \(ticks.skipped) skipped; \(pace)"
    }

    private func store(_ store: StatusMessage.Store, at now: ObservationTime) -> String {
        let synced =
            store.synced.map {
                "on the disk \(Table.text(.milliseconds(max(0, now.wall.milliseconds - $0.milliseconds)))) ago"
            }
            ?? "not on the disk yet"
        // The socket that a follower opens for a publisher has no store.
        let directory = store.stateDirectory.isEmpty ? "none" : "\(store.stateDirectory), \(synced)"
        let history = store.historyFailure.map {
            "the history can't be written, \(count(store.heldCandles ?? 0, "candle")) in memory: \($0)"
        }
        let candles = store.candleFailure.map { "gaps of the history can't be filled: \($0)" }
        return ([directory] + [store.failure, history, candles].compactMap(\.self)).joined(separator: "; ")
    }

    private func clients(_ clients: StatusMessage.Clients) -> String {
        "\(count(clients.connections, "connection")) of \(count(clients.users, "user")), \(clients.watchers) watching; "
            + "\(count(clients.calls, "call")) since the start"
    }

    private func limits(_ limits: [StatusMessage.Clients.Limit]) -> String {
        let hit = limits.filter { $0.hits > 0 }.map { "\($0.name) (\($0.most)) \($0.hits) times" }
        return hit.isEmpty ? "none" : hit.joined(separator: ", ")
    }

    private func daemon(_ status: StatusMessage) -> String {
        let daemon =
            "btc-priced \(status.version), pid \(status.pid), up \(Table.text(.milliseconds(status.uptime))), "
            + "instance \(status.price.instance)"
        return daemon + (status.reloads?.failure.map { "; the last reload was refused: \($0)" } ?? "")
    }
}

/// `1 market`, `4 markets`
private func count(_ number: Int64, _ what: String) -> String {
    "\(number) \(what)\(number == 1 ? "" : "s")"
}
