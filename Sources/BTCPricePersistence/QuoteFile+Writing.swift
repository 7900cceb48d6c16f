import BTCPriceCore

/// The file as JSON is written: keys in their sorted order, of which `checksum` is the first, and no other may come before it.
extension QuoteFile {
    var json: PrettyJSON {
        PrettyJSON { file in
            file.string("checksum", Self.blankChecksum)
            if let conversion = price?.conversion { file.object("conversion", conversion.write) }
            file.integer("observedBoottime", price?.observedBoottime)
            if let quote = price?.quote { file.object("quote", quote.write) }
            file.object("rests") { rests in
                for (source, kept) in self.rests.sorted(by: { $0.key < $1.key }) where kept.outlastsRestart {
                    rests.object(source, kept.write)
                }
            }
            file.integer("schemaVersion", Self.schemaVersion)
            file.integer("sequence", sequence)
            file.object("venues") { venues in
                for (source, mark) in (price?.marks ?? [:]).sorted(by: { $0.key < $1.key }) {
                    venues.object(source, mark.write)
                }
            }
        }
    }
}

extension PriceQuote {
    fileprivate func write(_ quote: inout PrettyJSON) {
        quote.string("currency", currency)
        quote.string("market", market)
        quote.string("source", source)
        quote.integer("timestamp", timestamp.milliseconds)
        quote.string("value", value.text)
    }
}

extension Conversion {
    fileprivate func write(_ conversion: inout PrettyJSON) {
        conversion.integer("measuredBoottime", measuredBoottime)
        conversion.string("rate", rate.text)
        conversion.strings("sources", sources)
        conversion.string("value", value.text)
    }
}

extension VenueMark {
    fileprivate func write(_ mark: inout PrettyJSON) {
        mark.integer("time", time?.milliseconds)
        mark.integer("trade", trade)
    }
}

extension KeptRest {
    /// What a restart must not cut short.
    fileprivate var outlastsRestart: Bool { kind != nil }

    private var kind: (name: String, reason: String)? {
        switch rest.reason {
        case .rateLimited(let text, _): ("rateLimited", text)
        case .refused(let text): ("refused", text)
        default: nil
        }
    }

    fileprivate func write(_ json: inout PrettyJSON) {
        guard let kind else { return }
        json.string("address", address)
        json.string("kind", kind.name)
        json.string("reason", kind.reason)
        json.integer("since", rest.since.wall.milliseconds)
        json.integer("sinceBoottime", rest.since.boottime)
        json.integer("strikes", rest.strikes)
        json.integer("until", rest.until.wall.milliseconds)
        json.integer("untilBoottime", rest.until.boottime)
    }
}
