/// The place where a value was set.
package enum Origin: Sendable, Hashable, CustomStringConvertible {
    case commandLine(flag: String)
    case environment(variable: String)
    case file(path: String, line: Int?)
    case standard

    package var description: String {
        switch self {
        case .commandLine(let flag): "the command line, \(flag)"
        case .environment(let variable): "the environment, \(variable)"
        case .file(let path, let line?): "\(path), line \(line)"
        case .file(let path, nil): path
        case .standard: "the default"
        }
    }
}

/// An unknown or invalid setting, or a file that can't be read.
package struct SettingsError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The place, the key, the value, and what is allowed.
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    package init(_ origin: Origin, _ key: String, _ value: RawValue, allowed: String) {
        self.init("\(origin): \(key) = \(value): must be \(allowed)")
    }
}
