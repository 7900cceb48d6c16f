import BTCPriceSocket

@testable import BTCPriceCore
@testable import btc_price_fleet

/// Reads a message from a broker as a follower: live and retained, each again a second later.
func fleetQuote(_ input: [UInt8]) {
    for isRetained in [false, true] {
        var quote = FollowedQuote(publisher: "alpha", currency: "USD")
        for seconds in 0...1 {
            let now = present.advanced(by: .seconds(seconds))
            guard
                accepted({ () throws(FollowedQuote.Refusal) in
                    let message = try quote.decoded(input)
                    let isLate = FollowedQuote.lateness(of: message, at: now) != nil
                    return try quote.read(message, isLive: !isRetained && !isLate, at: now)
                }) != nil
            else { continue }
            _ = quote.age(at: now)
            let state = quote.state.state
            if let observed = state.observedBoottime {
                hold(
                    state.quote == nil || observed <= now.boottime,
                    "observed at \(observed.milliseconds), after \(now.boottime.milliseconds)")
            }
            if state.freshness == .fresh, state.quote != nil {
                let longest = now.boottime + 3 * 3_600_000
                hold(
                    state.ticks.freshUntil.map { (now.boottime...longest).contains($0) } == true,
                    "fresh until \(String(describing: state.ticks.freshUntil))")
            }
            _ = quote.silent(because: "gone")
        }
    }
}
