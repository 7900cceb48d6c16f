#!/usr/bin/env python3
"""Texts for people: for an old, paused, unconfirmed or missing price, and for errors on the command line. The expected screens are in
064-plain.golden. UPDATE_GOLDEN=1 writes them again: read the difference before you commit it."""

import os
import pty

from lib.btcpriced import *

PAGE = Path(__file__).with_suffix(".golden")
PRICE = "io.btcpriced.Price"


def screen(name, command, text):
    """Compares a screen with its section in the golden file, without the parts that change from run to run."""
    text = re.sub(r"[A-Z][a-z]{2} \d{1,2}, \d\d:\d\d", "Nov 22, 14:30", text)
    text = re.sub(r"[A-Z][a-z]{2} \d{1,2} \d{4}, \d\d:\d\d", "Nov 22 2024, 14:30", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:40001", text)
    text = re.sub(r"(\d+\.\d|\d+) s (?=old|ago)", "0.3 s ", text)
    text = re.sub(r"cooldown for \d+ s", "cooldown for 4 s", text)
    text = "".join(line.rstrip() + "\n" for line in text.splitlines())
    wide = [line for line in text.splitlines() if len(line) > 79 and not line.startswith("Failed to")]
    assert not wide, f"wider than 80 columns: {wide}"
    section = f"## {name}\n\n```\n$ {command}\n{text}```\n"
    page = PAGE.read_text()
    if os.environ.get("UPDATE_GOLDEN"):
        parts = re.split(r"(?m)^(?=## )", page)
        parts = [part for part in parts if not part.startswith(f"## {name}\n")]
        PAGE.write_text("".join(part.rstrip("\n") + "\n\n" for part in parts + [section]).rstrip("\n") + "\n")
    else:
        assert section in page, f"{PAGE.name} has otherwise:\n{section}"


class Answering:
    """A daemon that sends given messages, like an old or a hostile one."""

    def __init__(self, place, parameters, error=None):
        self.parameters, self.error = parameters, error
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(place.socket)
        self.listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._reply, args=(connection,), daemon=True).start()

    def _reply(self, connection):
        rest = b""
        while part := connection.recv(4096):
            rest += part
            while b"\0" in rest:
                call, rest = rest.split(b"\0", 1)
                more = json.loads(call).get("more", False)
                reply = {"parameters": self.parameters, **({"error": self.error} if self.error else {}),
                         **({"continues": True} if more else {})}
                connection.sendall(json.dumps(reply).encode() + b"\0")


def state(value="69691.06", timestamp=None, freshness="fresh", confirmation="single", failure=None, **changes):
    now = int(time.time() * 1000)
    return {"state": {
        "instance": "i", "tick": 3, "freshness": freshness,
        "quote": {"value": value, "currency": "USD", "timestamp": now if timestamp is None else timestamp,
                  "source": "binance", "market": "BTC/USDT"} | changes,
        "observedBoottime": None, "confirmation": confirmation, "failure": failure}}


def on_terminal(place, *arguments, environment=None):
    """The output of btcctl with standard error and standard output on a terminal of 80 columns."""
    master, slave = pty.openpty()
    process = spawn([BINARIES / "btcctl", *arguments, "--socket", place.socket], stdin=slave, stdout=slave, stderr=slave,
                    env={**os.environ, "COLUMNS": "80", **(environment or {})})
    os.close(slave)
    text = b""
    try:
        while part := os.read(master, 4096):
            text += part
    except OSError:
        pass
    process.wait(timeout=10)
    os.close(master)
    return text.decode().replace("\r\n", "\n")


@scenario("a price that only one of several exchanges gives has a class for bars and a note; one that is configured alone has neither")
def _():
    for warning, classes, note in (("only binance gives a price", ["ok", "single"], "Warning: only binance gives a price.\n"), (None, ["ok"], "")):
        place, message = Place(), state("68000.00")
        message["state"]["warning"] = warning
        Answering(place, message)
        line = btcctl(place, "current", "--bar", "waybar").json
        equal((line["text"], line["alt"], line["class"]), ("$68,000.00", "ok", classes))
        block = btcctl(place, "current", "--bar", "i3blocks").json
        equal((block["_class"], "color" in block), (" ".join(classes), False))
        done = btcctl(place, "current", "--raw")
        equal((done.status, done.out, done.err), (0, "68000\n", note))


