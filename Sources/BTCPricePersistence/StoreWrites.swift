/// How often the price was written since the start.
package struct StoreWrites: Sendable, Hashable {
    /// To the runtime directory.
    package var runtime: Int64 = 0
    package var runtimeFailed: Int64 = 0
    /// To the disk, synchronised.
    package var disk: Int64 = 0
    package var diskFailed: Int64 = 0
}
