#!/usr/bin/env python3
"""The completions in bash, zsh and fish, with the scripts that the binaries write."""

import os

from lib.btcpriced import *
from lib.terminal import Terminal

CASES = [
    ("btcctl c", [verb for verb in verbs() if verb[0] == "c"]),
    ("btcctl current --currency ", ["USD", "EUR", "JPY"]), ("btcctl watch -c ", ["EUR", "CHF"]), ("btcctl watch --b", ["--bar", "--below"]),
    ("btcctl current --bar ", ["waybar", "i3blocks", "polybar"]), ("btc-priced --source-k", ["--source-kraken-url", "--source-kraken-timeout-ms"]),
]


# The client itself makes some completions.
os.environ["PATH"] = f"{BINARIES}:{os.environ['PATH']}"


def scripts(shell):
    """A folder with the scripts as in the package."""
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


def interactive(shell):
    """A terminal with the shell, after it has read the scripts."""
    folder = scripts(shell)
    if shell == "zsh":
        terminal = Terminal("sh -c '. {rc}; exec zsh -f -i'", columns=250, rows=40)
        terminal.run(f"PS1='> '; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; clear")
        terminal.lacks("compinit")
    else:
        terminal = Terminal("sh -c '. {rc}; exec fish --no-config --private -i'", columns=250, rows=40, ready="#")
        terminal.run(f"function fish_prompt; echo -n '> '; end; source {folder}/btcctl.fish; source {folder}/btc-priced.fish; clear")
        terminal.lacks("fish_prompt")
    return terminal


def offers(terminal, line, wanted):
    terminal.type("-l", line)
    terminal.type("Tab")
    terminal.type("Tab")
    # fish shortens long words at their start.
    screen = terminal.shows(*(word[-10:] for word in wanted))
    # A key and not a signal, which would end a running completion and leave the line.
    terminal.type("C-u")
    terminal.run("clear")
    terminal.lacks(wanted[0][-10:])
    return screen


@scenario("bash, zsh and fish complete verbs, options and values")
def _():
    folder = scripts("bash")
    for line, wanted in CASES:
        assert set(wanted) <= set(bash(folder, line)), f"{line}: {bash(folder, line)}"
    for shell in ("zsh", "fish"):
        terminal = interactive(shell)
        for line, wanted in CASES:
            offers(terminal, line, wanted)
        terminal.close()


@scenario("completions have the daemon's current sources and currencies")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, "--currencies", "USD,EUR", sources=("coinbase", "kraken"))
    fresh(place)
    cases = [
        (f"btcctl current --socket {place.socket} --currency ", ["EUR", "USD"]), (f"btcctl watch --socket {place.socket} -c USD,", ["USD,EUR"]),
        (f"btcctl retry --socket {place.socket} ", ["coinbase", "kraken"]),
    ]
    for line, wanted in cases:
        equal(sorted(offer for offer in bash(scripts("bash"), line) if not offer.startswith("-")), wanted, line)
    for shell in ("zsh", "fish"):
        terminal = interactive(shell)
        for line, wanted in cases:
            screen = offers(terminal, line, wanted)
            assert "CHF" not in screen, screen
        terminal.close()
    daemon.stop()


main()
