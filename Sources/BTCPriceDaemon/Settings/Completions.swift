/// Shell completion scripts for the daemon's command line, generated from its flags and settings.
enum Completions {
    enum Shell: String, CaseIterable {
        case bash, zsh, fish
    }

    private static var flags: [(flag: String, summary: String, value: String?)] {
        DaemonCommandLine.flags + SettingKey.all.map { ($0.flag, $0.purpose, "VALUE") }
    }

    static func script(for shell: Shell) -> String {
        switch shell {
        case .bash: bash
        case .zsh: zsh
        case .fish: fish
        }
    }

    private static var bash: String {
        """
        # Completions of btc-priced(8) for bash.
        _btc_priced() {
            local word=${COMP_WORDS[COMP_CWORD]} before=
            if [ "$COMP_CWORD" -gt 0 ]; then before=${COMP_WORDS[COMP_CWORD - 1]}; fi
            COMPREPLY=()
            case $before in
            --config | --tls-ca-file | --state-directory | --runtime-directory | --socket-path)
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
                return
                ;;
            --log-level)
                mapfile -t COMPREPLY < <(compgen -W "trace debug info notice warning error critical" -- "$word")
                return
                ;;
            esac
            mapfile -t COMPREPLY < <(compgen -W "\(flags.map(\.flag).joined(separator: " "))" -- "$word")
        }
        complete -F _btc_priced btc-priced

        """
    }

    private static var zsh: String {
        let lines = flags.map { flag, summary, value in
            let text = summary.replacing("'", with: "").replacing("[", with: "(").replacing("]", with: ")").replacing(
                ":", with: "")
            return "    '\(flag)[\(text)]\(value.map { ":\($0.lowercased()):\($0 == "FILE" ? "_files" : "")" } ?? "")'"
        }
        return "#compdef btc-priced\n# Completions of btc-priced(8) for zsh.\n_arguments -s \\\n"
            + lines.joined(separator: " \\\n") + "\n"
    }

    private static var fish: String {
        "# Completions of btc-priced(8) for fish.\ncomplete -c btc-priced -f\n"
            + flags.map { flag, summary, value in
                "complete -c btc-priced -l \(flag.dropFirst(2))\(value == nil ? "" : " -r")\(value == "FILE" ? " -F" : "") "
                    + "-d '\(summary.replacing("'", with: ""))'\n"
            }.joined()
    }
}