@scenario("a price from another year has its year, and after a day its age")
def _():
    place = Place()
    two_years = int(time.time() * 1000) - 730 * 86_400_000 - 60_000
    year = time.gmtime(two_years / 1000).tm_year
    stamp = time.strftime("%b ", time.gmtime(two_years / 1000)) + str(time.gmtime(two_years / 1000).tm_mday)
    clock = time.strftime("%H:%M", time.gmtime(two_years / 1000))
    Answering(place, state(timestamp=two_years, freshness="stale", failure="binance: no response within 800 ms"))
    result = btcctl(place, "current")
    equal(result.out, f"{stamp} {year}, {clock} - $69,691.06\n")
    equal(result.err, "Failed to update value. Displaying last updated value from "
                      f"{stamp} {year}, {clock} (730 days ago)\n")
    text = on_terminal(place, "current")
    screen("Old", "btcctl current", text)
    assert text.splitlines()[1] == "Reason: binance: no response within 800 ms" or \
        "Reason: binance: no response within 800 ms\n" in text, text
    for arguments in (["convert", "0.05btc"], ["current", "--bar", "waybar"], ["current", "--bar", "i3blocks"]):
        result = btcctl(place, *arguments)
        assert f"{year}, {clock}" in result.out + result.err, (arguments, result)


@scenario("a pause is not shown as a failure, and nothing is requested meanwhile")
def _():
    place, simulator = Place(), replaying("68901.23")
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    btcctl(place, "pause")
    result = btcctl(place, "current")
    assert result.err.startswith("Paused. Displaying last updated value from "), result
    screen("Paused", "btcctl current", on_terminal(place, "current"))
    assert "'btcctl resume'" in on_terminal(place, "current")
    before = simulator.requests()
    result = btcctl(place, "current", "--refresh")
    assert result.status == 0 and result.err.startswith("Paused. Displaying last updated value from "), result
    equal(btcctl(place, "current", "--json").json["failure"], "paused")
    equal(simulator.requests(), before)
    daemon.stop()


@scenario("a pause by tick.pause-when-idle is not shown as a failure")
def _():
    place, simulator = Place(), replaying("68901.23")
    daemon = Daemon(place, simulator.urls, "--tick-pause-when-idle", "1")
    fresh(place)
    wait_until(lambda: daemon.said("the ticks stop until one does"), what="the pause")
    time.sleep(2.5)
    # The first program that wants the price after the pause ends it.
    assert "stale since" in (text := btcctl(place, "status").out) and ": paused while no program reads the price" in text, text
    text = on_terminal(place, "current")
    assert "Paused. Displaying last updated value from " in text and "the next one is on its way" in text, text
    daemon.stop()


@scenario("wait says that the ticks are paused, and not that the daemon does not answer", beside=True)
def _():
    place, simulator = Place(), replaying("68901.23")
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    btcctl(place, "pause")
    # A watch without a message for 15 s is begun again.
    result = btcctl(place, "wait", "--timeout", "17", timeout=60)
    equal((result.status, result.err), (75, "btcctl: No fresh price within 17 s: paused. 'btcctl resume' starts the updates again. An idle pause ends with "
                                          "this request.\n"))
    daemon.stop()


@scenario("an unconfirmed price is marked, and fires no alarm without the option for it")
def _():
    place = Place()
    Answering(place, state("99999999", confirmation="unconfirmed"))
    note = "Unconfirmed: no second source has confirmed this price.\n"
    equal(btcctl(place, "current").err, note)
    screen("Unconfirmed", "btcctl current", on_terminal(place, "current"))
    bar = json.loads(btcctl(place, "current", "--bar", "waybar").out)
    equal(bar["class"], ["unconfirmed"])
    assert "Unconfirmed" in bar["tooltip"], bar
    contradicted = Place()
    reply = state(confirmation="unconfirmed")
    reply["state"]["warning"] = "coinbase ($71,827.87) contradicts it"
    Answering(contradicted, reply)
    equal(btcctl(contradicted, "current").err, "Unconfirmed: coinbase ($71,827.87) contradicts it.\n")
    result = btcctl(contradicted, "wait", "--timeout", "1s")
    assert result.err.endswith("and is unconfirmed: coinbase ($71,827.87) contradicts it\n"), result
    result = btcctl(place, "wait", "--above", "70k", "--timeout", "1s")
    equal(result.status, 75)
    assert "is unconfirmed" in result.err, result
    for verb in (("current", "--raw"), ("convert", "1btc", "--raw")):
        for option, reason in ((("--confirmed",), "is unconfirmed"), (("--max-uncertainty", "1%"), "has an unknown uncertainty")):
            refused = btcctl(place, *verb, *option)
            equal((refused.status, refused.out, refused.err), (75, "", f"btcctl: No price is printed: the price in USD {reason}.\n"))
    equal(btcctl(place, "current", "--json", "--confirmed").json["error"], "unconfirmed")
    equal(btcctl(place, "current", "--bar", "plain").out, "$99,999,999.00?\n")
    equal(btcctl(place, "current", "--bar", "plain", "--confirmed").out, "-\n")
    equal(btcctl(place, "wait", "--above", "70k", "--timeout", "1s", "--unconfirmed").status, 0)
    equal(btcctl(place, "wait", "--confirmed", "--timeout", "1s").status, 75)
    told = Path(tempfile.mkdtemp(), "told")
    for extra, expected in (([], False), (["--unconfirmed"], True)):
        process = spawn([BINARIES / "btcctl", "watch", "--above", "70k", *extra, "--exec", f"echo x >> {told}",
                         "--socket", place.socket])
        if expected:
            wait_until(told.exists, what="the alarm")
        else:
            time.sleep(0.7)
            assert not told.exists(), "an unconfirmed price fired an alarm"
        process.terminate()
    watch = Watch(place)
    wait_until(lambda: note.strip() in watch.errors, what="the note beside the watch")
    watch.stop()


