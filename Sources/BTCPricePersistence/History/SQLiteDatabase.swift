import CSQLite

struct SQLiteError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The primary result code: `SQLITE_FULL` and others (sqlite.org, Result and Error Codes).
    let code: Int32
    let description: String

    /// Whether the file is not a database, or a damaged one.
    var isDamage: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }
}

/// A connection to an SQLite database. Must be used by one thread at a time.
final class SQLiteDatabase {
    private let handle: OpaquePointer

    /// Opens a file.
    /// - Parameter isReadOnly: Whether the file is only read. Otherwise it is created if it does not exist.
    /// - Throws: ``SQLiteError``. If the file is not a database, only the first statement fails.
    init(path: String, isReadOnly: Bool = false) throws(SQLiteError) {
        var handle: OpaquePointer?
        let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let code = sqlite3_open_v2(path, &handle, access | SQLITE_OPEN_NOMUTEX, nil)
        guard let handle else { throw SQLiteError(code: code, description: "no memory") }
        self.handle = handle
        guard code == SQLITE_OK else { throw error(code) }
        // Another program may read the file (sqlite.org, WAL: a checkpoint may have to wait for it).
        sqlite3_busy_timeout(handle, 2000)
    }

    deinit { sqlite3_close_v2(handle) }

    /// Whether the file was moved or deleted, so that another one may be in its place.
    var isReplaced: Bool {
        var isMoved: Int32 = 0
        return sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &isMoved) == SQLITE_OK && isMoved != 0
    }

    /// Ends the statement that runs, with an error. Safe on any thread while the database is open.
    var interrupt: @Sendable () -> Void {
        nonisolated(unsafe) let handle = handle
        return { sqlite3_interrupt(handle) }
    }

    /// Runs statements that return nothing.
    func execute(_ sql: String) throws(SQLiteError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw error(code) }
    }

    /// Prepares a statement, to be run any number of times.
    func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw error(code) }
        return SQLiteStatement(statement, of: self)
    }

    /// The names of a table's columns; empty if there is no such table.
    func columns(of table: String) throws(SQLiteError) -> Set<String> {
        var names: Set<String> = []
        try prepare("SELECT name FROM pragma_table_info(?)").run([.text(table)]) { row in
            if case .text(let name)? = row.first { names.insert(name) }
        }
        return names
    }

    /// Runs `body` within a transaction: all of it takes effect, or nothing.
    func transaction(_ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
        try execute("BEGIN IMMEDIATE")
        do throws(SQLiteError) {
            try body()
            try execute("COMMIT")
        } catch {
            // The transaction may have been rolled back already.
            try? execute("ROLLBACK")
            throw error
        }
    }

    func error(_ code: Int32) -> SQLiteError {
        SQLiteError(code: code & 0xFF, description: String(cString: sqlite3_errmsg(handle)))
    }
}

/// A prepared statement. Must be used by one thread at a time, with its database.
final class SQLiteStatement {
    private let statement: OpaquePointer
    private let database: SQLiteDatabase

    fileprivate init(_ statement: OpaquePointer, of database: SQLiteDatabase) {
        self.statement = statement
        self.database = database
    }

    deinit { sqlite3_finalize(statement) }

    /// A value of a parameter or a column.
    enum Value: Sendable, Hashable {
        case integer(Int64)
        case text(String)
        case null
    }

    /// Runs the statement.
    /// - Parameter row: Called for each row of the result, with its columns.
    func run(_ values: [Value] = [], _ row: ([Value]) -> Void = { _ in }) throws(SQLiteError) {
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() {
            let slot = Int32(index + 1)
            let code =
                switch value {
                case .integer(let number): sqlite3_bind_int64(statement, slot, number)
                // SQLITE_TRANSIENT, a macro that Swift does not import: SQLite copies the text.
                case .text(let text):
                    sqlite3_bind_text(statement, slot, text, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
                case .null: sqlite3_bind_null(statement, slot)
                }
            guard code == SQLITE_OK else { throw database.error(code) }
        }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: row(columns)
            case SQLITE_DONE: return
            case let code: throw database.error(code)
            }
        }
    }

    private var columns: [Value] {
        (0..<sqlite3_column_count(statement)).map { column in
            switch sqlite3_column_type(statement, column) {
            case SQLITE_INTEGER: .integer(sqlite3_column_int64(statement, column))
            case SQLITE_TEXT: sqlite3_column_text(statement, column).map { .text(String(cString: $0)) } ?? .null
            default: .null
            }
        }
    }
}
