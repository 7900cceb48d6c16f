import BTCPriceCore

/// The end of a ban in the text of an error: `IP banned until 1785050129644.` Binance says so, and the exchanges with its software.
enum BanText {
    /// The shortest ban, used if a response with status 418 does not state its length.
    static let shortest = Duration.seconds(120)

    /// The remaining time of a ban; `nil` if the text states none.
    static func remaining(in text: String, at now: Timestamp) -> Duration? {
        guard let range = text.firstRange(of: "banned until ") else { return nil }
        let digits = text[range.upperBound...].prefix { $0.isASCII && $0.isNumber }
        guard let number = Int64(digits), let end = VenueTime.milliseconds(fromEpoch: number) else { return nil }
        let left = Duration.milliseconds(end - now.milliseconds)
        return left > .zero ? min(left, CooldownRule.longestTold) : nil
    }
}
