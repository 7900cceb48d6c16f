import BTCPriceCore
import CommandLine
import Glibc

/// The commands that run.
struct RunningCommands {
    private struct Running {
        let id: String
        let process: pid_t
        let started: BootTime
        var isKilled = false
    }

    private var running: [Running] = []

    var isEmpty: Bool { running.isEmpty }

    /// - Returns: Why it could not be started; `nil` if it was.
    mutating func start(_ command: [String], for delivery: Delivery, at now: BootTime) -> String? {
        do throws(CommandStart.Failure) {
            let process = try CommandStart.start(
                command, adding: delivery.variables.map { ($0.name, $0.value) }, leadsGroup: true)
            running.append(Running(id: delivery.id, process: process, started: now))
            return nil
        } catch {
            return "the command '\(command.first ?? "")' can't be started: \(error.reason)"
        }
    }

    /// Kills the commands that have run for too long.
    /// - Returns: Those that have ended, with what was wrong; `nil` if nothing was.
    mutating func ended(at now: BootTime) -> [(id: String, problem: String?)] {
        var ended: [(id: String, problem: String?)] = []
        running.removeAll { each in
            guard let end = CommandEnd(of: each.process, WNOHANG) else { return false }
            let problem =
                each.isKilled
                ? "the command ran for more than \(DeliveryQueue.Bounds.longest / 1000) s and was killed"
                : end == .status(0) ? nil : "the command ended \(end.text)"
            ended.append((each.id, problem))
            return true
        }
        for index in running.indices where !running[index].isKilled {
            guard now - running[index].started > DeliveryQueue.Bounds.longest else { continue }
            // With what it has started.
            kill(-running[index].process, SIGKILL)
            running[index].isKilled = true
        }
        return ended
    }
}