@scenario("a missing price has its reason, and an alarm has direction and previous value from its first firing")
def _():
    place = Place()
    daemon = Daemon(place, None, sources=("binance",))
    failure = wait_until(lambda: btcctl(place, "current", "--json").json["failure"], what="a failed tick")
    result = btcctl(place, "current")
    equal((result.status, result.out), (1, "-\n"))
    lines = result.err.splitlines()
    screen("No price", "btcctl current", result.out + result.err)
    equal(lines[0], "Failed to update value.")
    assert lines[1].startswith("Reason: binance: not reached: "), (lines, failure)
    daemon.stop()
    place, simulator = Place(), replaying("68000", "68000", "68000", "68000", "68000", "68100")
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "500")
    fresh(place)
    told = Path(tempfile.mkdtemp(), "told")
    process = spawn([BINARIES / "btcctl", "watch", "--above", "68050", "--socket", place.socket, "--exec",
                     f'echo "$BTCCTL_PREVIOUS_VALUE $BTCCTL_VALUE $BTCCTL_DIRECTION" > {told}'])
    wait_until(lambda: told.exists() and told.read_text(), what="the alarm")
    equal(told.read_text().strip(), "68000 68100 up")
    process.terminate()
    daemon.stop()


@scenario("sources fits in 80 columns, with each source's price and reason")
def _():
    place, simulator = Place(), replaying("68901.23")
    simulator.faults("bitstamp always status 403\nkraken always delay 2s")
    daemon = Daemon(place, simulator.urls, sources=("binance", "cryptocompare", "coinbase", "bitstamp", "kraken"))
    fresh(place)
    wait_until(lambda: {"R"} & {s["letter"] for s in btcctl(place, "sources", "--json").json["sources"]}, seconds=60,
               every=0.2, what="the refusal")
    text = btcctl(place, "sources").out
    assert max(map(len, text.splitlines())) < 80, text
    assert re.search(r"(?m)^\* +binance +BTC/USDT +68,901\.23 ", text), text
    assert re.search(r"(?m)^R +bitstamp .*\n    cooldown until .*: refused: HTTP 403", text), text
    assert "UTC" not in text, text
    assert re.search(r"(?m)^   +Source +Market +Price +Way +Age +p50 +p99 +Size +Limit$", text), text
    if os.environ.get("UPDATE_GOLDEN"):
        # The columns are as wide as their content, so the golden file has one run.
        screen("Sources", "btcctl sources", text)


@scenario("a source without a response yet is not shown as healthy, and short cooldowns are in seconds")
def _():
    place, simulator = Place(), replaying("68901.23")
    simulator.faults("binance always status 503")
    daemon = Daemon(place, simulator.urls, sources=("binance", "coinbase", "kraken"))
    text = wait_until(lambda: (lambda t: t if re.search(r"(?m)^z +binance", t) else None)(btcctl(place, "sources").out),
                      every=0.1, what="the cooldown")
    assert re.search(r"cooldown for \d s: not available: HTTP 503", text), text
    simulator.faults("* always dark")
    other = Place()
    second = Daemon(other, simulator.urls, sources=("kraken",))
    time.sleep(0.4)
    use = btcctl(other, "sources", "--json").json["sources"][0]["use"]
    assert use in ("untried", "failing"), use
    second.stop()
    daemon.stop()


