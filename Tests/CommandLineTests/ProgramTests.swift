import CommandLine
import TestSupport
import Testing

@Suite struct ProgramTests {
    private static let size = Option(
        "--size", letter: "s", value: "number", "The size.", completion: .words(["small", "large"]))
    private static let quiet = Option("--quiet", letter: "q", "Print nothing.")
    private static let program = Program(
        Command(
            "tool", "A tool.",
            commands: [
                Command("send", "Sends.", options: [size, quiet], words: [Words("file", "A file.", count: 1...2)]),
                Command("list", "Lists.", options: [quiet]),
                Command(
                    "mail", "Mails.", options: [Option("--quiet", value: "hours", "Waits.")],
                    words: [Words("day", "A day.", count: 0...1), Words("file", "A file.", count: 0...9)]),
            ]), version: "tool 1", otherNames: ["post": "send"],
        otherOption: { $0 == "--extra" ? Option("--extra", value: "text", "More.") : nil })

    /// The command, its words and its options in one line, or the error.
    private func read(_ arguments: [String]) -> String {
        do throws(UsageError) {
            switch try Self.program.read(arguments) {
            case .run(let line):
                let options = line.options.map { $0.text.isEmpty ? $0.name : "\($0.name)=\($0.text)" }
                return ([line.command] + line.words + options).joined(separator: " ")
            case .print(let text): return text
            }
        } catch {
            return error.message
        }
    }

    private func read(_ line: String) -> String { read(line.split(separator: " ").map(String.init)) }

    @Test(arguments: [
        ("send a", "send a"), ("send a b", "send a b"), ("send --quiet a", "send a --quiet"),
        ("--quiet send a", "send a --quiet"), ("--size 3 send a", "send a --size=3"),
        ("-s 3 send a", "send a --size=3"), ("-qs 3 send a", "send a --quiet --size=3"),
        ("send --size=3 a", "send a --size=3"), ("send a -s -3", "send a --size=-3"), ("send -1h", "send -1h"),
        ("send -", "send -"), ("send -- --quiet", "send --quiet"),
        ("send a --extra x", "send a --extra=x"), ("send -s=3 a", "send a --size=3"),
        ("send a -qs 3", "send a --quiet --size=3"), ("-s3 send a", "send a --size=3"),
        ("send a -qsa=b", "send a --quiet --size=a=b"), ("-qsx send a -ss", "send a --quiet --size=x --size=s"),
        ("send a --size 1 --size 2", "send a --size=1 --size=2"),
        ("--quiet 3 mail", "mail --quiet=3"), ("--quiet list", "list --quiet"), ("mail a b", "mail a b"),
        ("mail", "mail"),
    ])
    func `words and options are told apart`(line: String, expected: String) {
        #expect(read(line) == expected)
    }

    @Test(arguments: [
        ("dance", "no command 'dance'. See 'tool --help'."),
        ("sned a", "no command 'sned'. Did you mean 'send'? See 'tool --help'."),
        ("POST a", "no command 'POST'. Did you mean 'send'? See 'tool --help'."),
        ("help sned", "no command 'sned'. Did you mean 'send'? See 'tool --help'."),
        ("send", "<file> ... is missing. See 'tool send --help'."),
        ("send a b c", "unexpected word 'c'. See 'tool send --help'."),
        ("list x", "unexpected word 'x'. See 'tool list --help'."),
        ("list --size 3", "unknown option '--size'. See 'tool list --help'."),
        ("list --quit", "unknown option '--quit'. Did you mean '--quiet'? See 'tool list --help'."),
        ("list --quite", "unknown option '--quite'. Did you mean '--quiet'? See 'tool list --help'."),
        (
            "list --send",
            "unknown option '--send'. There is a command of that name: 'tool send'. See 'tool list --help'."
        ),
        ("list -x", "unknown option '-x'. See 'tool list --help'."),
        ("list -qx", "unknown option '-qx'. See 'tool list --help'."),
        ("send -q-size 3 a", "unknown option '-q-size'. Did you mean '--size'? See 'tool send --help'."),
        ("send a -q5", "unknown option '-q5'. See 'tool send --help'."),
        ("list --quiet=1", "--quiet has no value. See 'tool list --help'."),
        ("send a --size", "--size needs a value: -s, --size <number>. See 'tool send --help'."),
        (
            "send a --size --quiet",
            "--size needs a value: -s, --size <number>; one that begins with a hyphen is written --size='--quiet'. See 'tool send --help'."
        ),
        ("help --size 3 sned", "no command 'sned'. Did you mean 'send'? See 'tool --help'."),
        ("--quiet", "a command is missing. See 'tool --help'."),
        (
            "--generate-completion-script csh",
            "there are completions for bash, zsh and fish, not for 'csh'. See 'tool --help'."
        ),
    ])
    func `a mistake is told in one line`(line: String, expected: String) {
        #expect(read(line) == expected)
    }

    @Test func `values are read by the caller, and the last one counts`() throws {
        guard case .run(let line) = try Self.program.read(["send", "a", "--size", "1", "--size", "9"]) else { return }
        #expect(try line.number(Self.size, in: 1...10) == 9)
        #expect(try line.values(Self.size) { $0 } == ["1", "9"])
        #expect(line.text(Self.size) == "9" && !line.has(Self.quiet))
        #expect(throws: UsageError("'9' is not valid for --size: it is a whole number from 1 to 5")) {
            try line.number(Self.size, in: 1...5)
        }
    }

    @Test func `the help has every option and command`() {
        #expect(read("--version") == "tool 1\n")
        #expect(read("help send") == read("send --help") && read("") == read("--help") && read("help") == read("-h"))
        #expect(read("help help") == read("--help") && read("list --bogus --help") == read("help list"))
        #expect(
            read("send -h") == """
                Sends.

                Usage: tool send [options] <file> ...

                Arguments:
                  <file>                A file.

                Options:
                  -s, --size <number>   The size.
                  -q, --quiet           Print nothing.
                  -h, --help            Show this help.

                """)
        #expect(read("--help").contains("\n\nCommands:\n  send                  Sends.\n  list "))
    }

    @Test(arguments: [
        ([""], "send\tSends.\nlist\tLists.\nmail\tMails.\nhelp\tShow the help.\n"), (["l"], "list\tLists.\n"),
        (["send", "--s"], "--size\tThe size.\n"), (["send", "-s", ""], "small\nlarge\n"),
        (["send", "--size", "l"], "large\n"), (["--quiet", "send", "--size=s"], "--size=small\n"), (["send", ""], ""),
        (["send", "--size", "=", "s"], "small\n"),
    ])
    func `a shell gets the candidates for the last word`(words: [String], expected: String) {
        #expect(read(["---complete"] + words) == expected)
    }

    @Test func `no command line traps`() {
        var generator = SeededGenerator.announced()
        let words = [
            "send", "list", "help", "--", "-", "--size", "--size=", "-s", "=", "--=", "-1", "--quiet", "é", "",
            "---complete",
            "--help=", "--generate-completion-script", "--extra",
        ]
        for _ in 0..<5000 {
            _ = read(
                (0..<Int.random(in: 0...6, using: &generator)).compactMap { _ in words.randomElement(using: &generator)
                })
        }
    }
}
