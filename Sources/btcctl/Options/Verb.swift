import CommandLine

/// A command of the client.
struct Verb: Sendable {
    let command: Command
    let run: @Sendable (ParsedLine) throws(UsageError) -> Int32
}
