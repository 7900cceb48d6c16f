import BTCPriceCore
import CommandLine
import Glibc

/// A program whose output is read.
struct RunningProgram {
    /// The longest output, bytes.
    private static let longest = 1 << 18

    private let process: pid_t
    private let descriptor: Int32

    /// Starts a program; see ``CommandStart/start(_:output:)``.
    init(_ words: [String]) throws(CommandStart.Failure) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw CommandStart.Failure(reason: String(cString: strerror(errno))) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[1]) }
        do throws(CommandStart.Failure) {
            process = try CommandStart.start(words, output: ends[1])
        } catch {
            close(ends[0])
            throw error
        }
        descriptor = ends[0]
    }

    /// Waits for the end of the program. A signal that ends this process ends it, too.
    /// - Parameters:
    ///   - deadline: When it is killed.
    ///   - signals: The result of ``Signals/catchThem()``.
    /// - Returns: Its standard output, and how it ended; `nil` if it was killed at the deadline, or because of its output's length.
    consuming func output(
        by deadline: ContinuousClock.Instant, _ signals: Int32
    ) -> (output: [UInt8], end: CommandEnd?) {
        var output: [UInt8] = []
        var isOpen = true
        while true {
            let left = ContinuousClock.now.duration(to: deadline).wholeMilliseconds
            guard left > 0, output.count <= Self.longest else { break }
            // It may go on after it has closed its output.
            if !isOpen, let end = CommandEnd(of: process, WNOHANG) {
                close(descriptor)
                return (output, end)
            }
            var pollers = [
                pollfd(fd: isOpen ? descriptor : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&pollers, 2, Int32(clamping: isOpen ? left : min(left, 10))) >= 0 || errno == EINTR else {
                break
            }
            if pollers[1].revents != 0 { Signals.drain(signals) }
            Signals.endIfAsked { kill() }
            guard pollers[0].revents != 0 else { continue }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = read(descriptor, &buffer, buffer.count)
            if count > 0 { output += buffer[..<count] } else { isOpen = count < 0 && errno == EINTR }
        }
        kill()
        return (output, nil)
    }

    private func kill() {
        close(descriptor)
        Glibc.kill(process, SIGKILL)
        _ = CommandEnd(of: process, 0)
    }
}
