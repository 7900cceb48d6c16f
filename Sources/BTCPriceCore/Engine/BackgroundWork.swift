/// Work that is repeated beside the ticks: it waits, works, and waits again. A pause stops it as it stops the ticks.
package actor BackgroundWork {
    private let clock: any BoottimeClock
    private let executor: (any TaskExecutor)?
    private var isPaused = false
    /// Whether it has been paused since it last worked.
    private var beginsAnew = false
    /// Whether the present or the next wait ends at once.
    private var isWoken = false
    private var sleeper: CheckedContinuation<Void, Never>?
    /// Counts the waits.
    private var waits = 0

    /// - Parameters:
    ///   - clock: Measures the waits. It counts suspended time.
    ///   - executor: Where the waits end; `nil` for anywhere.
    package init(clock: any BoottimeClock, executor: (any TaskExecutor)? = nil) {
        self.clock = clock
        self.executor = executor
    }

    /// Runs until its task is cancelled.
    /// - Parameters:
    ///   - first: The wait at the start and after a pause; `nil` for until it is woken.
    ///   - work: Does the work. Returns the wait until the next time; `nil` for until it is woken.
    func run(first: @Sendable () -> Duration?, work: @Sendable () async -> Duration?) async {
        var wait = first()
        while !Task.isCancelled {
            await sleep(isPaused ? nil : wait)
            if Task.isCancelled { return }
            if beginsAnew {
                beginsAnew = isPaused
                wait = first()
            } else {
                wait = await work()
            }
        }
    }

    /// Ends the wait, because there is work now. If it works, it works once more.
    package func wake() {
        isWoken = true
        sleeper.take()?.resume()
    }

    /// Stops it. Work in progress goes on to its end.
    package func pause() {
        (isPaused, beginsAnew) = (true, true)
        wake()
    }

    /// Lets it run again; it begins with the first wait.
    package func resume() {
        guard isPaused else { return }
        isPaused = false
        wake()
    }

    private func sleep(_ wait: Duration?) async {
        waits += 1
        let timer = wait.map { [waits, clock] wait in
            let due = clock.now.advanced(by: wait)
            return Task(executorPreference: executor) {
                do { try await clock.sleep(until: due) } catch { return }
                await self.end(waits)
            }
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { sleeper in
                if isWoken { sleeper.resume() } else { self.sleeper = sleeper }
            }
        } onCancel: {
            Task { await self.wake() }
        }
        // A timer that ends too late must not end the next wait.
        waits += 1
        isWoken = false
        timer?.cancel()
    }

    /// Ends a wait, if it is still the present one.
    private func end(_ wait: Int) {
        if wait == waits { wake() }
    }
}
