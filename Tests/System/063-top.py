#!/usr/bin/env python3
"""btcctl top in a real terminal. Its pictures are in Tests/btcctlTests/Top.golden."""

import fcntl
import os
import pty
import random
import select
import struct
import termios

from lib.btcpriced import *
from lib.terminal import Terminal

SOURCES = ("binance", "coinbase", "kraken", "bitstamp")


def daemon(place=None, *arguments):
    place, simulator = place or Place(), Simulator()
    running = Daemon(place, simulator.urls, "--currencies", "USD,EUR", *arguments, sources=SOURCES)
    fresh(place)
    return place, running


def opened(place, line="btcctl top", **options):
    terminal = Terminal(BTC_PRICED_SOCKET=place.socket, **{"rows": 24, **options})
    terminal.run(line)
    terminal.shows("q quit")
    return terminal


def mode(terminal):
    """Whether the alternate screen is shown, and the cursor."""
    return terminal.tmux("display", "-p", "#{alternate_on} #{cursor_flag}").strip()


@scenario("each key does what the footer says")
def _():
    place, running = daemon()
    terminal = opened(place)
    terminal.shows("BTC/USD", "Source", "shown", "another exchange agrees")
    did = []

    def press(key, *texts, lacks=None):
        terminal.type(key)
        terminal.shows(*texts)
        if lacks:
            terminal.lacks(lacks)
        did.append(key)

    # The daemon is young: all charts are alike. A second press tells which span is shown.
    for key, name in zip("123456", ("1h", "24h", "7d", "30d", "1y", "all")):
        terminal.type(key)
        press(key, f"{name} is shown already.")
    press("Left", lacks="already")
    press("5", "1y is shown already.")
    press("Right", lacks="already")
    press("6", "all is shown already.")
    press("c", "c line")
    press("c", "c candles")
    press("s", "sat per", "s money")
    press("s", "s sats", lacks="sat per")
    press("Tab", "BTC/EUR", "€")
    press("BTab", "BTC/USD", lacks="€")
    press("?", "Show satoshis, or money.", "For a screen reader")
    press("Escape", "Source", lacks="For a screen reader")
    press("x", "This key does nothing here")
    press("j", "All markets are shown.")
    press("p", "frozen", "p go on")
    frozen = terminal.screen()
    time.sleep(2.5)
    equal(terminal.screen(), frozen, "it stands still")
    press("Tab", "The picture is frozen: p goes on.")
    press("p", "p freeze", lacks="frozen")
    # Four markets and their head have no room below a chart.
    terminal.tmux("resize-window", "-x", 60, "-y", 14)
    terminal.shows("q quit")
    first = lambda: [name for name in SOURCES if f"  {name} " in terminal.screen()]
    wait_until(lambda: 0 < len(first()) < 4, what=lambda: f"some markets in {terminal.screen()}")
    before = first()
    for key in ("Down", "j", "NPage", "Up", "k", "PPage"):
        terminal.type(key)
        did.append(key)
    terminal.type("End")
    wait_until(lambda: first() != before and "bitstamp" in first(), what=lambda: f"the last market in {terminal.screen()}")
    terminal.type("Home")
    wait_until(lambda: first() == before, what=lambda: f"the first market in {terminal.screen()}")
    press("q", "missed; low $", lacks="q quit")
    running.stop()
    return " ".join(did)


@scenario("resized ten times a second, it leaves one whole picture, and nothing in the terminal's history")
def _():
    place, running = daemon()
    terminal = opened(place)
    chance = random.Random(58)
    for _ in range(30):
        terminal.tmux("resize-window", "-x", chance.randint(1, 200), "-y", chance.randint(1, 60))
        time.sleep(0.1)
    for columns, rows in ((100, 30), (40, 12), (80, 24)):
        terminal.tmux("resize-window", "-x", columns, "-y", rows)
        time.sleep(1.5)
        terminal.type("p")
        screen = terminal.shows("frozen")
        terminal.type("C-l")
        time.sleep(0.3)
        equal(terminal.screen(), screen, f"what Ctrl-L draws at {columns}x{rows}")
        equal(len(terminal.screen().splitlines()), rows)
        terminal.type("p")
        terminal.lacks("frozen")
    terminal.tmux("resize-window", "-x", 20, "-y", 5)
    terminal.shows("The terminal is too")
    equal(terminal.tmux("display", "-p", "#{history_size}"), "0\n")
    terminal.close()
    running.stop()


