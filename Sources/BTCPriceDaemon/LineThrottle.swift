/// Keeps a log short: of each kind of line at most one within a floor of time, and a count of those left out.
struct LineThrottle: Sendable {
    private struct Line {
        var lastSaid: Int64
        var leftOut: Int
    }

    private let floor: Int64
    private var lines: [String: Line] = [:]

    /// - Parameter floor: The least time between two lines of one kind.
    init(floor: Duration = .seconds(600)) {
        self.floor = floor.components.seconds * 1000
    }

    /// Asks whether a line may be said now.
    /// - Parameters:
    ///   - kind: What kind of line it is.
    ///   - boottime: Now, `CLOCK_BOOTTIME` in milliseconds.
    /// - Returns: How many of its kind were left out since the last one; `nil` if this one is left out too.
    mutating func admit(_ kind: String, at boottime: Int64) -> Int? {
        if var line = lines[kind], boottime - line.lastSaid < floor {
            line.leftOut += 1
            lines[kind] = line
            return nil
        }
        let leftOut = lines[kind]?.leftOut ?? 0
        lines[kind] = Line(lastSaid: boottime, leftOut: 0)
        return leftOut
    }
}
