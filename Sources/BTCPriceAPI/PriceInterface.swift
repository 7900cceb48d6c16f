package import Varlink

/// The interface `io.btcpriced.Price`: names and definition.
package enum PriceInterface {
    /// `io.btcpriced.Price`
    package static let name = "io.btcpriced.Price"
    /// `io.btcpriced.Price.GetPrice`
    package static let getPrice = "\(name).GetPrice"
    /// `io.btcpriced.Price.WatchPrice`
    package static let watchPrice = "\(name).WatchPrice"
    /// `io.btcpriced.Price.GetStatus`
    package static let getStatus = "\(name).GetStatus"
    /// `io.btcpriced.Price.ListSources`
    package static let listSources = "\(name).ListSources"
    /// `io.btcpriced.Price.Pause`
    package static let pause = "\(name).Pause"
    /// `io.btcpriced.Price.Resume`
    package static let resume = "\(name).Resume"
    /// `io.btcpriced.Price.Retry`
    package static let retry = "\(name).Retry"
    /// `io.btcpriced.Price.ListCurrencies`
    package static let listCurrencies = "\(name).ListCurrencies"
    /// `io.btcpriced.Price.GetMetrics`
    package static let getMetrics = "\(name).GetMetrics"
    /// A currency is not kept.
    package static let unknownCurrency = "\(name).UnknownCurrency"
    /// No source has this name.
    package static let unknownSource = "\(name).UnknownSource"
    /// Too many calls are pending.
    package static let busy = "\(name).Busy"
    /// `io.btcpriced.Price.FetchFailed`
    package static let fetchFailed = "\(name).FetchFailed"

    /// The interface's definition, as `org.varlink.service.GetInterfaceDescription` returns it.
    package static let description = """
        # The price of a bitcoin that btc-priced keeps, in one currency or several.
        interface io.btcpriced.Price

        # A price of one bitcoin.
        type Quote (
          # Exact decimal, in currency: "68901.23"
          value: string,
          # ISO 4217
          currency: string,
          # When it was observed, UTC, milliseconds since 1970
          timestamp: int,
          # Which source gave it: "binance"
          source: string,
          # The market it was read from: "BTC/USDT"
          market: string,
          # The peer that it came from, another btc-priced; null if this daemon requested it from an exchange. Of a median: one of its peers
          via: ?string
        )

        # Whose median a price is.
        type Consensus (
          # The sources that count, in their order
          sources: []string,
          # Those that lie too far from the others to count
          outliers: []string,
          # From the lowest to the highest of those that count; an exact decimal in the quote's currency
          spread: string
        )

        # How a price in USDT became one in dollars.
        type Conversion (
          # The price as it was read, in USDT; an exact decimal, as the rate is. The quote's value is their product.
          value: string,
          # Dollars for one USDT
          rate: string,
          # The sources whose prices the rate was measured from
          sources: []string,
          # When the rate was measured, on this machine's CLOCK_BOOTTIME, milliseconds
          measuredBoottime: int
        )

        # How sure a price is.
        type Uncertainty (
          # The median of the markets is within this distance of the price, 19 times out of 20; an exact decimal in the quote's currency
          plusMinus: string,
          # The number of markets that it was estimated from, at least 2
          markets: int
        )

        # What one USDT is worth in dollars, by Kraken's USDT/USD market and by the bitcoin markets.
        type TetherRate (
          # Dollars, an exact decimal
          value: string,
          # The sources whose prices it was measured from
          sources: []string,
          # When, on this machine's CLOCK_BOOTTIME, milliseconds
          measuredBoottime: int,
          # Whether that is so far from one that prices in USDT are no prices in dollars
          offPeg: bool
        )

        # What the price did in the last 24 hours, by the minute. Exact decimals in the quote's currency
        type Day (
          # When the first of its prices was seen: 24 hours ago, or later if less is known. UTC, milliseconds since 1970
          since: int,
          # The first price
          open: string,
          high: string,
          low: string,
          # From the first price to the last
          change: string,
          # The same in percent of the first price, to two places
          changePercent: string,
          # Whether candles of an exchange fill minutes of it that this daemon has not seen
          backfilled: bool
        )

        # What the last tick left.
        type State (
          # Changes at every start of the daemon
          instance: string,
          tick: int,
          freshness: (fresh, stale, none),
          quote: ?Quote,
          # When it was observed on this machine's CLOCK_BOOTTIME, milliseconds; the age is the reader's clock minus this. Null where
          # only the wall clock knows (after a reboot).
          observedBoottime: ?int,
          # single: one source, and no second one was needed; confirmed: a second one agrees; unconfirmed: a second one was needed, and none
          # could confirm the price
          confirmation: ?(single, confirmed, unconfirmed),
          # Why the last tick failed, in one line; "paused" while paused
          failure: ?string,
          # What to know about the price, in one line: USDT is off its peg, or other exchanges contradict it and are not outvoted
          warning: ?string,
          # Null unless mode is "median"
          consensus: ?Consensus,
          # Null unless currency.usdt is "convert" and the quote was read in USDT
          conversion: ?Conversion,
          # Null if only one market is known
          uncertainty: ?Uncertainty,
          # ISO 4217: the currency that the state is of
          currency: ?string,
          # Null if history.enabled is false, or nothing is known
          day: ?Day
        )

        # What the ticks have come to since the start.
        type Ticks (
          # From one tick to the next, milliseconds
          intervalMs: int,
          # Finished, the failed ones included
          done: int,
          # Ended without a price
          failed: int,
          # Not begun in their time: the machine slept or was too busy
          skipped: int,
          # Shown with a second source's word
          confirmed: ?int,
          # Shown although no second source could confirm the price
          unconfirmed: ?int,
          # Their price was held back: contradicted, or not confirmed yet. They count as failed, too.
          withheld: ?int
        )

        # Where the last price is kept, and whether that works.
        type Store (
          # Over a restart, at every tick
          runtimeDirectory: string,
          # Over a reboot
          stateDirectory: string,
          # When the disk last got it, UTC, milliseconds since 1970. Null where that is not known.
          syncedAt: ?int,
          # Why it can't be kept, in one line. Null while it can.
          failure: ?string,
          # The candles of the history that are not on the disk yet; null if no history is kept
          heldCandles: ?int,
          # Why the history can't be written, in one line; null while it can
          historyFailure: ?string
        )

        # A limit on clients.
        type ClientLimit (
          # connections: in all; connectionsPerUser: of one user; messageBytes: the longest message; queuedBytes: replies that
          # wait for a client which does not read, before its next call is looked at; pendingCalls: pending calls in all, of
          # which one user may have three quarters; idleTimeoutMs: without a call, unless it watches; messageTimeoutMs: from a call's first byte
          # to its last; writeTimeoutMs: replies that are not read
          name: string,
          # The most there may be; of a time-out 0 is for ever
          most: int,
          # How often somebody came up against it since the start
          hits: int
        )

        # Who asks.
        type Clients (
          # Open connections, the one that asks this included
          connections: int,
          # Users who have some
          users: int,
          # Connections that watch
          watchers: int,
          # Calls since the start, this one included
          calls: int,
          limits: []ClientLimit
        )

        # How the daemon is.
        type Status (
          # Its semantic version
          version: string,
          # Its process
          pid: int,
          # Since its start, milliseconds; the time that the machine slept included
          uptimeMs: int,
          # The price, as GetPrice tells it
          state: State,
          # When its freshness became what it is, UTC, milliseconds since 1970
          since: int,
          # paused: by Pause; idle: no client came for as long as tick.pause-when-idle says, and the next one resumes the ticks
          ticking: (running, paused, idle),
          ticks: Ticks,
          # Null before it was measured
          tetherRate: ?TetherRate,
          store: Store,
          clients: Clients,
          # The sources that are requested at other addresses than the exchanges' own: a simulator, a mirror or a proxy
          elsewhere: ?[]string
        )

        # The last question to which a source gave no price.
        type SourceFailure (
          # UTC, milliseconds since 1970
          at: int,
          # timed-out, unreachable, unavailable, rate-limited, refused, invalid-data, stale-data or implausible
          kind: string,
          # Why, in one line
          reason: string
        )

        # How long a source's last answers took: so many of a hundred within so many milliseconds.
        type Latency (
          p50Ms: int,
          p90Ms: int,
          p99Ms: int,
          # How many answers that is
          answers: int
        )

        # A limit that an exchange publishes.
        type SourceLimit (
          # The most requests in any span of the period
          requests: int,
          # Milliseconds
          periodMs: int,
          # The requests made in the period that ends now
          made: int
        )

        # A source, and whether it is used.
        type Source (
          # Its name in the configuration: "binance"
          name: string,
          # Its place in the configured order, from 1
          order: int,
          # The market it is read from: "BTC/USDT"
          market: string,
          # The base address it is asked at
          url: string,
          # current: the price that is shown is from it; ready: healthy, and requested if those before it give no price; slow: healthy, but its
          # limits don't allow a request at every tick; full: requested as often as its limits allow; untried: no price since the start;
          # failing: gave no usable price the last time, and is requested again; resting: in a cooldown, because it failed too often;
          # probing: its cooldown is over, and the next request decides; limited: in a cooldown that it asked for; refused: refuses us, and is
          # requested rarely; noKey: needs a key; offPeg: quotes in USDT, which is off its peg
          use: (current, ready, slow, full, untried, failing, resting, probing, limited, refused, noKey, offPeg),
          # The same as one letter, in that order: * + ~ = (a space) ! z ? L R K U
          letter: string,
          # When it last gave a price, UTC, milliseconds since 1970
          lastSuccess: ?int,
          lastFailure: ?SourceFailure,
          # Null before its first answer
          latency: ?Latency,
          # Until when it is not asked, UTC, milliseconds since 1970. Null unless it rests.
          restsUntil: ?int,
          # Since the start
          requests: int,
          limits: []SourceLimit,
          # The last price it gave that was believed, as it was read: an exact decimal in the currency of its market. Null before the first
          lastPrice: ?string,
          # Whether url is not the exchange's own address: a simulator, a mirror or a proxy
          elsewhere: ?bool,
          # What the last decision said of its price: used: it is shown, or counts in the median; agrees; disagrees: too far from the price that
          # is shown; outlier: too far from the median; unchanged: it has not changed for so long that it says nothing of now; old: from before
          # the move that is judged; failed; skipped: it was not requested, because of a cooldown or its limits; notNeeded. Null if no
          # decision has been made, or the price is not fresh
          verdict: ?(used, agrees, disagrees, outlier, unchanged, old, failed, skipped, notNeeded),
          # How its newest price came: in the response to a request, in a message of the exchange's stream, or from another daemon. Null
          # without a current price
          way: ?(poll, stream, peer)
        )

        # A currency that the price is kept in.
        type Currency (
          # ISO 4217
          currency: string,
          # The price, as GetPrice tells it
          state: State,
          # From one tick to the next, milliseconds
          intervalMs: int,
          # The sources in their order
          sources: []string
        )

        # What tells a sample from the others of its family.
        type MetricLabel (
          # "quote"
          name: string,
          # "USD"
          value: string
        )

        # One value of a metric.
        type MetricSample (
          # What follows the family's name: "_total"; empty for most
          suffix: string,
          labels: []MetricLabel,
          # A decimal number
          value: string
        )

        # Measurements of one kind: a metric family of OpenMetrics 1.0.
        type MetricFamily (
          # "btcpriced_price"
          name: string,
          kind: (gauge, counter, histogram, info, stateset),
          # What is measured, in one line
          help: string,
          samples: []MetricSample
        )

        # A time in which a source is not requested.
        type Cooldown (
          source: string,
          # UTC, milliseconds since 1970
          until: int,
          # Why, in one line
          reason: string
        )

        # localFirst is the default, and the first currency that ListCurrencies lists.
        method GetPrice(cachePolicy: ?(localFirst, remoteFirst, noCache), currency: ?string) -> (
          state: State
        )

        # With more: the current state of each currency at once, then one reply a tick of each. Without: org.varlink.service.ExpectedMore.
        # Null means the first currency alone. With changes there is another reply between the ticks whenever the price has changed, at most
        # one in watch.min-interval-ms of the configuration; tick in the state is then that of the tick before. Null means ticks.
        method WatchPrice(currencies: ?[]string, updates: ?(ticks, changes)) -> (state: State)

        # The currencies that are kept, the first one first.
        method ListCurrencies() -> (currencies: []Currency)

        # How are you?
        method GetStatus() -> (status: Status)

        # Why this price? In the configured order. Null means the first currency.
        method ListSources(currency: ?string) -> (sources: []Source)

        # What a monitoring system records. The counters begin at the start of the daemon.
        method GetMetrics() -> (families: []MetricFamily)

        # Stops the ticks until Resume, or until the daemon is restarted. Only for root, the daemon's own user and the group btc-priced; others get
        # org.varlink.service.PermissionDenied.
        method Pause() -> ()

        # Has the ticks run again, the first at once. For the same users.
        method Resume() -> ()

        # Forgets the cooldowns that no exchange has asked for, of one source or of all, so that the next tick requests them again. For the
        # same users.
        method Retry(source: ?string) -> (retried: []string, kept: []Cooldown)

        # The price is not kept in that currency.
        error UnknownCurrency (currency: string, known: []string)

        # No source is configured by that name.
        error UnknownSource (source: string, known: []string)

        # noCache, and no source answered.
        error FetchFailed (reason: string)

        # So many calls wait for an answer that is not at hand, in all or of this user. Ask again later.
        error Busy (limit: int)

        """
}

/// The product's names, version and socket.
package enum Product {
    /// The group whose members may change the daemon.
    package static let group = "btc-priced"
    /// The daemon's name.
    package static let name = "btc-priced"
    package static let vendor = "The btc-priced project"
    /// Semantic version of daemon and client.
    package static let version = "0.1.0"
    /// Where to find the documentation.
    package static let url = "man:btc-priced(8)"
    /// The socket's file name, in the runtime directory.
    package static let socketName = PriceInterface.name
    /// The system daemon's socket.
    package static let systemSocket = "/run/btc-priced/\(socketName)"

    /// The reply to `org.varlink.service.GetInfo`.
    package static let info = ServiceInterface.Info(vendor: vendor, product: name, version: version, url: url)
}
