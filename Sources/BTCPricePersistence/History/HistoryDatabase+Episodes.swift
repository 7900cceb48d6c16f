import BTCPriceCore

extension HistoryDatabase {
    /// Writes episodes, in place of earlier forms of the same ones.
    func write(_ episodes: [Episode]) throws(SQLiteError) {
        for episode in episodes {
            let subject = episode.subject
            try run(
                "INSERT OR REPLACE INTO event (start, currency, kind, source, end, worst, count) VALUES (?,?,?,?,?,?,?)",
                [
                    .integer(episode.start), .text(subject.currency?.rawValue ?? ""), .text(subject.kind.rawValue),
                    .text(subject.source ?? ""), .optional(episode.end), .optional(episode.worst),
                    .integer(episode.count),
                ])
        }
    }

    /// Ends the episodes that went on when an earlier run was killed: with its last minute.
    /// - Parameter now: Unix seconds. A later minute was written while the clock was ahead.
    func endEpisodes(at now: Int64) throws(SQLiteError) {
        let last = try number("SELECT start FROM minute WHERE start <= ? ORDER BY start DESC LIMIT 1", [.integer(now)])
        try run(
            "UPDATE event SET end = max(start, ?) WHERE end IS NULL",
            [.integer(last.map { $0 + Candle.Step.minute.seconds } ?? 0)])
    }

    /// Episodes, by their start.
    /// - Parameters:
    ///   - range: Those that went on in it, Unix seconds.
    ///   - first: Those that began at it or later; `nil` for all.
    ///   - currency: Those of this currency, and those of all; `nil` for those of each.
    func episodes(
        in range: Range<Int64>, from first: Int64?, of currency: Currency?, limit: Int
    ) throws(SQLiteError) -> [Episode] {
        var episodes: [Episode] = []
        try run(
            """
            SELECT start, currency, kind, source, end, worst, count FROM event
            WHERE start >= ?1 AND start < ?2 AND (start >= ?3 OR end IS NULL OR end > ?3)
              AND kind IN (\(Self.kinds)) AND count > 0 AND (?5 = '' OR currency IN ('', ?5)) ORDER BY start LIMIT ?4
            """,
            [
                .integer(first ?? 0), .integer(range.upperBound), .integer(range.lowerBound), .integer(Int64(limit)),
                .text(currency?.rawValue ?? ""),
            ]
        ) { row in
            if let episode = Episode(row) { episodes.append(episode) }
        }
        return episodes
    }
}

extension HistoryDatabase {
    /// Other rows are of another version, or say what was salvaged.
    private static let kinds = Episode.Kind.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
}

extension Episode {
    /// Its place among others: that of its row.
    var rank: (Int64, String, String, String) {
        (start, subject.currency?.rawValue ?? "", subject.kind.rawValue, subject.source ?? "")
    }

    /// - Returns: `nil` if the row is no episode: another version or another program has written it.
    fileprivate init?(_ row: [SQLiteStatement.Value]) {
        guard row.count == 7, let start = row[0].integer, let count = row[6].integer, count > 0,
            case .text(let code) = row[1], case .text(let name) = row[2], case .text(let source) = row[3],
            let kind = Kind(rawValue: name)
        else { return nil }
        let possible = 0...Timestamp.possibleMilliseconds.upperBound / 1000
        let end = row[4].integer
        guard possible.contains(start), end.map({ possible.contains($0) && $0 >= start }) ?? true else { return nil }
        self.init(
            Subject(kind, Currency(rawValue: code), source: source.isEmpty ? nil : source), start: start, end: end,
            worst: row[5].integer.flatMap { (0...Self.mostWorst).contains($0) ? $0 : nil }, count: count)
    }
}
