import Glibc

/// A thread that runs to its end by itself.
public enum Thread {
    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    /// - Parameter run: What it does. It may block for as long as it likes: no pool of threads waits for it.
    /// - Returns: Whether the system granted one.
    @discardableResult
    public static func start(_ run: @escaping @Sendable () -> Void) -> Bool {
        let body = Unmanaged.passRetained(Body(run))
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { pointer in
                if let pointer { Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue().run() }
                return nil
            }, body.toOpaque())
        guard result == 0 else {
            body.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
