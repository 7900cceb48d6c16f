/// Decides which candles are requested from exchanges: the missing ones, in few requests. A pure value for one currency.
struct BackfillPlan: Sendable {
    /// The candles that are wanted: a day of minutes, a month of hours, two years of days.
    static let wanted: [(step: Candle.Step, count: Int64)] = [(.day, 730), (.hour, 720), (.minute, 1440)]
    /// The hours that are wanted in the end, so that every quarter of two years has local days.
    static let allHours: Int64 = 731 * 24
    /// How many older hours are looked at together.
    static let olderHours: Int64 = 720

    struct Request: Sendable, Hashable {
        /// The index of the loader.
        let loader: Int
        let step: Candle.Step
        /// Unix seconds.
        let range: Range<Int64>
    }

    let loaders: [any CandleLoader]
    /// What each loader had no candle of, by step: their starts. An exchange has none for a span without a trade, but another one may.
    private var empty: [[Candle.Step: Set<Int64>]]
    /// What each loader was asked for in this search, by step: what it had may not have been stored.
    private var requested: [[Candle.Step: Set<Int64>]]

    /// - Parameter loaders: In the order of the configured sources.
    init(_ loaders: [any CandleLoader]) {
        self.loaders = loaders
        (empty, requested) = (loaders.map { _ in [:] }, loaders.map { _ in [:] })
    }

    /// Begins a search. What is missing although a loader had it was lost, and is requested again.
    mutating func begin() { requested = loaders.map { _ in [:] } }

    /// The span in which candles are wanted. It ends before the current candle, which is not complete.
    static func range(of step: Candle.Step, _ count: Int64, at now: Int64) -> Range<Int64> {
        let end = step.start(of: now - Backfill.margin)
        return end - count * step.seconds..<end
    }

    /// The next request; `nil` if nothing is missing, or no loader has it.
    /// - Parameters:
    ///   - known: The starts of the known candles in ``range(of:_:at:)``.
    ///   - end: The end of the newest complete candle; `nil` if that is the end of what is wanted.
    ///   - failed: Loaders that are not to be used.
    func next(
        _ step: Candle.Step, known: Set<Int64>, wanted: Range<Int64>, before end: Int64? = nil, failed: Set<Int>
    ) -> Request? {
        let missing = stride(from: wanted.lowerBound, to: wanted.upperBound, by: Int(step.seconds)).filter {
            !known.contains($0)
        }
        let requests = loaders.indices.filter { !failed.contains($0) }.compactMap { index in
            let (empty, requested) = (empty[index][step] ?? [], requested[index][step] ?? [])
            return request(
                loaders[index], index, step, missing.filter { !empty.contains($0) && !requested.contains($0) },
                end ?? wanted.upperBound)
        }
        // The loader with the fewest requests; if there are several, the one of the first source.
        return requests.min { ($0.count, $0.request.loader) < ($1.count, $1.request.loader) }?.request
    }

    /// The first request to a loader, and the total number of requests that it would need.
    private func request(
        _ loader: any CandleLoader, _ index: Int, _ step: Candle.Step, _ missing: [Int64], _ newest: Int64
    ) -> (request: Request, count: Int)? {
        let span = Int64(loader.page) * step.seconds
        let reach = loader.reach(step, before: newest)
        guard let first = missing.first(where: { $0 >= reach }) else { return nil }
        var (count, end) = (0, Int64.min)
        for start in missing where start >= reach && start >= end { (count, end) = (count + 1, start + span) }
        // A loader that has only a part is the last choice.
        if missing.first != first { count += missing.count }
        let last = missing.last { $0 < first + span } ?? first
        return (Request(loader: index, step: step, range: first..<last + step.seconds), count)
    }

    /// Records a response.
    /// - Parameter delivered: The starts of its candles.
    mutating func answered(_ request: Request, delivered: some Sequence<Int64>) {
        let starts = Set(
            stride(from: request.range.lowerBound, to: request.range.upperBound, by: Int(request.step.seconds)))
        requested[request.loader][request.step, default: []].formUnion(starts)
        // What is no longer wanted is never requested again.
        let longest = request.step == .hour ? Self.allHours : Self.wanted.first { $0.step == request.step }?.count ?? 0
        let oldest = request.range.upperBound - 2 * longest * request.step.seconds
        let known = empty[request.loader][request.step] ?? []
        empty[request.loader][request.step] = known.filter { $0 >= oldest }.union(starts.subtracting(delivered))
    }
}
