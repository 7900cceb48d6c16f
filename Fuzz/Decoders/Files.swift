import BTCPriceNetworking
import Configuration

@testable import BTCPriceCore
@testable import BTCPriceDaemon
@testable import BTCPricePersistence

/// The place of the checksum in the file of a stored quote: eight digits.
private let checksum = Array("{\n  \"checksum\" : \"".utf8).count..<Array("{\n  \"checksum\" : \"00000000".utf8).count

/// Reads the file of a stored quote. The checksum is corrected first, because no random input would pass the check.
func quoteFile(_ input: [UInt8]) {
    var bytes = input
    if bytes.count > checksum.upperBound {
        bytes.replaceSubrange(checksum, with: "00000000".utf8)
        let digits = String(CRC32.checksum(bytes), radix: 16)
        bytes.replaceSubrange(checksum, with: (String(repeating: "0", count: 8 - digits.count) + digits).utf8)
    }
    guard var file = accepted({ () throws(QuoteFile.Damage) in try QuoteFile(decoding: bytes) }) else { return }
    // What is not valid is not written again.
    file.unusable = []
    hold(accepted { try QuoteFile(decoding: try file.encoded()) } == file, "\(file) is not kept as it is")
    for price in file.prices {
        checkBounds(price.quote.value)
        let state = PriceState(price.price, TickState(freshness: .stale), currency: price.quote.currency)
        if let (age, _) = state.age(at: present) { hold(age >= .zero, "an age of \(age)") }
    }
    for kept in file.cooldowns.values {
        for kept in [kept, kept.ofAnotherBoot] { resume(kept) }
    }
}

/// Continues a stored cooldown after a restart. Then the source fails again.
private func resume(_ kept: KeptCooldown) {
    var (market, venue) = (MarketHealth(), VenueHealth(limits: []))
    venue.breaker.resume(kept, at: present)
    hold(
        venue.isBound(at: present.boottime) == (venue.breaker.cooldown != nil), "a cooldown that does not bind: \(kept)"
    )
    let next = market.ended(.failure(kept.cooldown.reason), latency: .zero, at: present, venue: &venue, jitter: 1)
    hold(next.map { $0.until.boottime > present.boottime } == true, "a cooldown that is over: \(kept)")
    hold(next?.dated(by: present) == next, "a cooldown that is dated otherwise: \(kept)")
}

/// Reads a configuration file. The list of its settings is a file with the same settings.
func configuration(_ input: [UInt8]) {
    guard let text = String(validating: input, as: UTF8.self), let read = settings(text) else { return }
    hold(!input.contains(0), "settings of a file that was not read to its end")
    hold(read.first.interval >= .milliseconds(100) && read.budget >= .milliseconds(100), "no time for a tick")
    hold(!read.sources.isEmpty && read.directories.state.hasPrefix("/"), "settings without their parts")
    let again = settings(read.listing)
    // A setting that depends on another one or on the user is listed as a comment.
    let set = read.entries.filter { $0.value != nil }.map { [$0.name, $0.value?.description ?? ""] }
    let setAgain = again?.entries.filter { $0.value != nil }.map { [$0.name, $0.value?.description ?? ""] }
    hold(setAgain == set, "read otherwise: \(read.listing)")
}

/// The settings from a file, for a user with only `HOME` in the environment.
private func settings(_ text: String) -> Settings? {
    accepted {
        let path = "config.toml"
        let environment = ["HOME": "/home/fuzz"]
        let file = try ConfigurationFile(text: text, path: path)
        let layers = try Layers(
            commandLine: DaemonCommandLine(), environment: environment,
            files: ConfigurationFiles(file, path: path))
        return try Settings(layers, environment: environment, uid: 1000)
    }
}
