package import BTCPriceCore

/// Tests write a moment as its milliseconds.
extension BootTime: ExpressibleByIntegerLiteral {
    package init(integerLiteral milliseconds: Int64) {
        self.init(milliseconds: milliseconds)
    }
}
