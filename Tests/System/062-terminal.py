#!/usr/bin/env python3
"""btcctl watch in a real terminal: tmux. The expected screens are in 062-terminal.golden.

UPDATE_GOLDEN=1 writes them again: read the difference before you commit it."""

from lib.btcpriced import *
from lib.terminal import Terminal

golden = Golden(__file__)
# Rises and falls that are too small to be doubted.
PRICES = ["68000", "68010.5", "68020", "68005", "68005", "68040", "67990.25", "68000"]


def normal(screen):
    """The screen without the parts that differ from run to run. Replaced times and ages are short, so lines break as before. In a sparkline
    the number of ticks of each price is not known."""
    screen = re.sub(r"\b[A-Z][a-z]{2} {1,2}\d{1,2}, \d\d:\d\d", "Aug 25, 14:30", screen)
    screen = re.sub(r"\b\d+(\.\d)? s old", "<age> old", screen)
    screen = re.sub(r"\d+ ticks in \d+(\.\d)? s", "<n> ticks in <n> s", screen)
    return re.sub(r"([▁▂▃▄▅▆▇█])\1+", r"\1", screen)


class Stage:
    """A daemon whose prices are set while it ticks."""

    def __init__(self):
        self.place = Place()
        self.left = list(PRICES)
        known_price(self.place, self.left[0])
        self.simulator = replaying(self.left.pop(0))
        self.start()

    def start(self):
        self.daemon = Daemon(
            self.place, self.simulator.urls, "--tick-interval-ms", "200", "--tick-budget-ms", "1000")
        settled(self.place)

    def next(self):
        """Makes the exchange report the next price."""
        value = self.left.pop(0)
        self.simulator.faults(f"* always price {value}")
        return value

    def fail(self):
        self.simulator.faults("* always status 500")


def text(value):
    return f"${Decimal(value):,.2f}"


def played(terminal, stage, count):
    """Plays `count` prices, and waits on the terminal for each before the next."""
    for _ in range(count):
        value = stage.next()
        terminal.shows(text(value))
    return value


def watching(line="btcctl watch", **environment):
    stage = Stage()
    terminal = Terminal(BTC_PRICED_SOCKET=stage.place.socket, **environment)
    terminal.run(line)
    terminal.shows(text(PRICES[0]))
    return stage, terminal


@scenario("price, direction, source, age and sparkline are redrawn in place, in colour")
def _():
    stage, terminal = watching()
    seen = ""
    for _ in range(5):
        played(terminal, stage, 1)
        seen += normal(terminal.screen(colors=True)) + "--\n"
    golden.check("a watch, price by price", seen)
    terminal.type("C-c")
    golden.check("after Ctrl-C", normal(terminal.shows("\n$\n")))
    terminal.run("echo $?")
    terminal.shows("130")
    stage.daemon.stop()


@scenario("the key q ends a watch, and leaves the terminal as it was")
def _():
    stage, terminal = watching()
    terminal.type("x", "q")
    terminal.shows("\n$\n")
    terminal.run("echo status $? && stty -a | tr ' ' '\\n' | grep -E '^-?(icanon|echo)$'")
    terminal.shows("\nstatus 0\nicanon\necho\n")
    stage.daemon.stop()


@scenario("the banner is shown while the price is stale")
def _():
    stage, terminal = watching()
    played(terminal, stage, 2)
    stage.fail()
    terminal.shows("Failed to update value. Displaying last updated value from")
    golden.check("stale", normal(terminal.screen(colors=True)))
    played(terminal, stage, 1)
    golden.check("fresh again", normal(terminal.lacks("Failed to update")))
    stage.daemon.stop()


@scenario("the view fits in twenty columns, and a resize leaves nothing behind")
def _():
    stage, terminal = watching()
    played(terminal, stage, 3)
    stage.fail()
    terminal.shows("Failed to update value. Displaying")
    terminal.resize(20)
    terminal.shows("value. Displaying\n")
    golden.check("at twenty columns, stale", normal(terminal.screen()))
    played(terminal, stage, 1)
    golden.check("at twenty columns", normal(terminal.lacks("Failed")))
    terminal.resize(80)
    golden.check("at eighty again", normal(terminal.shows("binance BTC/USDT, ")))
    for columns in (30, 60, 25, 80, 10, 80):
        terminal.resize(columns)
        time.sleep(0.05)
    # A busy machine may be between two pictures.
    wait_until(lambda: terminal.screen().count("binance BTC/USDT") == 1, what=lambda: f"one picture in {terminal.screen()}")
    stage.daemon.stop()


@scenario("Ctrl-Z stops it, and after fg it shows the newest price at once")
def _():
    stage, terminal = watching()
    played(terminal, stage, 2)
    terminal.type("C-z")
    terminal.shows("Stopped")
    for _ in range(3):
        value = stage.next()
        wait_until(lambda: btcctl(stage.place, "current", "--raw").out == f"{Decimal(value).normalize():f}\n", what=f"the price {value}")
    terminal.run("clear")
    # What is typed before the prompt is echoed twice.
    wait_until(lambda: terminal.screen().strip() == "$", what=lambda: f"the prompt in {terminal.screen()}")
    terminal.run("fg")
    screen = terminal.shows(text(value))
    golden.check("after fg", normal(screen))
    terminal.type("C-c")
    terminal.shows("\n$\n")
    stage.daemon.stop()


