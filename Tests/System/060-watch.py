#!/usr/bin/env python3
"""btcctl watch: on pipes, on a terminal, over restarts and stops."""

import fcntl
import os
import pty
import struct
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403


class Terminal:
    """btcctl watch on a pseudo-terminal of 24 lines."""

    def __init__(self, place, columns=80, **environment):
        self.screen = b""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = spawn(
            [BINARIES / "btcctl", "watch", "--socket", place.socket], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, env={**os.environ, "TERM": "xterm", **environment})
        os.close(slave)
        threading.Thread(target=self._read, args=(master,), daemon=True).start()

    def _read(self, master):
        while True:
            try:
                self.screen += os.read(master, 65536)
            except OSError:
                return

    def lines(self):
        """What a person sees: the terminal's own rules for the few sequences that are used."""
        rows, row = [""], 0
        text = self.screen.decode().replace("\r\n", "\n")
        index = 0
        while index < len(text):
            rest = text[index:]
            if rest.startswith("\x1b["):
                end = next(i for i, c in enumerate(rest[2:], 2) if c.isalpha())
                if rest[end] == "A":
                    row -= int(rest[2:end])
                elif rest[end] == "J":
                    rows = rows[:row] + [""]
                index += end + 1
                continue
            if rest[0] == "\n":
                row += 1
                if row == len(rows):
                    rows.append("")
            elif rest[0] != "\r":
                rows[row] += rest[0]
            index += 1
        return [line for line in rows if line]


@scenario("watch survives a restart of the daemon")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls)
    text, objects = Watch(place), Watch(place, "--json")
    wait_until(lambda: len(text.lines) >= 2 and len(objects.lines) >= 2, what="lines")
    instances = {objects.states[-1]["instance"]}
    for end in (lambda: daemon.stop(), lambda: daemon.kill()):
        end()
        wait_until(
            lambda: sum("can't be reached" in line for line in text.errors) == len(instances),
            what="the word that the daemon is gone")
        count = len(text.lines), len(objects.lines)
        daemon = Daemon(place, simulator.urls)
        wait_until(lambda: len(text.lines) >= count[0] + 2 and len(objects.lines) >= count[1] + 3, what="new lines")
        instances.add(objects.states[-1]["instance"])
    equal(len(instances), 3, "instances")
    equal(len([line for line in text.errors if "can't be reached" in line]), 2, text.errors)
    equal([line["error"] for line in objects.objects if "error" in line], ["unreachable"] * 2)
    equal(objects.errors, [])
    equal(text.process.poll(), None)
    daemon.stop()


@scenario("a stopped and continued watch shows the newest state at once")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "100", "--tick-budget-ms", "100")
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 3, what="lines")
    watch.process.send_signal(signal.SIGSTOP)
    time.sleep(2)
    before = len(watch.lines)
    newest = btcctl(place, "current", "--json").json["tick"]
    watch.process.send_signal(signal.SIGCONT)
    wait_until(lambda: len(watch.lines) > before + 1, what="a line")
    following = [state["tick"] for state in watch.states[before:]]
    daemon.stop()
    # One that it was just handling when it was stopped may come out first.
    stragglers = [tick for tick in following if tick < newest]
    assert len(stragglers) <= 1, f"newest {newest}, shown {following}"
    return f"newest {newest}, shown {following[:3]}"


@scenario("a frozen daemon is told as such, and its return too")
def _():
    place, simulator, daemon = running()
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 2, what="lines")
    daemon.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: watch.objects[-1].get("error") == "unreachable", seconds=20, what="the word that it is silent")
    daemon.process.send_signal(signal.SIGCONT)
    wait_until(lambda: watch.objects[-1].get("freshness") == "fresh", what="its return")
    daemon.stop()


@scenario("with a tick slower than the client's patience nothing is said twice, and nothing is wrong")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "7000")
    fresh(place)
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 2, seconds=20, what="two ticks")
    ticks = [line.get("tick") for line in watch.objects]
    equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "a line a tick")
    daemon.stop()