@scenario("the terminal is as before after every kind of end")
def _():
    place, running = daemon()
    terminal = Terminal(BTC_PRICED_SOCKET=place.socket, rows=24)
    terminal.run("before=$(stty -g); clear; echo before")
    terminal.shows("before\n$")
    ends = []

    def check(how, status, summary=True):
        # The shell has the terminal again. It ends a line of commands at a SIGINT, so this is a line of its own.
        wait_until(lambda: terminal.screen().rstrip("\n").endswith("$"), what=lambda: f"a prompt in {terminal.screen()}")
        terminal.run('echo "status $?"; test "$(stty -g)" = "$before" && echo same')
        terminal.shows("\nsame\n")
        screen = terminal.shows("before\n", f"status {status}\n")
        equal(mode(terminal), "0 1", how)
        equal(" missed; low $" in screen, summary, f"{how}: {screen}")
        ends.append(how)
        terminal.run("clear; echo before")
        terminal.lacks("same\n")

    def start(options=""):
        terminal.run(f"btcctl top {options}")
        terminal.shows("q quit")
        wait_until(lambda: mode(terminal) == "1 0", what="the alternate screen")
        terminal.shows("another exchange")

    start()
    terminal.type("q")
    check("q", 0)
    start()
    terminal.type("C-c")
    check("Ctrl-C", 130)
    start("--no-sync --ascii")
    terminal.type("C-\\")
    check("Ctrl-\\", 131)
    for name, status in (("TERM", 143), ("HUP", 129), ("INT", 130)):
        start()
        subprocess.run(["pkill", f"-{name}", "-P", terminal.tmux("display", "-p", "#{pane_pid}").strip(), "btcctl"], check=True)
        check(f"SIG{name}", status)
    start()
    terminal.type("?")
    terminal.shows("For a screen reader")
    terminal.type("C-c")
    check("Ctrl-C in the help", 130)
    start()
    terminal.type("C-z")
    terminal.shows("Stopped")
    equal(mode(terminal), "0 1", "while it is stopped")
    terminal.run("fg")
    terminal.shows("q quit", "another exchange")
    wait_until(lambda: mode(terminal) == "1 0", what="the alternate screen again")
    terminal.type("q")
    wait_until(lambda: mode(terminal) == "0 1", what="the screen as it was")
    terminal.shows("missed; low $")
    ends.append("Ctrl-Z, fg, q")
    terminal.run('clear; echo before; test "$(stty -g)" = "$before" && echo same')
    terminal.shows("same")
    # The daemon ends under it, and it is ended then.
    terminal.run("clear; echo before")
    start()
    running.stop()
    terminal.shows("btc-priced can't be reached; waiting for it.", "Failed to update value.")
    terminal.type("C-c")
    check("Ctrl-C after the daemon", 130)
    terminal.run("btcctl top -c XXX")
    terminal.shows("q quit", "btc-priced can't be reached")
    terminal.type("q")
    check("q without a daemon", 0, summary=False)
    _, running = daemon(place)
    terminal.run("btcctl top -c XXX")
    terminal.shows("The price is not kept in XXX")
    check("a currency that is not kept", 64, summary=False)
    terminal.close()
    running.stop()
    return ", ".join(ends)


