/// What was probably meant by a mistyped word.
package enum Suggestion {
    /// The word that begins with the text, or that is nearest to it; `nil` if none is near.
    package static func nearest(to text: String, among words: [String]) -> String? {
        let lower = text.lowercased()
        if lower.count > 1, let longer = words.first(where: { $0.lowercased().hasPrefix(lower) }) { return longer }
        let nearest = words.map { ($0, distance($0.lowercased(), lower)) }.min { $0.1 < $1.1 }
        guard let nearest, nearest.1 <= 2, nearest.1 * 2 < nearest.0.count else { return nil }
        return nearest.0
    }

    /// The end of an error, `; did you mean --config?`; empty if no word is near, or if only the prefix of all words is given.
    package static func advice(on text: String, among words: [String], prefix: String = "") -> String {
        guard text != prefix, let nearest = nearest(to: text, among: words) else { return "" }
        return "; did you mean \(nearest)?"
    }

    /// The number of insertions, deletions, changes and swaps of neighbouring letters (Damerau-Levenshtein distance).
    package static func distance(_ first: String, _ second: String) -> Int {
        let (a, b) = (Array(first), Array(second))
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
                row.append(best)
            }
            (before, last) = (last, row)
        }
        return last[b.count]
    }
}
