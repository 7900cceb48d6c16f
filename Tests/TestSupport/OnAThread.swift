import Dispatch

/// Runs a blocking client on a thread of its own, since its reply needs one of the pool. A global queue shares that pool.
package func onAThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue(label: "client").async { continuation.resume(with: Result(catching: body)) }
    }
}