@scenario("the end of the daemon and its return are shown, and the age goes on")
def _():
    stage, terminal = watching()
    value = played(terminal, stage, 2)
    stage.daemon.stop()
    screen = terminal.shows("btc-priced can't be reached; waiting for it.")
    golden.check("the daemon is gone", normal(screen))
    assert text(value) in screen
    ages = lambda: float(re.search(r"([\d.]+) s old", terminal.screen())[1])
    first = ages()
    wait_until(lambda: ages() > first + 1, every=0.1, what="an older price")
    stage.next()
    stage.start()
    golden.check("the daemon is back", normal(terminal.lacks("waiting for it")))
    terminal.type("C-c")
    terminal.shows("\n$\n")
    stage.daemon.stop()


@scenario("on the first row of a screen and on a full screen, it leaves nothing in the terminal's history")
def _():
    stage = Stage()
    for rows in (12, 3, 1):
        terminal = Terminal(f"sh -c '. {{rc}}; exec btcctl watch'", rows=rows, ready="68", BTC_PRICED_SOCKET=stage.place.socket)
        time.sleep(1)
        equal(terminal.tmux("display", "-p", "#{history_size}"), "0\n", rows)
        terminal.close()
    stage.daemon.stop()


@scenario("colours can be turned off, and a dumb terminal gets plain lines")
def _():
    seen = ""
    for name, line, environment in (
            ("NO_COLOR", "btcctl watch", {"NO_COLOR": "1"}), ("--color always", "btcctl watch --color always", {"NO_COLOR": "1"}),
            ("--color never", "btcctl watch --color never", {}), ("a C locale", "btcctl watch", {"LC_ALL": "C"})):
        stage, terminal = watching(line, **environment)
        played(terminal, stage, 2)
        seen += f"-- {name}\n{normal(terminal.screen(colors=True))}"
        stage.daemon.stop()
        terminal.close()
    golden.check("colours", seen)
    stage, terminal = watching(TERM="dumb")
    played(terminal, stage, 1)
    lines = terminal.screen(colors=True).splitlines()[1:]
    # The first line announces prices from a simulator, and is wider than the screen.
    assert lines[0].startswith("Not from the exchanges' own addresses"), lines
    lines = lines[2:]
    assert len(lines) > 1 and all(re.fullmatch(r"[A-Z][a-z]{2} \d+, \d\d:\d\d:\d\d - \$68,0[01]0\.[05]0", line) for line in lines), lines
    stage.daemon.stop()


@scenario("status and sources are redrawn in place too")
def _():
    stage = Stage()
    for verb, word in (("status", "Daemon"), ("sources", "binance")):
        terminal = Terminal(columns=60, rows=40, BTC_PRICED_SOCKET=stage.place.socket)
        terminal.run(f"btcctl {verb} --watch")
        terminal.shows(word)
        time.sleep(2.2)
        equal(terminal.screen().count(word), 1, terminal.screen())
        terminal.resize(40)
        time.sleep(1.2)
        equal(terminal.screen().count(word), 1, terminal.screen())
        terminal.close()
    stage.daemon.stop()


@scenario("no screen goes blank when the daemon ends: the last picture stays, dimmed, and recovers by itself", beside=True)
def _():
    stage = Stage()
    terminals = []
    for verb, word in (("status", "Daemon"), ("sources", "binance"), ("currencies", "USD"), ("chart", "BTC/USD")):
        terminal = Terminal(columns=80, rows=40, BTC_PRICED_SOCKET=stage.place.socket)
        terminal.run(f"btcctl {verb} --watch{' --span 1h' if verb == 'chart' else ''}")
        terminal.shows(word)
        terminals.append((terminal, word))
    stage.daemon.kill()
    for terminal, word in terminals:
        terminal.shows("btc-priced has not responded for ", "waiting for it.", word)
        assert "\x1b[2m" in terminal.screen(colors=True), terminal.screen(colors=True)
    stage.start()
    for terminal, word in terminals:
        terminal.lacks("has not responded")
        terminal.shows(word)
        # A narrow terminal cuts with an ellipsis, or wraps.
        terminal.resize(40)
    time.sleep(1.2)
    for terminal, word in terminals:
        lines = terminal.screen().splitlines()
        assert all(len(line) <= 40 for line in lines) and any(word in line for line in lines), lines
        terminal.close()
    stage.daemon.stop()


@scenario("btcctl alone shows the price and the next commands; watch --live reports that no stream is open", beside=True)
def _():
    stage = Stage()
    terminal = Terminal(columns=100, rows=30, BTC_PRICED_SOCKET=stage.place.socket)
    terminal.run("btcctl")
    terminal.shows("- $68,000.00", "binance BTC/USDT, ", "Go on with 'btcctl watch', 'btcctl chart' or 'btcctl sources'")
    terminal.run("btcctl | head -1")
    terminal.shows("Shows the price of a bitcoin")
    terminal.run("clear; btcctl watch --live")
    terminal.shows("No stream is open: this shows the ticks.")
    terminal.close()
    stage.daemon.stop()


main()
