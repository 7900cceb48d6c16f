import Glibc

/// What a request must look like, and what is answered, as the real exchange does it.
struct VenueShape {
    /// A request, as far as an exchange looks at it.
    struct Request {
        var uri: String
        var userAgent: String?
        var authorization: String?
    }

    /// An answer.
    struct Answer: Equatable {
        var status = 200
        var retryAfter: Int?
        var body: [UInt8]
    }

    let venue: VenueName

    /// The refusal of a request that the real exchange refuses; `nil` if it answers with a price.
    func refusal(of request: Request) -> Answer? {
        let path = request.uri.prefix { $0 != "?" }
        let query = Set(request.uri.dropFirst(path.count + 1).split(separator: "&"))
        switch venue {
        case .binance:
            guard path == "/api/v3/ticker/price" else { return json(404, #"{"code":-1,"msg":"Not found"}"#) }
            return query.contains("symbol=BTCUSDT") ? nil : json(400, #"{"code":-1121,"msg":"Invalid symbol."}"#)
        case .cryptocompare:
            guard path == "/data/generateAvg" else {
                return json(404, #"{"Response":"Error","Message":"Path does not exist","Type":1}"#)
            }
            guard request.authorization?.hasPrefix("Apikey ") == true else {
                return json(401, #"{"Data":{},"Err":{"type":2,"message":"API key required","http_status_code":401}}"#)
            }
            return query.isSuperset(of: ["fsym=BTC", "tsym=USD"])
                ? nil : json(200, #"{"Response":"Error","Message":"fsym is a required param.","Type":2,"Data":{}}"#)
        case .coinbase:
            guard request.userAgent?.isEmpty == false else {
                return json(400, #"{"message":"User-Agent header is required."}"#)
            }
            return path == "/products/BTC-USD/ticker" ? nil : json(404, #"{"message":"NotFound"}"#)
        }
    }

    /// The answer with a price.
    /// - Parameters:
    ///   - price: A decimal text.
    ///   - number: The trade's number.
    func answer(price: String, number: Int) -> Answer {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        switch venue {
        case .binance: return json(200, #"{"symbol":"BTCUSDT","price":"\#(price)"}"#)
        case .cryptocompare:
            return json(
                200,
                #"{"RAW":{"MARKET":"CUSTOMAGG","FROMSYMBOL":"BTC","TOSYMBOL":"USD","FLAGS":0,"PRICE":\#(price),"LASTUPDATE":\#(now.tv_sec),"LASTMARKET":"Coinbase"},"DISPLAY":{"PRICE":"$ \#(price)","LASTUPDATE":"Just now"}}"#
            )
        case .coinbase:
            return json(
                200,
                #"{"ask":"\#(price)","bid":"\#(price)","volume":"4916.94797396","trade_id":\#(1_040_000_000 + number),"price":"\#(price)","size":"0.00782662","time":"\#(Self.iso(now))"}"#
            )
        }
    }

    private func json(_ status: Int, _ body: String) -> Answer {
        Answer(status: status, body: Array(body.utf8))
    }

    /// `2026-06-19T16:43:33.016274911Z`
    private static func iso(_ time: timespec) -> String {
        var seconds = time.tv_sec
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let count = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%S", &parts)
        let nanoseconds = String(time.tv_nsec)
        let zeros = String(repeating: "0", count: 9 - nanoseconds.count)
        return
            "\(String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)).\(zeros)\(nanoseconds)Z"
    }
}
