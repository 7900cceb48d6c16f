import BTCPriceCore
import BTCPricePersistence
import BTCPriceSocket
import Files
import Glibc

/// The daemon's metrics for a monitoring system. No label comes from outside: no error texts, no names of clients, no addresses.
struct DaemonMetrics {
    struct OfCurrency {
        let currency: Currency
        let interval: Duration
        let record: TickRecord
        let sources: [SourceReport]
    }

    let now: ObservationTime
    let startedAt: ObservationTime
    let isTicking: Bool
    let currencies: [OfCurrency]
    let registry: SourceRegistry
    let clients: ClientCounts
    /// When the disk last received the price.
    let lastSync: BootTime?
    let writes: StoreWrites
    /// The candles of the history that are not on the disk yet; `nil` if no history is kept.
    var heldCandles: Int?
    var historyFails = false
    var clock = ClockComparison.unknown
    let process: ProcessUsage

    /// All families, in the order in which they are printed.
    var families: [MetricFamily] { prices + sources + ticks + socket + store + daemon }

    private var prices: [MetricFamily] {
        [
            gauge("price", "The price of one bitcoin.") { $0.record.state.quote.map { $0.value.description } },
            gauge("price_timestamp_seconds", "When the price was observed, Unix time.") {
                $0.record.state.quote.map { Self.seconds($0.timestamp.milliseconds) }
            },
            gauge("price_age_seconds", "The age of the price, exact within a boot.") {
                age(of: $0.record.state).map(Self.seconds)
            },
            gauge(
                "price_uncertainty",
                "How far the median of the markets may be from the price, in its currency. Absent if the price is stale."
            ) { $0.record.state.standing.uncertainty.map { $0.plusMinus.description } },
            gauge("price_24h_open", "The first price of the last 24 hours.") {
                day(of: $0.record.state)?.open.description
            },
            gauge("price_24h_high", "The highest price of the last 24 hours.") {
                day(of: $0.record.state)?.high.description
            },
            gauge("price_24h_low", "The lowest price of the last 24 hours.") {
                day(of: $0.record.state)?.low.description
            },
            gauge(
                "price_24h_since_timestamp_seconds",
                "When the first price of the last 24 hours was observed, Unix time."
            ) { day(of: $0.record.state).map { Self.seconds($0.since.milliseconds) } },
            gauge("price_24h_known_seconds", "How much of the last 24 hours is known.") {
                day(of: $0.record.state)?.coveredMinutes.map { "\($0 * 60)" }
            },
            states("price_state", "Whether the price is current.", ["fresh", "stale", "none", "paused"]) {
                isTicking ? $0.record.state.freshness.rawValue : "paused"
            },
            states(
                "price_confirmation", "Whether other markets confirm the price.", Confirmation.allCases.map(\.rawValue)
            ) { $0.record.state.confirmation?.rawValue },
            gauge(
                "price_derived",
                "1 if the price is derived from that in another currency, by a reference rate; 0 if it is a market's."
            ) { $0.record.state.quote == nil ? nil : $0.record.state.derivation == nil ? "0" : "1" },
            MetricFamily(
                "btcpriced_price_source", .info, "The source and the market of the price.",
                samples: currencies.compactMap { currency in
                    currency.record.state.quote.map { quote in
                        MetricFamily.Sample(
                            suffix: "_info",
                            labels: Self.labels(of: currency.currency) + [
                                .init("source", quote.source), .init("market", quote.market),
                            ], value: "1")
                    }
                }),
            MetricFamily(
                "btcpriced_currency_value", .gauge, "What one USDT is worth in dollars.",
                samples: currencies.compactMap { $0.record.pegRate }.prefix(1).map {
                    .init(labels: [.init("currency", "USDT"), .init("quote", "USD")], value: $0.value.description)
                }),
        ]
    }

    private func day(of state: PriceState) -> PriceDay? { state.shownDay(at: now.wall) }

