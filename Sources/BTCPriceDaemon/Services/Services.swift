import BTCPriceCore
import BTCPriceNetworking
import BTCPriceSocket
import Glibc
import Logging
import UnixSignals

/// A part of the daemon that runs until the daemon ends.
protocol Service: Sendable {
    /// Runs until the task is cancelled.
    /// - Throws: Why the daemon must end.
    func run() async throws
}

/// Runs services until a signal comes or until one of them ends. Then they end one after the other, the last one first.
struct Services {
    private enum News {
        case signal
        case ended(any Error)
    }

    /// How long all services together may take to end. Then those that are left are cancelled at once, and after the same time again the
    /// process ends.
    private static let longestEnd = Duration.seconds(5)

    let services: [any Service]
    /// Where the services run; `nil` for anywhere.
    let executor: (any TaskExecutor)?
    let logger: Logger

    /// - Parameter signals: Those that end the services.
    /// - Throws: The error of the service that ended first.
    func run(until signals: [UnixSignal]) async throws {
        let (news, told) = AsyncStream<News>.makeStream()
        // Trapped before the first service runs.
        let ending = await UnixSignalsSequence(trapping: signals)
        let waiting = Task {
            for await _ in ending { told.yield(.signal) }
        }
        let tasks = services.map { service in
            Task(executorPreference: executor) {
                do {
                    try await service.run()
                    told.yield(
                        .ended(StartFailure(description: "A part of the daemon, \(type(of: service)), has ended.")))
                } catch {
                    told.yield(.ended(error))
                }
            }
        }
        let first = await news.first { _ in true }
        waiting.cancel()
        let limit = Task { await end(tasks) }
        for task in tasks.reversed() {
            task.cancel()
            await task.value
        }
        limit.cancel()
        if case .ended(let error) = first { throw error }
    }

    /// Ends services that take too long.
    private func end(_ tasks: [Task<Void, Never>]) async {
        do { try await Task.sleep(for: Self.longestEnd) } catch { return }
        for task in tasks { task.cancel() }
        do { try await Task.sleep(for: Self.longestEnd) } catch { return }
        logger.tell(.startFailed, "Parts of the daemon do not end, so the process does.")
        exit(Daemon.Exit.failure)
    }

    /// Waits until the task is cancelled, and then does the work of the end, which is not cancelled.
    static func atTheEnd(_ work: @escaping @Sendable () async -> Void) async {
        let (never, end) = AsyncStream<Never>.makeStream()
        await withTaskCancellationHandler {
            for await _ in never {}
        } onCancel: {
            end.finish()
        }
        await Task { await work() }.value
    }
}

/// Ends a part of the daemon.
struct CleanUp: Service {
    let end: @Sendable () async -> Void

    func run() async { await Services.atTheEnd(end) }
}

/// Ends the daemon with an error if its socket's file is gone: no client can connect. A logout that clears `XDG_RUNTIME_DIR` does that.
struct SocketGuardService: Service {
    private static let period: Duration = .seconds(2)

    let listener: ListeningSocket
    let clock: TickClock

    func run() async throws {
        while true {
            do { try await clock.sleep(for: Self.period) } catch { return }
            guard listener.isInPlace else {
                throw StartFailure(
                    description:
                        "The socket's file was removed or replaced, so no client can reach this daemon: it ends.")
            }
        }
    }
}

/// Does work until the end, which cancels it.
struct BackgroundService: Service {
    /// How long the end waits for it: work that waits for a disk can't be cancelled, and the price must still be saved.
    var longestEnd = Duration.seconds(1)
    let work: @Sendable () async -> Void

    func run() async {
        let task = Task { await work() }
        await Services.atTheEnd {
            task.cancel()
            let (isOver, end) = AsyncStream<Void>.makeStream()
            Task {
                await task.value
                end.finish()
            }
            Task {
                try? await Task.sleep(for: longestEnd)
                end.finish()
            }
            for await _ in isOver {}
        }
    }
}
