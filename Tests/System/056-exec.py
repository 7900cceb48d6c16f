#!/usr/bin/env python3
"""btcctl watch --exec: a command at each change, or when a condition becomes true."""

import os

from lib.btcpriced import *


class Stage:
    """A daemon whose price the test sets, and a watch that runs a command."""

    def __init__(self, command, *arguments, **options):
        self.place = Place()
        known_price(self.place, "68000")
        self.simulator = replaying("68000")
        self.daemon = Daemon(self.place, self.simulator.urls, "--tick-interval-ms", "100", "--tick-budget-ms", "1000")
        settled(self.place)
        self.file = Path(tempfile.mkdtemp(prefix="btc-priced-exec-"), "log")
        atexit.register(shutil.rmtree, self.file.parent, ignore_errors=True)
        # A command that waits reads a line of it. The command may run before the test goes on.
        self.go = Path(f"{self.file}.go")
        os.mkfifo(self.go)
        self.process = spawn(
            [BINARIES / "btcctl", "watch", "--exec", command, *arguments, "--socket", self.place.socket], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environb, b"LOG": str(self.file).encode(), b"ODD": b"a\xffb"}, **options)

    def lines(self):
        return self.file.read_text().splitlines() if self.file.exists() else []

    def price(self, value):
        self.simulator.faults(f"* always price {value}")
        wait_until(lambda: btcctl(self.place, "current", "--raw").out == f"{value}\n", what=f"the price {value}")

    def logged(self, *lines):
        wait_until(lambda: self.lines() == list(lines), what=lambda: f"{lines}, not {self.lines()}")

    def end(self):
        self.process.terminate()
        equal(self.process.wait(timeout=5), -signal.SIGTERM)
        self.daemon.stop()
        return self.process.stdout.read(), self.process.stderr.read()


@scenario("the command runs at each change of price and freshness, and receives all values")
def _():
    stage = Stage('env | grep ^BTCCTL_ | sort | tr "\\n" "|" >>"$LOG"; echo >>"$LOG"')
    wait_until(lambda: len(stage.lines()) == 1, what="the first price")
    stage.price("68010.5")
    wait_until(lambda: len(stage.lines()) == 2, what="the second")
    time.sleep(1)
    stage.simulator.faults("* always status 500")
    wait_until(lambda: len(stage.lines()) == 3, what="stale")
    stage.price("68010.5")
    wait_until(lambda: len(stage.lines()) == 4, what="fresh")
    seen = [dict(pair.split("=", 1) for pair in line.rstrip("|").split("|")) for line in stage.lines()]
    names = ["AGE_MS", "CONDITION", "CONFIRMATION", "CURRENCY", "DIRECTION", "FAILURE", "FRESHNESS", "MARKET", "PREVIOUS_VALUE", "PRICE",
             "SOURCE", "TIME", "TIMESTAMP", "VALUE", "WARNING"]
    for variables in seen:
        equal(sorted(variables), [f"BTCCTL_{name}" for name in names])
    tell = lambda name: [variables[f"BTCCTL_{name}"] for variables in seen]
    equal(tell("VALUE"), ["68000", "68010.5", "68010.5", "68010.5"])
    equal(tell("PRICE"), ["$68,000.00", "$68,010.50", "$68,010.50", "$68,010.50"])
    equal(tell("PREVIOUS_VALUE"), ["", "68000", "68010.5", "68010.5"])
    equal(tell("FRESHNESS"), ["fresh", "fresh", "stale", "fresh"])
    equal(tell("DIRECTION"), ["flat", "up", "up", "up"])
    equal((tell("SOURCE")[0], tell("MARKET")[0], tell("CURRENCY")[0], tell("CONDITION")[0]), ("binance", "BTC/USDT", "USD", ""))
    assert "HTTP 500" in tell("FAILURE")[2] and tell("FAILURE")[3] == "", tell("FAILURE")
    equal(stage.end(), ("", ""), "it prints nothing itself")


