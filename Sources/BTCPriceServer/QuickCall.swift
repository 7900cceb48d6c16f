import BTCPriceVarlink
import Glibc

/// The bytes of the call that nearly every client makes.
enum QuickCall {
    /// How many bytes it has, its NUL included.
    static var getPriceLength: Int { PriceCall.commonest.utf8CodeUnitCount }

    /// Whether a call for the price with the default policy begins at `offset`, byte for byte as this client writes it.
    static func isGetPrice(_ bytes: Span<UInt8>, at offset: Int) -> Bool {
        guard bytes.count - offset >= getPriceLength else { return false }
        return bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return memcmp(start + offset, PriceCall.commonest.utf8Start, getPriceLength) == 0
        }
    }
}
