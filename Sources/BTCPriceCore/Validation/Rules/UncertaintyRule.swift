/// How sure a price is.
enum UncertaintyRule {
    static func estimate(_ decision: Decision, _ book: ObservationBook) -> Uncertainty? { nil }
}
