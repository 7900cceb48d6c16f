extension Price {
    /// The digits with commas between groups of three, as the C locale writes them: `68,901.23`.
    /// - Parameter places: The digits after the point, rounded half to even; `nil` for all.
    package func grouped(places: Int? = nil) -> String {
        let digits = Array((places.map { rounded(toPlaces: $0) } ?? self).description.utf8)
        let whole = digits.firstIndex(of: UInt8(ascii: ".")) ?? digits.count
        var bytes: [UInt8] = []
        for (index, digit) in digits[..<whole].enumerated() {
            if index > 0, (whole - index) % 3 == 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(digit)
        }
        guard let places else { return String(decoding: bytes + digits[whole...], as: UTF8.self) }
        if places > 0 {
            bytes.append(UInt8(ascii: "."))
            for index in whole + 1...whole + places {
                bytes.append(index < digits.count ? digits[index] : UInt8(ascii: "0"))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
