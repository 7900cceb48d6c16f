import BTCPriceCore
import Glibc

/// The valid requests and the responses, as on the real exchange.
struct VenueShape {
    /// The parts of a request that an exchange checks.
    struct Request {
        let uri: String
        let userAgent: String?
        let authorization: String?
        let path: Substring
        /// The parameters, decoded; of equal names, the last one. One that is not valid is as it stands.
        let query: [String: String]

        init(uri: String, userAgent: String? = nil, authorization: String? = nil) {
            (self.uri, self.userAgent, self.authorization) = (uri, userAgent, authorization)
            func decoded(_ text: Substring) -> String { text.percentDecoded ?? String(text) }
            path = uri.prefix { $0 != "?" }
            var query: [String: String] = [:]
            for part in uri[path.endIndex...].dropFirst().split(separator: "&") {
                let name = part.prefix { $0 != "=" }
                query[decoded(name)] = decoded(part.dropFirst(name.count + 1))
            }
            self.query = query
        }
    }

    struct Answer {
        var status = 200
        var headers: [(name: String, value: String)] = []
        var body: [UInt8]
    }

    let venue: VenueName

    /// The pairs of bitcoin that a request is for; empty if the exchange does not know it.
    func pairs(of request: Request) -> [Pair] {
        let (path, query) = (request.path, request.query)
        let known = Pair.known(to: venue)
        switch venue {
        case .binance:
            return path != "/api/v3/ticker/price" ? [] : known.filter { query["symbol"] == "BTC\($0.quote)" }
        case .cryptocompare: return path == "/data/generateAvg" ? known : []
        case .coinbase: return known.filter { path == "/products/BTC-\($0.quote)/ticker" }
        case .bitstamp: return known.filter { path == "/api/v2/ticker/btc\($0.quote.lowercased())/" }
        case .kraken:
            let names = Self.krakenNames(query)
            return path != "/0/public/Ticker" ? [] : known.filter { !names.isDisjoint(with: $0.krakenNames) }
        }
    }

    private static func krakenNames(_ query: [String: String]) -> Set<String> {
        Set(query["pair"]?.split(separator: ",").map(String.init) ?? [])
    }

    /// The names of Kraken's pair of USDT and the dollar.
    private static let krakenTether: Set = ["USDTUSD", "USDTZUSD"]

