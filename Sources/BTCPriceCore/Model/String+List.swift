extension [String] {
    /// `binance`, `binance and kraken`, `binance, bitstamp and kraken`
    package var listed: String {
        count > 1 ? "\(dropLast().joined(separator: ", ")) and \(self[count - 1])" : first ?? ""
    }
}
