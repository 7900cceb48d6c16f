import CommandLine

struct Verb: Sendable {
    let command: Command
    let run: @Sendable (ParsedLine) throws(UsageError) -> Int32
}
