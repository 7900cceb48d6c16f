/// When the output is coloured.
enum ColorChoice: String, CaseIterable {
    case auto
    case always
    case never

    /// - Parameters:
    ///   - isTerminal: Whether standard output is a terminal.
    ///   - environment: Looks up a variable. `NO_COLOR` (no-color.org) counts unless it is empty.
    func isWanted(isTerminal: Bool, environment: (String) -> String?) -> Bool {
        switch self {
        case .always: true
        case .never: false
        case .auto: isTerminal && environment("TERM") != "dumb" && (environment("NO_COLOR") ?? "").isEmpty
        }
    }
}
