/// Waits for a request, at most for `timeout`. The request is cancelled then.
package func withTimeout<Value: Sendable>(
    _ timeout: Duration, on clock: any BoottimeClock,
    _ load: @escaping @Sendable () async throws(PriceLoadingError) -> Value
) async -> Result<Value, PriceLoadingError> {
    await withTaskGroup(of: Result<Value, PriceLoadingError>.self) { group in
        group.addTask {
            do throws(PriceLoadingError) { return .success(try await load()) } catch { return .failure(error) }
        }
        group.addTask {
            do { try await clock.sleep(for: timeout) } catch {}
            return .failure(.timedOut(after: timeout))
        }
        defer { group.cancelAll() }
        return await group.next() ?? .failure(.cancelled)
    }
}