    private func age(of state: PriceState) -> Int64? {
        guard let quote = state.quote else { return nil }
        return max(
            0,
            state.observedBoottime.map { now.boottime - $0 } ?? (now.wall.milliseconds - quote.timestamp.milliseconds))
    }

    private var sources: [MetricFamily] {
        [
            ofSources("source_price", "The last price of the source, as it was read, also if others contradict it.") {
                $0.lastPrice?.description
            },
            ofSources("source_timestamp_seconds", "When a request to the source last gave a price, Unix time.") {
                $0.lastSuccess.map { Self.seconds($0.milliseconds) }
            },
            MetricFamily(
                "btcpriced_source_state", .stateset, "Whether the source is used.",
                samples: reports.flatMap { source in
                    SourceReport.Use.allCases.map { use in
                        MetricFamily.Sample(
                            labels: Self.labels(of: source) + [.init("btcpriced_source_state", use.rawValue)],
                            value: source.use == use ? "1" : "0")
                    }
                }),
            ofSources(
                "source_cooldown_until_timestamp_seconds", "Until when the source is not requested, Unix time."
            ) { $0.cooldownUntil.map { Self.seconds($0.milliseconds) } },
            MetricFamily(
                "btcpriced_source_requests", .counter, "Requests that have ended, by their result.",
                samples: registry.entries.flatMap { entry in
                    // Includes results that have not occurred: a counter whose first value is 1 shows no increase.
                    let counts = (["ok"] + PriceLoadingError.kinds).map { ($0, entry.health.results[$0] ?? 0) }
                    return Self.counters(counts, "result", Self.labels(of: entry))
                }),
            MetricFamily(
                "btcpriced_source_rejections", .counter, "Prices that were not believed.",
                samples: registry.entries.map {
                    .init(suffix: "_total", labels: Self.labels(of: $0), value: "\($0.health.rejections)")
                }),
            MetricFamily(
                "btcpriced_source_request_duration_seconds", .histogram,
                "How long the responses with a valid price took.",
                samples: registry.entries.flatMap { Self.histogram($0.health.durations, Self.labels(of: $0)) }),
            ofLimits(
                "source_limit_requests", "The maximum number of requests that a venue allows in a period.", \.requests),
            ofLimits("source_window_requests", "The requests made in the period that ends now.", \.made),
        ]
    }

    private var reports: [SourceReport] { currencies.flatMap(\.sources) }

    private func ofSources(_ name: String, _ help: String, _ value: (SourceReport) -> String?) -> MetricFamily {
        MetricFamily(
            "btcpriced_\(name)", .gauge, help,
            samples: reports.compactMap { source in
                value(source).map { MetricFamily.Sample(labels: Self.labels(of: source), value: $0) }
            })
    }

    /// A family about the limits of the venues. A venue's limits appear once, whatever the number of its markets.
    private func ofLimits(
        _ name: String, _ help: String, _ value: (SourceReport.Limit) -> Int64
    ) -> MetricFamily {
        var known: Set<String> = []
        return MetricFamily(
            "btcpriced_\(name)", .gauge, help,
            samples: reports.filter { known.insert($0.name).inserted }.flatMap { source in
                source.limits.map { limit in
                    MetricFamily.Sample(
                        labels: [
                            .init("source", source.name), .init("period_seconds", Self.seconds(limit.period)),
                        ], value: "\(value(limit))")
                }
            })
    }

