public import Varlink

/// The interface `io.btcpriced.Price`: names and definition.
public enum PriceInterface {
    /// `io.btcpriced.Price`
    public static let name = "io.btcpriced.Price"
    /// `io.btcpriced.Price.GetPrice`
    public static let getPrice = "\(name).GetPrice"
    /// `io.btcpriced.Price.WatchPrice`
    public static let watchPrice = "\(name).WatchPrice"
    /// `io.btcpriced.Price.FetchFailed`
    public static let fetchFailed = "\(name).FetchFailed"

    /// The interface's definition, as clients get it from `org.varlink.service.GetInterfaceDescription`.
    public static let description = """
        # The BTC/USD price that btc-priced keeps.
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
          market: string
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
          # single: one source; confirmed: a second one agrees; unconfirmed: a jump that no second source could confirm
          confirmation: ?(single, confirmed, unconfirmed),
          # Why the last tick failed, in one line; "paused" while paused
          failure: ?string
        )

        # localFirst is the default.
        method GetPrice(cachePolicy: ?(localFirst, remoteFirst, noCache)) -> (state: State)
        # With more: the current state at once, then one reply a tick. Without: org.varlink.service.ExpectedMore.
        method WatchPrice() -> (state: State)

        # noCache, and no source answered.
        error FetchFailed (reason: string)

        """
}

/// What is said of the product as a whole.
public enum Product {
    /// The daemon's name.
    public static let name = "btc-priced"
    /// Who makes it.
    public static let vendor = "The btc-priced project"
    /// Semantic version of daemon and client.
    public static let version = "0.1.0"
    /// Where more is found.
    public static let url = "https://btcpriced.io"
    /// The socket's file name, in the runtime directory.
    public static let socketName = PriceInterface.name
    /// The system daemon's socket.
    public static let systemSocket = "/run/btc-priced/\(socketName)"

    /// The answer to `org.varlink.service.GetInfo`.
    public static let info = ServiceInterface.Info(vendor: vendor, product: name, version: version, url: url)
}
