import Glibc

extension Price {
    /// The natural logarithm; minus infinity for a number that is not above zero.
    var logarithm: Double {
        let value = double
        return value > 0 ? Glibc.log(value) : -.infinity
    }
}

extension Currency {
    /// The price with a natural logarithm, in whole coins; at most e^36.
    func price(logarithm: Double) -> Price {
        let coins = exp(Swift.min(logarithm, 36)) / Price(1, scale: places).double
        return Price(Int64(coins.rounded()), scale: places)
    }
}