    /// The error response to a request that the real exchange refuses; `nil` if the exchange returns a price.
    func refusal(of request: Request) -> Answer? {
        let (path, query) = (request.path, request.query)
        switch venue {
        case .binance:
            guard path == "/api/v3/ticker/price" else { return json(404, #"{"code":-1,"msg":"Not found"}"#) }
            return !pairs(of: request).isEmpty ? nil : json(400, #"{"code":-1121,"msg":"Invalid symbol."}"#)
        case .cryptocompare:
            guard path == "/data/generateAvg" else {
                return json(404, #"{"Response":"Error","Message":"Path does not exist","Type":1}"#)
            }
            guard request.authorization?.hasPrefix("Apikey ") == true else {
                return json(401, #"{"Data":{},"Err":{"type":2,"message":"API key required","http_status_code":401}}"#)
            }
            return query["fsym"] == "BTC" && query["tsym"] == "USD"
                ? nil : json(200, #"{"Response":"Error","Message":"fsym is a required param.","Type":2,"Data":{}}"#)
        case .coinbase:
            guard request.userAgent?.isEmpty == false else {
                return json(400, #"{"message":"User-Agent header is required."}"#)
            }
            return !pairs(of: request).isEmpty ? nil : json(404, #"{"message":"NotFound"}"#)
        case .bitstamp:
            return !pairs(of: request).isEmpty
                ? nil : json(404, #"{"status":"error","reason":"Not found","code":"404"}"#)
        case .kraken:
            guard path == "/0/public/Ticker" else { return json(200, #"{"error":["EGeneral:Unknown method"]}"#) }
            let names = Self.krakenNames(query)
            let known = Pair.known(to: .kraken).reduce(Self.krakenTether) { $0.union($1.krakenNames) }
            return !names.isEmpty && names.isSubset(of: known)
                ? nil : json(200, #"{"error":["EQuery:Unknown asset pair"]}"#)
        }
    }

    /// The response with the prices of some pairs. Only Kraken has several in one.
    /// - Parameters:
    ///   - prices: The prices as decimal text; at least one, except on Kraken.
    ///   - trade: The trade that the prices come from.
    ///   - clockAhead: How many seconds the venue's clock is ahead of this machine's.
    ///   - tetherRate: The price of one USDT in dollars, as decimal text.
    func answer(
        _ request: Request, prices: [(pair: Pair, price: String)], trade: Trade, clockAhead: Int, tetherRate: String
    ) -> Answer {
        let (pair, price) = prices.first ?? (.usd, "")
        let now = time(nil) + clockAhead
        switch venue {
        case .binance: return json(200, #"{"symbol":"BTC\#(pair.quote)","price":"\#(price)"}"#)
        case .cryptocompare:
            return json(
                200,
                #"{"RAW":{"MARKET":"CUSTOMAGG","FROMSYMBOL":"BTC","TOSYMBOL":"USD","FLAGS":0,"PRICE":\#(price),"LASTUPDATE":\#(now),"LASTMARKET":"Coinbase"},"DISPLAY":{"PRICE":"$ \#(price)","LASTUPDATE":"Just now"}}"#
            )
        case .bitstamp:
            return json(
                200,
                #"{"timestamp":"\#(now)","open":"\#(price)","last":"\#(price)","volume":"1903.95560640","bid":"\#(price)","ask":"\#(price)","side":"0"}"#
            )
        case .kraken:
            var tickers = prices.map { pair, price in
                #""\#(pair.krakenKey)":{"a":["\#(price)","1","1.000"],"b":["\#(price)","1","1.000"],"c":["\#(price)","0.00001606"],"o":"\#(price)"}"#
            }
            if !Self.krakenTether.isDisjoint(with: Self.krakenNames(request.query)) {
                tickers.append(
                    #""USDTZUSD":{"a":["\#(tetherRate)","1","1.000"],"b":["\#(tetherRate)","1","1.000"],"c":["\#(tetherRate)","100.00000000"],"o":"1.00000000"}"#
                )
            }
            return json(200, #"{"error":[],"result":{\#(tickers.joined(separator: ","))}}"#)
        case .coinbase:
            return json(
                200,
                #"{"ask":"\#(price)","bid":"\#(price)","volume":"4916.94797396","trade_id":\#(trade.coinbaseID),"price":"\#(price)","size":"0.00782662","time":"\#(Self.iso(trade.nanoseconds + Int64(clockAhead) * 1_000_000_000, digits: 9))"}"#
            )
        }
    }

    /// A body with `<now+5000>` replaced by the time in five seconds, in milliseconds since 1970.
    static func filled(_ body: [UInt8]) -> [UInt8] {
        let text = String(decoding: body, as: UTF8.self)
        guard let start = text.firstRange(of: "<now+"), let end = text[start.upperBound...].firstIndex(of: ">"),
            let milliseconds = Int64(text[start.upperBound..<end])
        else { return body }
        let instant = Trade.now() / 1_000_000 + milliseconds
        return Array("\(text[..<start.lowerBound])\(instant)\(text[text.index(after: end)...])".utf8)
    }

    /// `Sat, 21 Nov 2026 14:30:05 GMT`
    static func httpDate(secondsFromNow: Int) -> String {
        formatted(time(nil) + secondsFromNow, "%a, %d %b %Y %H:%M:%S GMT")
    }

    private static func formatted(_ seconds: time_t, _ format: String) -> String {
        var seconds = seconds
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, format, &parts)
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func json(_ status: Int, _ body: String) -> Answer {
        Answer(status: status, body: Array(body.utf8))
    }

    /// `2026-06-19T16:43:33.016274911Z`, with this many digits of the second's fraction.
    static func iso(_ nanoseconds: Int64, digits: Int) -> String {
        let fraction = String(nanoseconds % 1_000_000_000)
        let padded = String(repeating: "0", count: 9 - fraction.count) + fraction
        return "\(formatted(Int(nanoseconds / 1_000_000_000), "%Y-%m-%dT%H:%M:%S")).\(padded.prefix(digits))Z"
    }
}

extension VenueShape {
    /// The headers of a response besides `Content-Type`, `Content-Length` and `Date`: as many, and as long, as on the exchange.
    static func headers(of venue: VenueName) -> [(name: String, value: String)] {
        switch venue {
        case .binance: binanceHeaders
        case .cryptocompare, .coinbase, .bitstamp, .kraken: usualHeaders
        }
    }

    private static let binanceHeaders = [
        (name: "Connection", value: "keep-alive"), ("Server", "nginx"),
        ("x-mbx-uuid", "00000000-0000-4000-8000-000000000000"), ("x-mbx-used-weight", "2"),
        ("x-mbx-used-weight-1m", "2"), ("Strict-Transport-Security", "max-age=31536000; includeSubdomains"),
        ("X-Frame-Options", "SAMEORIGIN"), ("X-Xss-Protection", "1; mode=block"),
        ("X-Content-Type-Options", "nosniff"), ("Content-Security-Policy", "default-src 'self'"),
        ("X-Content-Security-Policy", "default-src 'self'"), ("X-WebKit-CSP", "default-src 'self'"),
        ("Cache-Control", "no-cache, no-store, must-revalidate"), ("Pragma", "no-cache"), ("Expires", "0"),
        ("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
        ("X-Cache", "Miss from cloudfront"),
        ("Via", "1.1 00000000000000000000000000000000.cloudfront.net (CloudFront)"),
        ("X-Amz-Cf-Pop", "FRA56-P1"),
        ("X-Amz-Cf-Id", "00000000000000000000000000000000000000000000000000000A=="),
    ]

    private static let usualHeaders = [
        (name: "Connection", value: "keep-alive"), ("Server", "cloudflare"), ("CF-RAY", "0000000000000000-FRA"),
        ("CF-Cache-Status", "DYNAMIC"), ("Cache-Control", "public, max-age=1"), ("Vary", "Origin, Accept-Encoding"),
        ("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Headers", "Content-Type, Accept, Authorization"),
        ("Access-Control-Allow-Methods", "GET, POST, DELETE, PUT"), ("Access-Control-Max-Age", "7200"),
        ("Strict-Transport-Security", "max-age=15552000; includeSubDomains; preload"),
        ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "SAMEORIGIN"), ("X-XSS-Protection", "1; mode=block"),
        ("ETag", "W/\"00-0000000000000000000000000000\""), ("Trace-Id", "0000000000000000000"),
        ("Set-Cookie", "__cf_bm=\(String(repeating: "0", count: 140)); path=/; HttpOnly; Secure; SameSite=None"),
    ]
}
