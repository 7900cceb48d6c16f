extension FetchWithFallback {
    private enum Answer: Sendable {
        case finished(Int, Result<FetchedPrice, PriceLoadingError>)
        case timeIsUp
    }

    /// Asks every source that may be asked, all at once; those that rest only where the others are too few.
    /// - Parameters:
    ///   - requester: Who asks.
    ///   - deadline: The end of the budget: by then it has returned or thrown.
    ///   - known: What is known of the sources' earlier answers.
    ///   - quorum: How many are enough.
    /// - Throws: ``FetchFailure`` if no source gave a price, or if the task was cancelled.
    func executeForAll(
        _ requester: Requester, deadline: C.Instant, after known: KnownAnswers, quorum: Int
    ) async throws(FetchFailure) -> PriceEvidence {
        var plan = sources.plan(requester)
        let well = plan.order.filter { !plan.lastResort.contains($0) }
        if well.count >= quorum { plan.order = well }
        var skipped = plan.skipped
        var waiting = Set<Int>()
        for index in plan.order {
            if sources.take(index, requester) {
                waiting.insert(index)
            } else {
                skipped.append(Skipped(source: candidates[index].fetch.source.name, reason: .limit))
            }
        }
        let begun = clock.now
        let patience = waiting.map { candidates[$0].patience.timeout }.max() ?? .zero
        let end = min(deadline, begun.advanced(by: patience))
        let asked = waiting
        var prices: [Int: FetchedPrice] = [:]
        var failures: [Int: SourceFailure] = [:]
        await withTaskGroup(of: Answer.self) { group in
            for index in asked {
                let fetch = candidates[index].fetch
                group.addTask { [clocks = sources.clocks] in
                    .finished(index, await fetch.result(after: known, clocks: clocks))
                }
            }
            group.addTask { [clock] in
                // Cancelled when all have answered: then nobody looks at the event.
                do { try await clock.sleep(until: end, tolerance: nil) } catch {}
                return .timeIsUp
            }
            while !waiting.isEmpty, let answer = await group.next(), !Task.isCancelled {
                guard case .finished(let index, let result) = answer else { break }
                waiting.remove(index)
                switch result {
                case .success(let price):
                    prices[index] = price
                    _ = sources.ended(index, .success, latency: begun.duration(to: clock.now))
                case .failure(let error): failures[index] = failure(of: index, error, since: begun)
                }
            }
            group.cancelAll()
        }
        if Task.isCancelled { throw .cancelled }
        for index in waiting {
            let isOwnFault = begun.advanced(by: candidates[index].patience.timeout) <= end
            let error = PriceLoadingError.timedOut(after: isOwnFault ? candidates[index].patience.timeout : nil)
            failures[index] = failure(of: index, error, since: begun)
        }
        let inOrder = plan.order.compactMap { prices[$0] }
        let failed = plan.order.compactMap { failures[$0] }
        guard let first = inOrder.first else { throw FetchFailure(failures: failed, skipped: skipped) }
        return PriceEvidence(price: first, witnesses: Array(inOrder.dropFirst()), failures: failed)
    }

    private func failure(of index: Int, _ error: PriceLoadingError, since begun: C.Instant) -> SourceFailure {
        let cooldown = sources.ended(index, .failure(error), latency: begun.duration(to: clock.now))
        return SourceFailure(source: candidates[index].fetch.source.name, error: error, cooldown: cooldown)
    }
}
