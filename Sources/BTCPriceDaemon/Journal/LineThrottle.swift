import BTCPriceCore
import BTCPriceFeature

/// Keeps a log short: admits lines of the same kind at growing intervals, with a count of the lines left out.
///
/// After the first line of a kind, the next is admitted after ten minutes, then after two hours, then once a day. A kind without a
/// line for six hours starts again.
struct LineThrottle: Sendable {
    /// The lines left out before a line.
    struct Summary: Sendable {
        var count = 0
        /// The time since the last admitted line.
        var span = Duration.zero
        /// The number of lines for each detail, the most frequent first.
        var details: [(name: String, count: Int)] = []
    }

    private struct Line {
        var lastSaid: BootTime
        var lastSeen: BootTime
        var floor: Int64
        var leftOut: [String: Int] = [:]
    }

    private static let firstFloor = Duration.seconds(600).wholeMilliseconds
    private static let longestFloor = Duration.seconds(86_400).wholeMilliseconds
    private static let growth: Int64 = 12
    private static let quiet = Duration.seconds(6 * 3600).wholeMilliseconds

    private var lines: [String: Line] = [:]

    /// Decides whether a line may be logged now.
    /// - Parameters:
    ///   - kind: The kind of line.
    ///   - detail: Distinguishes it from others of its kind.
    ///   - daily: Whether the condition is known to last: then the next one is admitted after a day.
    /// - Returns: The lines of its kind left out since the last one; `nil` if this one is left out too.
    mutating func admit(_ kind: String, detail: String = "", daily: Bool = false, at boottime: BootTime) -> Summary? {
        let first = daily ? Self.longestFloor : Self.firstFloor
        guard var line = lines[kind] else {
            lines[kind] = Line(lastSaid: boottime, lastSeen: boottime, floor: first)
            return Summary()
        }
        let isAnew = boottime - line.lastSeen >= Self.quiet
        line.lastSeen = boottime
        guard boottime - line.lastSaid >= line.floor || (isAnew && !daily) else {
            line.leftOut[detail, default: 0] += 1
            lines[kind] = line
            return nil
        }
        let details = line.leftOut.sorted { ($0.value, $1.key) > ($1.value, $0.key) }
        let summary = Summary(
            count: line.leftOut.values.reduce(0, +), span: .milliseconds(boottime - line.lastSaid),
            details: details.filter { !$0.key.isEmpty }.map { ($0.key, $0.value) })
        let floor = isAnew ? first : min(line.floor * Self.growth, Self.longestFloor)
        lines[kind] = Line(lastSaid: boottime, lastSeen: boottime, floor: floor)
        return summary
    }
}

extension LineThrottle.Summary: CustomStringConvertible {
    /// ` (599 more in 10 min: timed-out 400, unavailable 199)`; empty if nothing was left out.
    var description: String {
        guard count > 0 else { return "" }
        let list = details.count > 1 ? ": " + details.map { "\($0.name) \($0.count)" }.joined(separator: ", ") : ""
        return " (\(count) more in \(span.wholeUnits)\(list))"
    }
}
