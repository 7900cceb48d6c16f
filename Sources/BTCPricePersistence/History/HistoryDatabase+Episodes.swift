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
    func endEpisodes() throws(SQLiteError) {
        try run(
            "UPDATE event SET end = max(start, ifnull((SELECT max(start) + 60 FROM minute), start)) WHERE end IS NULL")
    }

    /// Episodes, by their start.
    /// - Parameters:
    ///   - range: Those that went on in it, Unix seconds.
    ///   - first: Those that began at it or later; `nil` for all.
    func episodes(in range: Range<Int64>, from first: Int64?, limit: Int) throws(SQLiteError) -> [Episode] {
        var episodes: [Episode] = []
        try run(
            """
            SELECT start, currency, kind, source, end, worst, count FROM event
            WHERE start >= ?1 AND start < ?2 AND (start >= ?3 OR end IS NULL OR end > ?3) ORDER BY start LIMIT ?4
            """,
            [
                .integer(first ?? .min), .integer(range.upperBound), .integer(range.lowerBound), .integer(Int64(limit)),
            ]
        ) { row in
            if let episode = Episode(row) { episodes.append(episode) }
        }
        return episodes
    }
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
            let kind = Kind(rawValue: name), (0...Timestamp.possibleMilliseconds.upperBound / 1000).contains(start)
        else { return nil }
        self.init(
            Subject(kind, Currency(rawValue: code), source: source.isEmpty ? nil : source), start: start,
            end: row[4].integer.map { max(start, $0) }, worst: row[5].integer.map { max(0, $0) }, count: count)
    }
}
