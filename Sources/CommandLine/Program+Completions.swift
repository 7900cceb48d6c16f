extension Program {
    /// The first argument of the calls that a shell makes for its completions; the words of the command line follow.
    package static let completing = "---complete"

    /// What can stand in place of the last word: a line for each candidate, with its help after a tab; or `:files`, `:directories`.
    func completions(_ words: [String]) -> String {
        // For bash, `=` is a word.
        let (before, last) = (words.dropLast().filter { $0 != "=" }, words.last == "=" ? "" : words.last ?? "")
        let name = index(ofCommandIn: before).map { before[$0] }
        let chosen = name.flatMap { name in command.commands.first { $0.name == name } } ?? command
        let equals = last.hasPrefix("--") ? last.firstIndex(of: "=") : nil
        if let equals, let option = option(String(last[..<equals]), of: chosen) {
            let beginning = String(last[last.index(after: equals)...])
            return candidates(option.completion, words, beginning, prefix: "\(option.name)=")
        }
        if let option = before.last.flatMap({ self.option($0, of: chosen) }), option.value != nil {
            return candidates(option.completion, words, last)
        }
        if last.hasPrefix("-") { return lines((chosen.options + [.help]).map { ($0.name, $0.help) }, last) }
        if !chosen.commands.isEmpty {
            return lines(chosen.commands.map { ($0.name, $0.summary) } + [("help", "Show the help.")], last)
        }
        let given = before.filter { !$0.hasPrefix("-") }.count - (chosen.name == command.name ? 0 : 1)
        let kind = chosen.words.first { given < $0.count.upperBound } ?? chosen.words.last
        return candidates(kind?.completion ?? .none, words, last)
    }

    private func lines(_ candidates: [(name: String, help: String)], _ beginning: String) -> String {
        candidates.filter { $0.name.hasPrefix(beginning) }.map { "\($0.name)\t\($0.help)\n" }.joined()
    }

    private func candidates(
        _ completion: Completion, _ words: [String], _ beginning: String, prefix: String = ""
    ) -> String {
        let found: [String]
        switch completion {
        case .none: return ""
        case .files: return ":files\n"
        case .directories: return ":directories\n"
        case .words(let words): found = words
        case .computed(let compute): found = compute(words, beginning)
        }
        return found.filter { $0.hasPrefix(beginning) }.map { "\(prefix)\($0)\n" }.joined()
    }

    /// The script for a shell. It calls the program, so that the candidates are the program's own.
    func completionScript(for shell: String) throws(UsageError) -> String {
        let (name, function) = (command.name, "_" + command.name.map { $0 == "-" ? "_" : String($0) }.joined())
        let call = "\(name) \(Self.completing)"
        switch shell {
        case "bash":
            return """
                # shellcheck shell=bash
                # Completions of \(name) for bash.
                \(function)() {
                    local candidate word=${COMP_WORDS[COMP_CWORD]}
                    COMPREPLY=()
                    while IFS=$'\\t' read -r candidate _; do
                        case $candidate in
                        :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
                        :directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
                        *) COMPREPLY+=("$candidate") ;;
                        esac
                    done < <(\(call) "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
                }
                complete -F \(function) \(name)

                """
        case "zsh":
            return """
                #compdef \(name)
                # Completions of \(name) for zsh.
                \(function)() {
                    local -a candidates
                    candidates=("${(@f)$(\(call) "${(@)words[2,CURRENT]}" 2>/dev/null)}")
                    case $candidates[1] in
                    :files) _files ;;
                    :directories) _files -/ ;;
                    ?*)
                        candidates=("${(@)candidates//:/\\\\:}")
                        candidates=("${(@)candidates/$'\\t'/:}")
                        _describe -t words word candidates
                        ;;
                    esac
                }
                \(function) "$@"

                """
        case "fish":
            return """
                # Completions of \(name) for fish.
                function \(function)
                    set -l words (commandline -opc) (commandline -ct)
                    set -l candidates (\(call) $words[2..] 2>/dev/null)
                    switch "$candidates[1]"
                        case :files
                            __fish_complete_path (commandline -ct)
                        case :directories
                            __fish_complete_directories (commandline -ct)
                        case '*'
                            printf '%s\\n' $candidates
                    end
                end
                complete -c \(name) -f -a '(\(function))'

                """
        default: throw UsageError("there are completions for bash, zsh and fish, not for '\(shell)'")
        }
    }
}
