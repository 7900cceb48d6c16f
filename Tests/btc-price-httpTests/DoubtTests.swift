import BTCPriceFeature
import BTCPriceSocket
import TestSupport
import Testing

@testable import BTCPriceCore
@testable import btc_price_http

/// What each path of the gateway says of each kind of doubt.
@Suite struct DoubtTests {

    @Test func `the table of doubt: every path says what it shows of every kind`() throws {
        var table = DoubtTable()
        let (kinds, now) = (KindOfDoubt.allCases, KindOfDoubt.now)
        table.add("/v1/price, /v1/prices, /v1/stream", kinds) { JSON.object(PriceShapes.price($0.state, at: now)).text }
        let formats = PriceRequirements(maxAge: .seconds(60))
        for (query, trust) in [
            ("", PriceRequirements.Trust.all), ("?confirmed=1", .usual), ("?confirmed=strict", .confirmed),
        ] {
            table.add("/rate/USD\(query) and the formats of other programs", kinds) { kind in
                guard kind.state.quote != nil else { return "(no price)" }
                let requirements = PriceRequirements(trust: trust, maxAge: formats.maxAge)
                let refusal = requirements.refusal(of: kind.state, at: now)
                return refusal.map { "refused: \($0.predicate)" } ?? JSON.object(PriceShapes.rates([kind.state])).text
            }
        }
        table.add("/v1/at, /v1/history", KindOfCandle.allCases) { kind in
            let known = PriceAt(kind.candle, kind.step, at: kind.candle.start)
            return "\(JSON.object(PriceShapes.candle(kind.candle)).text), approximate: \(known.isApproximate)"
        }
        table.add("/v1/history?format=csv", KindOfCandle.allCases) { kind in
            String(PriceShapes.csv([kind.candle], of: "USD").split(separator: "\r\n").last ?? "")
        }
        #expect(try table.isKept(), "\(table.text)")
    }
}
