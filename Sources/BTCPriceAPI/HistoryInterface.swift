/// The interface `io.btcpriced.History`: names and definition.
package enum HistoryInterface {
    /// `io.btcpriced.History`
    package static let name = "io.btcpriced.History"
    /// `io.btcpriced.History.GetHistory`
    package static let getHistory = "\(name).GetHistory"
    /// `io.btcpriced.History.GetPriceAt`
    package static let getPriceAt = "\(name).GetPriceAt"
    /// `io.btcpriced.History.GetDay`
    package static let getDay = "\(name).GetDay"
    /// There is no such currency.
    package static let unknownCurrency = "\(name).UnknownCurrency"
    /// No history is kept.
    package static let disabled = "\(name).Disabled"
    /// The history can't be read.
    package static let unavailable = "\(name).Unavailable"

    /// The interface's definition, as `org.varlink.service.GetInterfaceDescription` returns it.
    package static let description = """
        # The past of the price that btc-priced keeps. Times are UTC, in milliseconds since 1970. Prices are exact decimals, of one bitcoin
        # in the currency of the call; null means the first currency.
        interface io.btcpriced.History

        # What the price did in a span of time, of the ticks that had a valid price.
        type Candle (
          # The start of the span: a multiple of the step
          start: int,
          # The first price
          open: string,
          high: string,
          low: string,
          # The last price
          close: string,
          # The ticks in it, and those of them that had a valid price; 0 of an exchange's candle
          ticks: int,
          fresh: int,
          # "own"; the exchange that the candle was requested from, whose prices were not checked; or "mixed" if it is made of candles with
          # different origins
          origin: string
        )

        # What the price did in the last 24 hours, by the minute.
        type Day (
          # When the first of its prices was seen: 24 hours ago, or later if less is known
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

        # The candles that start at "from" or later, and before "to"; from the oldest to the newest. The last one may not be complete
        # yet. Null means: until now; the 24 hours before "to"; minutes; no limit. Days are those of UTC. Seconds are known of the last hour.
        # With more: all of them, in any number of replies. Without: at most 100, and "next" is the "from" of a call for the others.
        method GetHistory(
          currency: ?string,
          from: ?int,
          to: ?int,
          step: ?(second, minute, hour, day),
          limit: ?int
        ) -> (currency: string, step: (second, minute, hour, day), candles: []Candle, next: ?int)

        # The price at a moment: of the shortest candle that is known of it, the first or the last price, whichever is nearer. Null if
        # nothing is known. If not even its minute is known and "fetch" is true, the minute is requested from an exchange, and kept. That
        # tells the exchange which moment is of interest.
        method GetPriceAt(currency: ?string, time: int, fetch: ?bool) -> (
          currency: string,
          price: ?string,
          step: ?(second, minute, hour, day),
          candle: ?Candle,
          # Why the minute could not be requested; null if it was, or did not have to be
          notFetched: ?string
        )

        # The last 24 hours; null if nothing is known of them.
        method GetDay(currency: ?string) -> (currency: string, day: ?Day)

        # There is no such currency.
        error UnknownCurrency (currency: string, known: []string)

        # history.enabled is false.
        error Disabled ()

        # The history can't be read at present. The price goes on.
        error Unavailable (reason: string)

        """
}
