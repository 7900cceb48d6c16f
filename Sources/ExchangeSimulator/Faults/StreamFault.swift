/// A fault that only a stream can have. Faults of data apply to open streams too, from the moment when the script is set.
package enum StreamFault: Sendable, Equatable {
    // Faults of the upgrade.

    /// `bad-accept`: a `Sec-WebSocket-Accept` that does not match the key.
    case badAccept
    /// `with-101`: the first message (for Coinbase and Bitstamp, which have none, a ping) in the same write as the response.
    case with101

    // Faults of the subscription. Binance's subscription in the address has no acknowledgement: with these faults it has no data.

    /// `ack-empty`: nothing is subscribed. Coinbase's acknowledgement is an empty list; the others' is the usual one.
    case ackEmpty
    /// `refuse-subscription`: the venue's error message.
    case refuseSubscription

    // Faults of the data.

    /// `silent`: no data, while the market, heartbeats and pings go on.
    case silent
    /// `mute`: nothing is sent, not even pongs.
    case mute
    /// `maintenance`: the market stands still. Kraken announces it.
    case maintenance
    /// `repeat`: after each trade some older ones again, out of order.
    case repeats
    /// `burst N`: N trades at the same time instead of one, each a cent cheaper, in one write.
    case burst(Int)
    /// `lag 500ms`: every message is this late, with its original time.
    case lag(milliseconds: Int64)
    /// `wrong-pair`: after each trade one of another pair, which the client has not subscribed to.
    case wrongPair

    // Faults that end the stream. They take effect at the next trade, or within a second.

    /// `close CODE [REASON]`: a close frame, and half a second later the end.
    case close(code: UInt16, reason: String)
    /// `cut`: the end, without a close frame.
    case cut
    /// `half-close`: the venue shuts down its sending side.
    case halfClose

    // Faults of the frames.

    /// `bytes`: each byte in a write of its own.
    case bytes
    /// `fragments`: each message in three fragments, with a ping between.
    case fragments
    /// `ping-flood`: 2,000 pings a second.
    case pingFlood
    /// `big-ping`: a ping with 125 bytes each second.
    case bigPing
    /// `masked`: messages are masked.
    case masked
    /// `rsv`: messages have a reserved bit.
    case reservedBit
    /// `opcode`: messages have the reserved opcode 3.
    case reservedOpcode
    /// `bad-utf8`: messages have a byte that is not valid UTF-8.
    case badUTF8
    /// `huge N`: a message of N bytes instead of each trade.
    case huge(Int)
    /// `garbage`: a text that is not valid JSON instead of each trade.
    case garbage
}
