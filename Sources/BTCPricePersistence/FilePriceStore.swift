package import BTCPriceCore
import Dispatch
import Files
import Synchronization

/// Keeps the last valid quote in two files with the same content.
///
/// - In the runtime directory, a tmpfs, at every save: this copy outlives a kill and needs no disk write.
/// - In the state directory, synchronised, at most once per `syncInterval` and at ``flush()``: this copy outlives a power cut.
///
/// If the runtime directory can't be written, its copies go to the state directory under a separate name: a power cut may leave
/// a file empty that was not synchronised, and this must not happen to the synchronised one. A disk may take seconds, so these copies
/// are written on the disk's queue.
///
/// A copy of a newer version is left as it is, and nothing is written.
///
/// At the start the copy with the highest sequence is used. Only a runtime copy on a tmpfs was certainly written during this boot,
/// so only its age is exact.
package final class FilePriceStore: PriceStore {
    /// The file's name in both directories.
    static let fileName = "last-quote.json"

    private struct State {
        var sequence: Int64 = 0
        /// The newest bytes that are not on the disk yet.
        var unsynced: [UInt8]?
        /// When the disk last received a copy.
        var lastSync: BootTime?
        /// When a copy was last written to the disk, or failed to be.
        var lastAttempt: BootTime?
        var isSyncing = false
        /// The newest bytes that could not be written to the runtime directory and are not in the state directory yet.
        var unkept: [UInt8]?
        var syncFailure: PriceStoreError?
        /// A newer version's copy was found.
        var newer: PriceStoreError?
        var writes = StoreWrites()
    }

    private let runtimePath: String
    private let statePath: String
    private let substitutePath: String
    private let runtimeIsVolatile: Bool
    private let syncInterval: Duration
    private let now: TimeSource
    private let state = Mutex(State())
    /// A sync may take seconds, too long for a thread that others wait for.
    private let disk = DispatchQueue(label: "io.btcpriced.disk")

    /// - Parameters:
    ///   - stateDirectory: A directory that outlives a reboot. Must exist.
    ///   - runtimeDirectory: A directory that a reboot empties. Must exist.
    ///   - syncInterval: The minimum time between two syncs of the disk.
    package init(
        stateDirectory: String, runtimeDirectory: String, syncInterval: Duration = .seconds(30),
        now: @escaping TimeSource
    ) {
        statePath = "\(stateDirectory)/\(Self.fileName)"
        substitutePath = "\(stateDirectory)/last-quote.unsynced.json"
        runtimePath = "\(runtimeDirectory)/\(Self.fileName)"
        runtimeIsVolatile = FileSystem.isVolatile(runtimeDirectory)
        self.syncInterval = syncInterval
        self.now = now
    }

    /// Reads the copies and returns the newest one.
    package func load() -> StoredPrice {
        var problems: [PriceStoreError] = []
        let copies = [runtimePath, statePath, substitutePath].compactMap { path in
            read(path, &problems).map { (path: path, file: $0) }
        }
        // Of two with the same sequence the first one is returned.
        let newest = copies.max { $0.file.sequence < $1.file.sequence }
        if let newest, !newest.file.unusable.isEmpty {
            problems.append(.unusable(path: newest.path, entries: newest.file.unusable))
        }
        let synced = copies.first { $0.path == statePath }?.file
        let present = now()
        state.withLock { state in
            state.sequence = newest?.file.sequence ?? 0
            guard let quote = synced?.prices.map(\.quote).max(by: { $0.timestamp < $1.timestamp }) else { return }
            // If the disk received a copy just before the restart, no new one is needed at once.
            let age = present.wall.milliseconds - quote.timestamp.milliseconds
            if (0..<syncInterval.wholeMilliseconds).contains(age) { state.lastSync = present.boottime - age }
        }
        let mayBeOfThisBoot = runtimeIsVolatile && newest?.path == runtimePath
        let isOfThisBoot: (BootTime?) -> Bool = { mayBeOfThisBoot && ($0 ?? .max) <= present.boottime }
        return StoredPrice(
            prices: (newest?.file.prices ?? []).map {
                isOfThisBoot($0.price.observedBoottime) ? $0 : $0.withoutBoottime
            },
            cooldowns: (newest?.file.cooldowns ?? [:]).mapValues {
                isOfThisBoot($0.cooldown.since.boottime) ? $0 : $0.ofAnotherBoot
            },
            problems: problems)
    }

    /// Writes the runtime copy, and starts writing the disk copy if that is due.
    ///
    /// If the runtime directory can't be written, the copy is written to the state directory soon after, without a sync.
    /// - Throws: The failure of the runtime copy, otherwise that of the last disk copy.
    package func save(_ prices: [CachedPrice], cooldowns: [String: KeptCooldown]) throws(PriceStoreError) {
        if let newer = state.withLock(\.newer) { throw newer }
        let bytes = try nextCopy(of: prices, cooldowns)
        defer { startSyncIfDue() }
        do {
            try FileSystem.replace(runtimePath, with: bytes, sync: false)
            state.withLock { $0.writes.runtime += 1 }
        } catch {
            let isQueued = state.withLock { state in
                state.writes.runtimeFailed += 1
                defer { state.unkept = bytes }
                return state.unkept != nil
            }
            if !isQueued { disk.async { self.writeSubstitute() } }
            throw error
        }
        if let failure = state.withLock(\.syncFailure) { throw failure }
    }

    /// Writes the data that is not on the disk yet, and waits for it.
    package func flush() throws(PriceStoreError) {
        disk.sync { self.sync() }
        if let failure = state.withLock(\.syncFailure) { throw failure }
    }

    /// When the disk last received a copy; `nil` if that is not known.
    package var lastSync: BootTime? { state.withLock(\.lastSync) }

    package var writes: StoreWrites { state.withLock(\.writes) }

    /// Waits for a disk write in progress.
    func waitForDisk() {
        disk.sync {}
    }

    private func nextCopy(
        of prices: [CachedPrice], _ cooldowns: [String: KeptCooldown]
    ) throws(PriceStoreError) -> [UInt8] {
        try state.withLock { state throws(PriceStoreError) in
            do {
                let bytes = try QuoteFile(sequence: state.sequence + 1, prices: prices, cooldowns: cooldowns).encoded()
                state.sequence += 1
                state.unsynced = bytes
                return bytes
            } catch {
                throw .unwritable(path: runtimePath, reason: "the quote can't be encoded: \(error)")
            }
        }
    }

    /// Runs on the disk's queue.
    private func writeSubstitute() {
        guard let bytes = state.withLock({ $0.unkept.take() }) else { return }
        // If this fails too, no other place is left. The caller of ``save(_:cooldowns:)`` got the first failure.
        do { try FileSystem.replace(substitutePath, with: bytes, sync: false) } catch {}
    }

    private func startSyncIfDue() {
        let boottime = now().boottime
        let isDue = state.withLock { state in
            let isDue =
                !state.isSyncing
                && (state.lastAttempt ?? state.lastSync).map { boottime - $0 >= syncInterval.wholeMilliseconds } ?? true
            if isDue { state.isSyncing = true }
            return isDue
        }
        if isDue { disk.async { self.sync() } }
    }

    /// Runs on the disk's queue.
    private func sync() {
        let bytes = state.withLock { $0.unsynced.take() }
        var failure: PriceStoreError?
        if let bytes {
            do {
                try FileSystem.replace(statePath, with: bytes, sync: true)
            } catch {
                failure = error
            }
        }
        let boottime = now().boottime
        state.withLock { state in
            state.isSyncing = false
            guard bytes != nil else { return }
            state.lastAttempt = boottime
            if failure == nil {
                state.lastSync = boottime
                state.writes.disk += 1
            } else {
                state.writes.diskFailed += 1
            }
            state.syncFailure = failure
            // A failed copy still has to be written, unless there is a newer one.
            if failure != nil, state.unsynced == nil { state.unsynced = bytes }
        }
    }

    private func read(_ path: String, _ problems: inout [PriceStoreError]) -> QuoteFile? {
        do throws(PriceStoreError) {
            guard let bytes = try FileSystem.read(path) else { return nil }
            do throws(QuoteFile.Damage) {
                return try QuoteFile(decoding: bytes)
            } catch {
                if error.isNewer {
                    let failure = PriceStoreError.unwritable(
                        path: path,
                        reason:
                            "a newer version wrote it (\(error.reason)); install that version, or move the file away and restart"
                    )
                    state.withLock { $0.newer = failure }
                    throw failure
                }
                throw .corrupt(path: path, reason: error.reason, setAside: FileSystem.setAside(path))
            }
        } catch {
            problems.append(error)
            return nil
        }
    }
}

extension CachedPrice {
    /// The price without the data that is valid only for the boot that wrote it.
    fileprivate var withoutBoottime: CachedPrice {
        var price = price
        (price.observedBoottime, price.conversion) = (nil, nil)
        return CachedPrice(price, positions: positions, learned: learned)
    }
}

/// How often the price was written since the start.
package struct StoreWrites: Sendable, Hashable {
    /// To the runtime directory.
    package var runtime: Int64 = 0
    package var runtimeFailed: Int64 = 0
    /// To the disk, synchronised.
    package var disk: Int64 = 0
    package var diskFailed: Int64 = 0
}