@scenario("a watch stays with the daemon it began with")
def _():
    place, simulator, daemon = running()
    home = tempfile.mkdtemp(prefix="btc-priced-home-")
    atexit.register(shutil.rmtree, home, True)
    os.mkdir(f"{home}/btc-priced")
    os.symlink(place.socket, f"{home}/btc-priced/{SOCKET_NAME}")
    watch = spawn([BINARIES / "btcctl", "watch", "--json"], stdout=subprocess.PIPE, text=True,
                  env={**os.environ, "XDG_RUNTIME_DIR": home})
    watch.stdout.readline()
    daemon.stop()
    # Only the one path is named; before it had begun, the system's was tried too.
    complaint = ""
    while "error" not in complaint:
        complaint = watch.stdout.readline()
    assert home in complaint and "/run/btc-priced" not in complaint, complaint


@scenario("continued on a terminal, it draws anew and takes nothing back that others wrote")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    # So slow a tick that the state is the same when it comes back.
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "3600000")
    fresh(place)
    terminal = Terminal(place)
    wait_until(lambda: b" - $" in terminal.screen, what="the first drawing")
    terminal.process.send_signal(signal.SIGSTOP)
    terminal.process.send_signal(signal.SIGCONT)
    wait_until(lambda: terminal.screen.count(b" - $") == 2, what="the second drawing")
    assert b"A\x1b[J" not in terminal.screen, terminal.screen
    daemon.stop()


@scenario("on a terminal one line is redrawn, and the banner comes and goes")
def _():
    place, simulator, daemon = running()
    terminal = Terminal(place)
    wait_until(lambda: terminal.screen.count(b"\x1b[J") >= 3, what="three drawings")
    equal(len(terminal.lines()), 1, terminal.lines())
    assert " - $" in terminal.lines()[0], terminal.lines()
    simulator.faults("* always status 500")
    wait_until(lambda: len(terminal.lines()) == 2, what="the banner")
    assert terminal.lines()[1].startswith("Failed to update value. Displaying last updated value from"), terminal.lines()
    simulator.faults("")
    wait_until(lambda: len(terminal.lines()) == 1, what="the banner's end")
    daemon.stop()
    wait_until(lambda: len(terminal.lines()) == 3, what=lambda: f"the word that the daemon is gone; {terminal.lines()}")
    assert terminal.lines()[1].startswith("Failed to update value. Displaying last updated value from"), terminal.lines()
    equal(terminal.lines()[2], "btc-priced can't be reached; waiting for it.")
    daemon = Daemon(place, simulator.urls)
    wait_until(lambda: len(terminal.lines()) == 1, what="its return")
    terminal.process.send_signal(signal.SIGINT)
    equal(terminal.process.wait(timeout=5), -signal.SIGINT, "the end by Ctrl-C")
    wait_until(lambda: terminal.screen.endswith(b"\r\n"), what="a line of its own for the prompt")
    daemon.stop()


@scenario("a narrow terminal cuts lines, a dumb one gets plain lines")
def _():
    place, simulator, daemon = running()
    narrow, dumb = Terminal(place, columns=20), Terminal(place, TERM="dumb")
    wait_until(lambda: narrow.screen.count(b"\x1b[J") >= 2 and dumb.screen.count(b"\n") >= 3, what="lines")
    assert all(len(line) < 20 for line in narrow.lines()), narrow.lines()
    assert b"\x1b" not in dumb.screen, dumb.screen
    daemon.stop()


@scenario("a reader that is gone ends watch quietly")
def _():
    place, simulator, daemon = running()
    watch = spawn([BINARIES / "btcctl", "watch", "--socket", place.socket], stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True)
    watch.stdout.readline()
    watch.stdout.close()
    equal(watch.wait(timeout=10), -signal.SIGPIPE)
    equal(watch.stderr.read(), "")
    daemon.stop()


main()
