import FoundationEssentials

extension Decimal {
    /// Rounded half to even to so many digits after the point, where it has more.
    ///
    /// What is calculated may have more digits than a reader takes (``Decimal/init(exactly:)``); a price has eight at most.
    func rounded(toPlaces places: Int) -> Decimal {
        guard exponent < -places else { return self }
        var scaled = self
        for _ in 0..<places { scaled *= 10 }
        // FoundationEssentials rounds nothing: what stands before the point is the whole part.
        let text = scaled.description
        guard let point = text.firstIndex(of: "."), let whole = Decimal(exactly: text[..<point]) else { return self }
        let rest = (scaled - whole).magnitude * 2
        let isOdd = text[..<point].last.map { "13579".contains($0) } ?? false
        let step: Decimal = rest > 1 || (rest == 1 && isOdd) ? (self < 0 ? -1 : 1) : 0
        var result = whole + step
        for _ in 0..<places { result /= 10 }
        return result
    }
}