@scenario("two commands never run at once: after several changes meanwhile it runs once, for the newest")
def _():
    stage = Stage('echo "begin $BTCCTL_VALUE after ${BTCCTL_PREVIOUS_VALUE:-none}" >>"$LOG"; read line <"$LOG.go"; echo "end $BTCCTL_VALUE" >>"$LOG"')
    wait_until(lambda: stage.lines() == ["begin 68000 after none"], what="the first")
    for value in ("68001", "68002", "68003"):
        stage.price(value)
    time.sleep(0.5)
    # It has read the last price as soon as it sleeps again.
    wait_until(lambda: Path(f"/proc/{stage.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S", what="btcctl sleeps")
    equal(stage.lines(), ["begin 68000 after none"], "one at a time")
    stage.go.write_text("\n")
    stage.logged("begin 68000 after none", "end 68000", "begin 68003 after 68000")
    stage.go.write_text("\n")
    stage.logged("begin 68000 after none", "end 68000", "begin 68003 after 68000", "end 68003")
    stage.end()


@scenario("with conditions the command runs when one becomes true")
def _():
    stage = Stage('echo "$BTCCTL_CONDITION $BTCCTL_VALUE" >>"$LOG"', "--above", "68100", "--below", "67900", "--change", "0.5%")
    time.sleep(0.5)
    equal(stage.lines(), [])
    lines = []
    for value, line in (("68100", []), ("68101", ["above 68101"]), ("68150", []), ("68090", []), ("68120", ["above 68120"]), ("68000", []),
                        ("67890", ["below 67890"]), ("67880", []), ("67950", []), ("67600", ["below 67600", "change 67600"]),
                        ("67250", ["change 67250"])):
        stage.price(value)
        time.sleep(0.25)
        lines += line
        equal(stage.lines(), lines, value)
    stage.end()


@scenario("no alarm is lost: two at one tick, and those that begin while a command runs; a long command is reported", beside=True)
def _():
    stage = Stage('echo "$BTCCTL_CONDITION $BTCCTL_VALUE" >>"$LOG"; read line <"$LOG.go"', "--above", "68100", "--below", "68050", "--change", "0.2%")
    time.sleep(0.5)
    expected = ["below 68000"]
    wait_until(lambda: stage.lines() == expected, what="the condition that holds at the start")
    # 68,000 to 68,150 is 0.22 %.
    for value in ("68150", "68000", "68150", "68000", "68150"):
        stage.price(value)
        expected += [f"{'above' if value > '68100' else 'below'} {value}", f"change {value}"]
        time.sleep(0.3)
    time.sleep(10)
    for count in range(1, len(expected) + 1):
        stage.logged(*expected[:count])
        stage.go.write_text("\n")
    out, err = stage.end()
    equal(err.splitlines(), ["btcctl: the command runs for more than 10 s; the next one waits for its end"])
    return f"{len(expected) - 1} conditions while a command ran for 12 s"


@scenario("a condition in another currency than the price is refused, at once or at the first price", beside=True)
def _():
    place, simulator = Place(), Simulator()
    daemon = Daemon(place, simulator.urls, "--currencies", "USD,EUR", sources=("coinbase", "kraken"))
    fresh(place)
    advice = "the condition is in USD, and the price in EUR: write it in EUR, or add -c USD"
    for words, environment in ((["-c", "EUR", "--below", "$65,000"], {}), (["--below", "65000usd"], {"BTCCTL_CURRENCY": "EUR"})):
        for verb in (["wait"], ["watch", "--exec", "true"]):
            done = btcctl(place, *verb, *words, environment=environment)
            assert done.status == 64 and advice in done.err, done
    # The daemon's first currency is known only from its first price.
    for verb in (["wait", "--timeout", "5"], ["watch", "--exec", "true"]):
        done = btcctl(place, *verb, "--above", "€50k")
        assert done.status == 64 and "the condition is in EUR, and the price in USD" in done.err, done
    equal(btcctl(place, "wait", "-c", "EUR", "--above", "€1,000", "--timeout", "20", "--unconfirmed").status, 0)
    done = btcctl(place, "wait", "--above", "$70k", "--below", "€50k")
    assert done.status == 64 and "write both in one currency" in done.err, done
    daemon.stop()


@scenario("a failing command is reported once; the end of the daemon is a change")
def _():
    stage = Stage('echo "$BTCCTL_FRESHNESS $BTCCTL_FAILURE" >>"$LOG"; exit 3')
    wait_until(lambda: len(stage.lines()) == 1, what="the first")
    stage.price("68001")
    stage.logged("fresh ", "fresh ")
    stage.daemon.stop()
    stage.logged("fresh ", "fresh ", "stale btc-priced can't be reached")
    stage.daemon = Daemon(stage.place, stage.simulator.urls, "--tick-interval-ms", "100", "--tick-budget-ms", "1000")
    wait_until(lambda: stage.lines()[-1] == "fresh ", what="its return")
    out, err = stage.end()
    equal(out, "")
    equal([line for line in err.splitlines() if "can't be reached" not in line], ["btcctl: the command ended with status 3"])


@scenario("the command has an empty input, none of our descriptors, and the usual signals")
def _():
    stage = Stage('{ readlink /proc/self/fd/0; { sleep 0.2; ls /proc/$$/fd; grep -E "^Sig(Ign|Blk)" /proc/$$/status | cut -f2; } | paste -sd" "; } >>"$LOG"; kill -TERM $$')
    wait_until(lambda: len(stage.lines()) == 2, what="the command")
    equal(stage.lines()[0], "/dev/null")
    *descriptors, blocked, ignored = stage.lines()[1].split()
    # The shell moves redirected descriptors to ten and above.
    equal(sorted(d for d in descriptors if int(d) < 10), ["0", "1", "2"], descriptors)
    equal(blocked, "0000000000000000", "no signal is blocked")
    # None of the signals that we handle is ignored in the command: hang-up, interrupt, termination, child, continue, window.
    equal([n for n in (1, 2, 15, 17, 18, 28) if int(ignored, 16) >> (n - 1) & 1], [])
    wait_until(lambda: stage.process.poll() is None, what="it goes on")
    time.sleep(0.2)
    _, err = stage.end()
    equal(err, "btcctl: the command ended by signal 15\n")


@scenario("the parent may ignore or block SIGCHLD, and the environment is passed on byte for byte")
def _():
    for prepare in (lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])):
        stage = Stage('printf "%s %s\\n" "$BTCCTL_VALUE" "$(printf %s "$ODD" | od -An -tx1 | tr -d " ")" >>"$LOG"', preexec_fn=prepare)
        for count, value in enumerate(("68001", "68002", "68003"), 2):
            wait_until(lambda: len(stage.lines()) == count - 1, what="the command before")
            stage.price(value)
        stage.logged(*(f"{value} 61ff62" for value in ("68000", "68001", "68002", "68003")))
        stage.end()


main()
