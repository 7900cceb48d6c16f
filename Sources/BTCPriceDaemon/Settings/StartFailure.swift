struct StartFailure: Error, CustomStringConvertible {
    /// What is wrong and what to do.
    let description: String
    /// Whether another start with the same configuration would fail the same way.
    var isConfiguration = false
}
