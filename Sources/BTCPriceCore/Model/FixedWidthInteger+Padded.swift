extension FixedWidthInteger {
    /// The number with at least this many digits, with zeros before it.
    @inlinable package func padded(_ width: Int, radix: Int = 10) -> String {
        let digits = String(self, radix: radix)
        return String(repeating: "0", count: Swift.max(0, width - digits.count)) + digits
    }
}
