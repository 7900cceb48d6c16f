import Glibc

/// The resources that the process uses.
struct ProcessUsage {
    /// Processor time, milliseconds.
    let cpu: Int64
    /// Resident memory, bytes; `nil` if /proc is not available.
    let resident: Int64?
    let descriptors: Int?

    static func current() -> ProcessUsage {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return ProcessUsage(
            cpu: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000,
            resident: pages().map { $0 * Int64(sysconf(Int32(_SC_PAGESIZE))) }, descriptors: openDescriptors())
    }

    /// The resident pages: the second number of /proc/self/statm (proc(5)).
    private static func pages() -> Int64? {
        guard let file = fopen("/proc/self/statm", "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let fields = text.split(separator: " ")
        return fields.count > 1 ? Int64(fields[1]) : nil
    }

    private static func openDescriptors() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Not counted: `.`, `..` and the descriptor of the folder itself.
        return count - 3
    }
}