    private var ticks: [MetricFamily] {
        [
            MetricFamily(
                "btcpriced_ticks", .counter, "Ticks by their outcome; the skipped ones did not begin in time.",
                samples: currencies.flatMap { currency in
                    let (done, record) = (currency.record.state.ticks.number, currency.record)
                    let outcomes = [
                        ("fresh", done - record.failed), ("failed", record.failed - record.validated.withheld),
                        ("withheld", record.validated.withheld), ("skipped", record.skipped),
                    ]
                    return Self.counters(outcomes, "outcome", Self.labels(of: currency.currency))
                }),
            MetricFamily(
                "btcpriced_decisions", .counter, "Prices shown, by confirmation.",
                samples: currencies.flatMap { currency in
                    let (shown, results) = (
                        currency.record.state.ticks.number - currency.record.failed, currency.record.validated
                    )
                    let single = max(0, shown - results.confirmed - results.unconfirmed)
                    return Self.counters(
                        [("single", single), ("confirmed", results.confirmed), ("unconfirmed", results.unconfirmed)],
                        "result", Self.labels(of: currency.currency))
                }),
            MetricFamily(
                "btcpriced_tick_duration_seconds", .histogram, "How long the ticks took.",
                samples: currencies.flatMap { Self.histogram($0.record.durations, Self.labels(of: $0.currency)) }),
            gauge("last_tick_timestamp_seconds", "When the last tick ended, Unix time.") {
                $0.record.lastTick.map { Self.seconds($0.milliseconds) }
            },
            gauge("tick_interval_seconds", "The time between two ticks.") {
                Self.seconds($0.interval.wholeMilliseconds)
            },
        ]
    }

    private static func counters(
        _ counts: [(value: String, count: Int64)], _ label: String, _ labels: [MetricFamily.Label] = []
    ) -> [MetricFamily.Sample] {
        counts.map { value, count in
            .init(suffix: "_total", labels: labels + [.init(label, value)], value: "\(count)")
        }
    }

    private var socket: [MetricFamily] {
        [
            single("clients", "Open connections to the socket.", "\(clients.connections)"),
            single("watchers", "Connections that watch the price.", "\(clients.watchers)"),
            MetricFamily(
                "btcpriced_calls", .counter, "Calls that got a reply.",
                samples: PriceMethod.allCases.flatMap { method in
                    Self.counters(
                        [("ok", clients.replied.succeeded(method)), ("error", clients.replied.failed(method))],
                        "result", [.init("method", method.name)])
                }),
            MetricFamily(
                "btcpriced_client_limit_hits", .counter, "How often a client reached a limit.",
                samples: Self.counters(StatusMessage.Clients(clients).limits.map { ($0.name, $0.hits) }, "limit")),
        ]
    }

    private var store: [MetricFamily] {
        [
            MetricFamily(
                "btcpriced_store_writes", .counter, "Writes of the last price.",
                samples: Self.counters(
                    [("ok", writes.runtime), ("error", writes.runtimeFailed)], "result", [.init("place", "runtime")])
                    + Self.counters(
                        [("ok", writes.disk), ("error", writes.diskFailed)], "result", [.init("place", "disk")])),
            MetricFamily(
                "btcpriced_store_last_sync_timestamp_seconds", .gauge,
                "When the disk last received the price, Unix time.",
                samples: lastSync.map { [.init(value: Self.seconds(now.wallTime(of: $0).milliseconds))] } ?? []),
            MetricFamily(
                "btcpriced_history_held_candles", .gauge, "Candles of the history that are not on the disk yet.",
                samples: heldCandles.map { [.init(value: "\($0)")] } ?? []),
            MetricFamily(
                "btcpriced_history_failing", .gauge, "1 if the history can't be written, else 0.",
                samples: heldCandles.map { _ in [.init(value: historyFails ? "1" : "0")] } ?? []),
        ]
    }

    private var daemon: [MetricFamily] {
        [
            MetricFamily(
                "btcpriced_build", .info, "The version of the daemon.",
                samples: [.init(suffix: "_info", labels: [.init("version", Product.version)], value: "1")]),
            MetricFamily(
                "btcpriced_clock_difference_seconds", .gauge,
                "The time that most sources agree on minus this machine's; 0 if they agree within a minute, absent if it is not known.",
                samples: clockDifference.map { [.init(value: Self.seconds($0))] } ?? []),
            MetricFamily(
                "process_cpu_seconds", .counter, "Processor time of the daemon.",
                samples: [.init(suffix: "_total", value: Self.seconds(process.cpu))]),
            MetricFamily(
                "process_resident_memory_bytes", .gauge, "Resident memory of the daemon.",
                samples: process.resident.map { [.init(value: "\($0)")] } ?? []),
            MetricFamily(
                "process_open_fds", .gauge, "Open file descriptors of the daemon.",
                samples: process.descriptors.map { [.init(value: "\($0)")] } ?? []),
            MetricFamily(
                "process_start_time_seconds", .gauge, "When the daemon started, Unix time.",
                samples: [.init(value: Self.seconds(startedAt.wall.milliseconds))]),
        ]
    }

