import BTCPriceCore
import CSQLite

/// Reads the rows of a damaged history that can still be read: short spans one after the other, each from its start up to the damage, then from
/// its end down to it. Must be used by one thread at a time.
final class HistorySalvage {
    /// The rows of a table: the currency, then ``HistoryDatabase/columns``. A column that the file lacks is null.
    struct Batch {
        let step: Candle.Step
        var rows: [[SQLiteStatement.Value]] = []
    }

    /// The number of rows that are enough for a batch, since the daemon's queries wait meanwhile.
    private static let enough = 2000
    /// The most spans of a batch. Most of them may be empty.
    private static let mostSpans = 500
    /// The length of a span, in candles.
    private static let length: Int64 = 360
    /// Unix seconds of 2009-01-03, the first day of bitcoin, and of 2100-01-01. All earlier and all later rows are one span each.
    private static let (first, end) = (Int64(1_230_940_800), Int64(4_102_444_800))

    private let database: SQLiteDatabase
    private var steps = [Candle.Step.day, .hour, .minute]
    private var start = Int64.min
    private var statements: [String: SQLiteStatement] = [:]

    /// - Throws: ``SQLiteError`` if the file can't be opened.
    init(path: String) throws(SQLiteError) {
        database = try SQLiteDatabase(path: path, isReadOnly: true)
    }

    /// The next rows; `nil` at the end.
    /// - Throws: ``SQLiteError`` if the file can't be read for another reason than damage.
    func next() throws(SQLiteError) -> Batch? {
        guard let step = steps.first else { return nil }
        var (batch, spans) = (Batch(step: step), 0)
        while batch.rows.count < Self.enough, spans < Self.mostSpans {
            let upper = start < Self.first ? Self.first : start < Self.end ? start + Self.length * step.seconds : .max
            batch.rows += try rows(step, start..<upper)
            spans += 1
            start = upper
            if upper == .max {
                steps.removeFirst()
                start = .min
                break
            }
        }
        return batch
    }

    private func rows(_ step: Candle.Step, _ span: Range<Int64>) throws(SQLiteError) -> [[SQLiteStatement.Value]] {
        var (rows, isDamaged) = try read(step, span, isUp: true)
        guard isDamaged else { return rows }
        let known = Set(rows.map { $0.prefix(2) })
        rows += try read(step, span, isUp: false).rows.filter { !known.contains($0.prefix(2)) }
        return rows
    }

    private func read(
        _ step: Candle.Step, _ span: Range<Int64>, isUp: Bool
    ) throws(SQLiteError) -> (rows: [[SQLiteStatement.Value]], isDamaged: Bool) {
        var rows: [[SQLiteStatement.Value]] = []
        do throws(SQLiteError) {
            let statement = try statement(step, isUp ? "ASC" : "DESC")
            try statement.run([.integer(span.lowerBound), .integer(span.upperBound)]) { rows.append($0) }
            return (rows, false)
        } catch {
            // A table that is not there has no rows: SQLITE_ERROR.
            guard error.isDamage || error.code == SQLITE_ERROR else { throw error }
            return (rows, true)
        }
    }

    private func statement(_ step: Candle.Step, _ order: String) throws(SQLiteError) -> SQLiteStatement {
        if let known = statements["\(step) \(order)"] { return known }
        let known = try database.columns(of: "\(step)")
        let columns = HistoryDatabase.columns.map { known.contains($0) ? $0 : "NULL" }.joined(separator: ", ")
        // By the table itself, and not by its index, which may be damaged elsewhere.
        let statement = try database.prepare(
            """
            SELECT currency, \(columns) FROM \(step) NOT INDEXED WHERE start >= ? AND start < ?
            ORDER BY start \(order), currency \(order)
            """)
        statements["\(step) \(order)"] = statement
        return statement
    }
}
