#!/usr/bin/env python3
"""What bash, zsh and fish complete, by the scripts that the binaries write."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403
from terminal import Terminal  # noqa: E402

CASES = [
    ("btcctl c", ["current", "convert", "currencies"]),
    ("btcctl current --currency ", ["USD", "EUR", "JPY"]), ("btcctl watch -c ", ["EUR", "CHF"]), ("btcctl watch --b", ["--bar", "--below"]),
    ("btcctl current --bar ", ["waybar", "i3blocks", "polybar"]), ("btc-priced --source-k", ["--source-kraken-url", "--source-kraken-timeout-ms"]),
]


def scripts(shell):
    """A folder with the scripts as the package has them."""
    folder = Path(tempfile.mkdtemp(prefix="btc-priced-completions-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for command in ("btcctl", "btc-priced"):
        done = subprocess.run([BINARIES / command, "--generate-completion-script", shell], capture_output=True, text=True, check=True)
        Path(folder, {"zsh": f"_{command}", "fish": f"{command}.fish"}.get(shell, command)).write_text(done.stdout)
    return folder


def bash(folder, line):
    command, words = line.split()[0], line.split(" ")
    script = f"""source {folder}/{command}
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}
        "$(complete -p {command} | sed 's/.*-F \\([^ ]*\\).*/\\1/')" {command} '{words[-1]}' '{words[-2]}'; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def fish(folder, line):
    script = f"source {folder}/{line.split()[0]}.fish; complete -C '{line}'"
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=True)
    return [offer.split("\t")[0] for offer in done.stdout.splitlines()]


@scenario("bash and fish complete verbs, options and values")
def _():
    for shell, complete in (("bash", bash), ("fish", fish)):
        folder = scripts(shell)
        for line, wanted in CASES:
            offers = complete(folder, line)
            assert set(wanted) <= set(offers), f"{shell}: {line}: {offers}"


@scenario("zsh does, on a terminal")
def _():
    folder = scripts("zsh")
    terminal = Terminal("sh -c '. {rc}; exec zsh -f -i'", columns=150, rows=40)
    terminal.run(f"PS1='> '; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; clear")
    terminal.lacks("compinit")
    for line, wanted in CASES:
        terminal.type("-l", line)
        terminal.type("Tab")
        terminal.type("Tab")
        terminal.shows(*wanted)
        # A key, not a signal: that would end a completion which goes on, and leave the line there.
        terminal.type("C-u")
        terminal.run("clear")
        terminal.lacks(wanted[0])
    terminal.close()


main()