    /// Milliseconds.
    private var clockDifference: Int64? {
        switch clock {
        case .unknown: nil
        case .agrees: 0
        case .differs(let difference): difference.milliseconds
        }
    }

    // MARK: - Samples

    private func gauge(_ name: String, _ help: String, _ value: (OfCurrency) -> String?) -> MetricFamily {
        MetricFamily(
            "btcpriced_\(name)", .gauge, help,
            samples: currencies.compactMap { currency in
                value(currency).map { .init(labels: Self.labels(of: currency.currency), value: $0) }
            })
    }

    private func states(
        _ name: String, _ help: String, _ all: [String], _ current: (OfCurrency) -> String?
    ) -> MetricFamily {
        MetricFamily(
            "btcpriced_\(name)", .stateset, help,
            samples: currencies.flatMap { currency in
                let current = current(currency)
                return all.map { state in
                    MetricFamily.Sample(
                        labels: Self.labels(of: currency.currency) + [.init("btcpriced_\(name)", state)],
                        value: state == current ? "1" : "0")
                }
            })
    }

    private func single(_ name: String, _ help: String, _ value: String) -> MetricFamily {
        MetricFamily("btcpriced_\(name)", .gauge, help, samples: [.init(value: value)])
    }

    private static func labels(of currency: Currency) -> [MetricFamily.Label] {
        [.init("base", "BTC"), .init("quote", currency.rawValue)]
    }

    private static func labels(of source: SourceReport) -> [MetricFamily.Label] {
        [.init("source", source.name), .init("market", source.market)]
    }

    private static func labels(of entry: SourceRegistry.Entry) -> [MetricFamily.Label] {
        [.init("source", entry.source.name), .init("market", entry.source.market.pair)]
    }

    private static func histogram(
        _ histogram: DurationHistogram, _ labels: [MetricFamily.Label]
    ) -> [MetricFamily.Sample] {
        var sum: Int64 = 0
        let buckets = zip(DurationHistogram.bounds.map { "\($0)" } + ["+Inf"], histogram.counts).map { bound, count in
            sum += count
            return MetricFamily.Sample(suffix: "_bucket", labels: labels + [.init("le", bound)], value: "\(sum)")
        }
        return buckets + [
            .init(suffix: "_sum", labels: labels, value: "\(histogram.sum)"),
            .init(suffix: "_count", labels: labels, value: "\(sum)"),
        ]
    }

    private static func seconds(_ milliseconds: Int64) -> String { Price(milliseconds, scale: 3).description }
}

/// The resources that the process uses.
struct ProcessUsage {
    /// Processor time, milliseconds.
    let cpu: Int64
    /// Resident memory, bytes; `nil` if /proc is not available.
    let resident: Int64?
    let descriptors: Int?

    static func current() -> ProcessUsage {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return ProcessUsage(
            cpu: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000,
            resident: pages().map { $0 * Int64(sysconf(Int32(_SC_PAGESIZE))) }, descriptors: openDescriptors())
    }

    /// The resident pages: the second number of /proc/self/statm (proc(5)).
    private static func pages() -> Int64? {
        guard let file = fopen("/proc/self/statm", "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let fields = text.split(separator: " ")
        return fields.count > 1 ? Int64(fields[1]) : nil
    }

    private static func openDescriptors() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Not counted: `.`, `..` and the descriptor of the folder itself.
        return count - 3
    }
}