@scenario("sources, status and the first line of watch report addresses that are not the exchanges' own")
def _():
    place, simulator = Place(), replaying("68901.23")
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    note = "Not from the exchanges' own addresses (a simulator, a mirror or a proxy): binance, coinbase."
    equal(btcctl(place, "status").out.splitlines()[0], note)
    assert "not the exchange's own address" in " ".join(btcctl(place, "sources").out.split())
    watch = Watch(place)
    wait_until(lambda: watch.errors, what="the note")
    equal(watch.errors[0], note)
    watch.stop()
    daemon.stop()


@scenario("mistyped commands get a suggestion, errors are one line, options may precede the command")
def _():
    place, simulator = Place(), replaying("68901.23")
    daemon = Daemon(place, simulator.urls)
    fresh(place)

    def error(*arguments):
        done = btcctl(None, *arguments)
        equal((done.status, done.out), (64, ""), arguments)
        equal(done.err.count("\n"), 1, done.err)
        return done.err.rstrip("\n")
    text = error("current", "--watch")
    assert "--utc" not in text and "'btcctl watch'" in text and text.endswith("See 'btcctl current --help'."), text
    equal(error("current", "--foo"), "btcctl: unknown option '--foo'. See 'btcctl current --help'.")
    for typo, meant in (("--jsno", "--json"), ("--rwa", "--raw")):
        equal(error("current", typo), f"btcctl: unknown option '{typo}'. Did you mean '{meant}'? See 'btcctl current --help'.")
    screen("A mistake", "btcctl curent", btcctl(None, "curent").err)
    result = Result(subprocess.run([BINARIES / "btcctl", "--socket", place.socket, "--raw", "current"],
                                   capture_output=True, text=True))
    equal((result.out, result.err), ("68901.23\n", ""))
    equal(btcctl(place, "current", "--sats").out.split(" - ")[1], "1,451 sat per $1\n")
    equal(btcctl(place, "current", "--sats", "--raw").out, "1451\n")
    help_text = btcctl(None, "current", "--help").out
    assert help_text.index("btcctl current --raw") < help_text.index("Usage:"), help_text
    daemon.stop()


@scenario("amounts and durations are read as people write them")
def _():
    place, simulator = Place(), replaying("70000")
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    for duration in ("30s", "5m", "5min", "1h30m", "1d", "30"):
        equal(btcctl(place, "current", "--max-age", duration).status, 0, duration)
    result = btcctl(place, "current", "--max-age", "-5m")
    equal((result.status, result.err), (64, "btcctl: '-5m' is not valid for --max-age: it is below zero. See 'btcctl current --help'.\n"))
    # Without a unit, an amount is in the daemon's first currency.
    euros = Place()
    other = Daemon(euros, replaying("60000").urls, "--currencies", "EUR", sources=("coinbase", "kraken"))
    price = fresh(euros)["quote"]["value"]
    equal(btcctl(euros, "convert", "1btc", "--raw").out.strip(), price)
    for arguments, expected in (([], "€1.00 = 0.0000"), (["60k"], "€60,000.00 = 1.")):
        assert btcctl(euros, "convert", *arguments).out.startswith(expected), arguments
    other.stop()
    equal(btcctl(place, "wait", "--above", "$69,000", "--timeout", "5s", "--unconfirmed").status, 0)
    daemon.stop()


@scenario("a daemon's texts are printed without control characters, and a price of zero is malformed")
def _():
    bad = "\x1b]0;owned\x07\u202etfel\u0085\u009b31m\n"
    place = Place()
    Answering(place, state(freshness="stale", failure=bad, confirmation="single", source=bad, market=bad))
    for arguments in (["current"], ["current", "--json"], ["current", "--bar", "waybar"],
                      ["current", "--format", "{source} {market} {failure}"], ["convert", "1btc"]):
        result = btcctl(place, *arguments)
        text = result.out + result.err + on_terminal(place, *arguments)
        for scalar in ("\x1b", "\x07", "\u202e", "\u0085", "\u009b"):
            assert scalar not in text, (arguments, text)
    assert "\\u{1b}]0;owned" in btcctl(place, "current", "--format", "{source}").out
    for value in ("0", "-1", "0.00"):
        place = Place()
        Answering(place, state(value))
        result = btcctl(place, "current")
        equal((result.status, result.out), (69, ""), value)
    refusing = Place()
    Answering(refusing, {"reason": bad}, error=f"{PRICE}.FetchFailed")
    result = btcctl(refusing, "current", "--no-cache")
    assert "\x1b" not in result.err and "owned" in result.err, result


main()