@scenario("ticks that are farther apart than its patience are no lost daemon, and in the background it waits for fg", beside=True)
def _():
    place, running = daemon(None, "--tick-interval-ms", "8000")
    terminal = Terminal(BTC_PRICED_SOCKET=place.socket, rows=24)
    terminal.run("btcctl top &")
    # The shell tells it before a prompt.
    wait_until(lambda: terminal.type("Enter") or "Stopped" in terminal.screen(), every=0.2, what=lambda: terminal.screen())
    equal(mode(terminal), "0 1")
    terminal.run("fg")
    terminal.shows("q quit", "BTC/USD", "binance")
    end = time.monotonic() + 14
    while time.monotonic() < end:
        screen = terminal.screen()
        assert "can't be reached" not in screen and "Failed to update" not in screen, screen
        time.sleep(0.2)
    terminal.type("q")
    terminal.shows("missed; low $")
    # A job whose terminal goes away ends.
    other = Terminal(BTC_PRICED_SOCKET=place.socket, rows=24)
    other.run("btcctl top & echo job $!")
    job = int(wait_until(lambda: re.search(r"(?m)^job (\d+)$", other.screen()), what=lambda: other.screen())[1])
    other.close()
    wait_until(lambda: not Path(f"/proc/{job}").exists(), what="the end of a job without a terminal")
    terminal.run("clear; btcctl top </dev/null; echo status $?")
    terminal.shows("top needs a terminal", "status 64")
    terminal.close()
    running.stop()


@scenario("without a terminal, and on a dumb one, it says what to use instead")
def _():
    place = Place()
    done = btcctl(place, "top")
    equal(done.status, 64)
    assert "top needs a terminal that it can draw on; 'btcctl watch' prints lines anywhere" in done.err, done
    terminal = Terminal(BTC_PRICED_SOCKET=place.socket, TERM="dumb")
    terminal.run("btcctl top; echo status $?")
    terminal.shows("top needs a terminal", "status 64")


class Paper:
    """A terminal of our own: what top sends to it, byte for byte."""

    def __init__(self, place, *arguments, reply=b""):
        pid, self.descriptor = pty.fork()
        if pid == 0:
            os.environ.update(BTC_PRICED_SOCKET=str(place.socket), TERM="xterm-256color", LC_ALL="C.UTF-8")
            os.execv(BINARIES / "btcctl", ["btcctl", "top", *arguments])
        self.pid = pid
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.reply = reply

    def read(self, seconds):
        """What is sent in this time. Answers the question for a mode."""
        sent, end = b"", time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.descriptor], [], [], left)[0]:
                break
            try:
                sent += os.read(self.descriptor, 65536)
            except OSError:
                break
            if self.reply and b"\x1b[?2026$p" in sent:
                os.write(self.descriptor, self.reply)
                self.reply = b""
        return sent

    def end(self):
        os.write(self.descriptor, b"q")
        sent = self.read(1)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.descriptor)
        equal(os.waitstatus_to_exitcode(status), 0)
        return sent


@scenario("only cells that changed are sent, and synchronized only where the terminal has it", beside=True)
def _():
    place, running = daemon()
    figures = []
    for arguments, reply, isAsked, isWrapped in (
            ([], b"\x1b[?2026;2$y", True, True), ([], b"\x1b[?2026;0$y", True, False), ([], b"", True, False),
            (["--no-sync"], b"\x1b[?2026;2$y", False, False)):
        paper = Paper(place, *arguments, reply=reply)
        first = paper.read(3)
        equal(b"\x1b[?2026$p" in first, isAsked)
        later = paper.read(4)
        assert b"\x1b[2J" not in first + later and b"\x1b[J" not in first + later, "never a clear"
        equal((b"\x1b[?2026h" in later, later.count(b"\x1b[?2026h")), (isWrapped, later.count(b"\x1b[?2026l")))
        assert len(later) / 4 < 1500, f"{len(later) / 4} bytes a second"
        figures.append(f"{len(later) // 4} B/s")
        last = paper.end()
        assert b"\x1b[?2026l\x1b[m\x1b[?25h\x1b[?1049lBTC/USD: " in last, last
    running.stop()
    return ", ".join(figures)


main()
