import Testing

@testable import btc_price_http

@Suite struct DaemonSilenceTests {
    @Test func `a daemon that sends nothing is asked, and is gone if it does not respond`() {
        var silence = DaemonSilence(at: 0)
        // It is not asked again before it has responded.
        let asks = [1499, 1500, 3000].map { silence.mustAsk(at: $0) }
        #expect(asks == [false, true, false])
        // Its ticks are far apart, or paused.
        let isGone = silence.responded(true, at: 3100)
        #expect(!isGone)
        let later = [4599, 4600].map { silence.mustAsk(at: $0) }
        #expect(later == [false, true])
        let isGoneNow = silence.responded(false, at: 6600)
        #expect(isGoneNow)
    }

    @Test func `a daemon that sends a state while it is asked is not gone`() {
        var silence = DaemonSilence(at: 0)
        let isAsked = silence.mustAsk(at: 2000)
        silence.heard(at: 2500)
        let isGone = silence.responded(false, at: 4000)
        #expect((isAsked, isGone) == (true, false))
        let isAskedAgain = silence.mustAsk(at: 4000)
        #expect(isAskedAgain)
        // The streams have started anew meanwhile.
        silence = DaemonSilence(at: 5000)
        let isGoneNow = silence.responded(false, at: 6000)
        #expect(!isGoneNow)
    }
}
