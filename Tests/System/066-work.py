#!/usr/bin/env python3
"""Where people work: monitors, journals of accountants and agents, on the built btcctl. The programs themselves run in programs-deep."""

import csv
import select
import sys

from lib.btcpriced import *

SOURCES = ("binance", "coinbase", "kraken")


class Agent:
    """`btcctl mcp` and a client that writes lines to it, with the environment that the clients of the protocol leave."""

    def __init__(self, place, *arguments, **variables):
        environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ} | variables
        self.process = spawn(
            [BINARIES / "btcctl", "mcp", "--socket", place.socket, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.last = 0

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 20)
        assert ready, "no reply"
        return json.loads(self.process.stdout.readline())

    def request(self, method, parameters=None):
        self.last += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, **({"params": parameters} if parameters is not None else {})}))
        reply = self.receive()
        equal(reply["id"], self.last)
        return reply.get("result") or reply["error"]

    def call(self, tool, **arguments):
        """The structured content, checked against the schema of the tool; or the text of the error."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            return result["content"][0]["text"]
        content = result["structuredContent"]
        equal(json.loads(result["content"][0]["text"]), content)
        schema = next(each for each in self.tools if each["name"] == tool)["outputSchema"]
        kinds = {"string": str, "number": (int, float), "boolean": bool, "object": dict, "array": list, "null": type(None)}
        for name, field in schema["properties"].items():
            assert name in content, (tool, name, content)
            allowed = [field["type"]] if isinstance(field["type"], str) else field["type"]
            assert any(isinstance(content[name], kinds[kind]) for kind in allowed), (tool, name, content[name])
        return content

    def begin(self):
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
        self.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        self.tools = self.request("tools/list")["tools"]
        return self

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(timeout=10), 0)


def house(seed):
    """A daemon with three sources and a price that is not unconfirmed."""
    simulator, place = Simulator("--seed", str(seed)), Place()
    daemon = Daemon(place, simulator.urls, sources=SOURCES)
    settled(place)
    return simulator, place, daemon


@scenario("an agent's five tools: a current price, an old one, an unconfirmed one, none, and a daemon that goes and comes back", beside=True)
def _():
    simulator, place, daemon = house(11)
    agent, other = Agent(place).begin(), Agent(place).begin()
    equal([tool["name"] for tool in agent.tools], ["price", "price_at", "history", "convert", "status"])
    price = agent.call("price")
    equal((price["current"], price["currency"], price["derived"]), (True, "USD", False))
    assert price["statement"].endswith(f" - ${Decimal(price['price']).quantize(Decimal('0.01')):,}."), price
    assert price["age_seconds"] < 5 and price["time"].endswith("Z"), price
    equal(other.call("convert", amount="0.5btc")["sat"], "50000000")
    bought = agent.call("convert", amount="250usd", max_age_seconds=60)
    assert abs(Decimal(bought["btc"]) * Decimal(bought["price"]["price"]) - 250) < Decimal("0.001"), bought
    assert agent.call("status")["status"]["ticks"]["done"] > 0
    wait_until(lambda: isinstance(agent.call("history", since="1h", step="1m"), dict), seconds=90, what="a minute")
    minute = agent.call("history", since="1h", step="1m")["candles"][-1]
    equal(set(minute), {"time", "open", "high", "low", "close", "origin", "notes"})
    then = agent.call("price_at", time=minute["time"])
    assert Decimal(then["low"]) <= Decimal(then["price"]) <= Decimal(then["high"]), then
    # What is known of a longer time is said, and what an exchange's minute is.
    year = agent.call("history", since="900d", step="1d")
    assert re.fullmatch(r"Only (\d+|parts of the) .*900 days of this time are known\.", year["note"] or ""), year["note"]
    # All tools have the same default.
    local = Agent(place, BTCCTL_CURRENCY="XXX").begin()
    for tool, arguments in (("price", {}), ("price_at", {"time": "1h"}), ("history", {})):
        assert "XXX" in local.call(tool, **arguments), tool
    local.end()
    for tool, arguments, words in (
            ("price", {"currency": "XXX"}, "The price is not kept in"), ("price", {"maxage": 5}, "'maxage' is no argument"),
            ("price_at", {"time": "tomorrow"}, "is not a time"), ("price_at", {"time": "2999-01-01"}, "is in the future"),
            ("history", {"since": "30d", "step": "1m"}, "more than 1000 candles"), ("history", {"step": "2h"}, "is no step"),
            ("convert", {"amount": "a lot"}, "is not an amount"), ("price", {"max_uncertainty_percent": 0.0001}, "uncertainty"), ("price", {"max_age_seconds": -1}, "'max_age_seconds' is not from 0"),
            ("price", {"max_uncertainty_percent": "1"}, "'max_uncertainty_percent' is not a number")):
        text = agent.call(tool, **arguments)
        assert isinstance(text, str) and words in text, (tool, arguments, text)
    equal(agent.call("price", currency=None, max_age_seconds=1e3)["current"], True)
    # A line that is too long, and the next request.
    agent.send("x" * (8 << 20))
    equal(agent.receive()["error"]["code"], -32700)
    # What is not current says so.
    simulator.faults("* always status 500")
    old = wait_until(lambda: not (p := agent.call("price"))["current"] and p, what="an old price")
    assert old["statement"].startswith("Failed to update value. Displaying last updated value from ") and "Reason: " in old["statement"], old
    worth = agent.call("convert", amount="0.5btc")
    assert worth["statement"].startswith("0.5 BTC = ") and "Displaying last updated value" in worth["statement"], worth
    time.sleep(1)
    assert "older than allowed" in agent.call("price", max_age_seconds=0.5)
    simulator.faults("")
    daemon.stop()
    assert "btc-priced can't be reached" in agent.call("price")
    daemon = Daemon(place, simulator.urls, sources=SOURCES)
    fresh(place)
    equal(agent.call("price")["current"], True)
    daemon.stop()
    # One source, whose first price nobody confirms.
    place = Place()
    daemon = Daemon(place, simulator.urls, sources=("binance",))
    fresh(place)
    alone = Agent(place).begin()
    unconfirmed = alone.call("price")
    equal(unconfirmed["confirmation"], "unconfirmed")
    assert "Unconfirmed" in unconfirmed["statement"], unconfirmed
    assert "is unconfirmed" in alone.call("price", confirmed=True)
    for each in (agent, other, alone):
        each.end()
    stop(daemon, simulator)
    return old["statement"]


@scenario("the client in Python: get, what is refused, and a watch over a restart of the daemon", beside=True)
def _():
    sys.path.insert(0, str(ROOT / "docs/examples"))
    import btc_priced
    simulator, place, daemon = house(13)
    price = btc_priced.get(path=place.socket)
    assert price.fresh and price.age < 5 and price.currency == "USD" and abs(price.time.timestamp() - time.time()) < 5, price
    wait_until(lambda: btc_priced.get(path=place.socket).confirmation == "confirmed", what="a confirmed price")
    btc_priced.get(max_age=60, confirmed=True, path=place.socket)

    def refused(**options):
        try:
            return f"accepted {btc_priced.get(**{'path': place.socket, **options})}"
        except btc_priced.PriceError as error:
            return error.kind
    equal(refused(currency="XXX"), "unknownCurrency")
    equal(refused(path="/nowhere"), "unreachable")
    environment = {**os.environ, "BTC_PRICED_SOCKET": place.socket}
    script = [sys.executable, ROOT / "docs/examples/btc_priced.py"]
    once = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=20)
    assert once.returncode == 0 and re.fullmatch(r"[\d.]+ USD \d+\.\d s old fresh confirmed\n", once.stdout), once
    watch = spawn([*script, "--watch"], env=environment, stdout=subprocess.PIPE, text=True)
    lines = []
    threading.Thread(target=lambda: lines.extend(watch.stdout), daemon=True).start()

    def seen(words, since):
        return wait_until(lambda: next((line for line in lines[since:] if words in line), None), what=lambda: f"{words}: {lines}")
    seen(" fresh ", 0)
    simulator.faults("* always status 500")
    wait_until(lambda: refused(max_age=0.5) == "tooOld", what="a price that is too old")
    seen("NOT CURRENT: binance: not available: HTTP 500", 0)
    simulator.faults("")
    since = len(lines)
    seen(" fresh ", since)
    since = len(lines)
    daemon.stop()
    gone = seen("NOT CURRENT: btc-priced", since)
    since = len(lines)
    daemon = Daemon(place, simulator.urls, sources=SOURCES)
    seen(" fresh ", since)
    watch.terminate()
    stop(daemon, simulator)
    return gone.strip()


@scenario("check: one line, and the four states of a monitor", beside=True)
def _():
    simulator, place, daemon = house(12)

    def check(*arguments):
        done = btcctl(place, "check", *arguments)
        equal((done.err, done.out.count("\n")), ("", 1))
        return done.status, done.out
    status, line = check()
    equal(status, 0)
    shape = r"BTC OK: \$[\d,.]+, \d+ s old, binance, \w+ \| price=[\d.]+ age=[\d.]+;60;300;0 (plusMinus=[\d.]+ )?sources=\d+\n"
    assert re.fullmatch(shape, line), line
    wait_until(lambda: check("--confirmed", "--critical-sources", "2")[0] == 0, what=lambda: check("--confirmed", "--critical-sources", "2"))
    for arguments, expected, words in (
            (["--warning-price", ":1000"], 1, "out of its range"), (["--critical-price", "1:1000"], 2, "out of its range"),
            (["--warning-sources", "9"], 1, "source"), (["--critical-sources", "9", "--warning-price", ":1"], 2, "source"),
            (["--max-uncertainty", "0.0001%"], 1, "uncertainty"),
            (["-c", "XXX"], 3, "not kept in"), (["--warning-price", "5:1"], 3, "is a range"), (["--warning", "x"], 3, "BTC UNKNOWN"), (["word"], 3, "UNKNOWN")):
        status, line = check(*arguments)
        assert status == expected and words in line and line.startswith("BTC "), (arguments, status, line)
    simulator.faults("* always status 500")
    wait_until(lambda: check("--warning", "1s", "--critical", "5m")[0] == 1, what="a warning")
    wait_until(lambda: check("--critical", "3s")[0] == 2, what="a critical age")
    line = check("--critical", "3s")[1]
    assert "the price is too old" in line and "not current" in line, line
    daemon.stop()
    status, line = check()
    assert status == 2 and "btc-priced can't be reached" in line, line
    simulator.stop()
    return line.strip()


@scenario("a journal's prices are the last ones of the local days, in order, and of the same digits", beside=True)
def _():
    simulator = replaying("68901.225")
    place = Place()
    daemon = Daemon(place, simulator.urls, backfill=True)
    zone = {"TZ": "America/New_York"}
    days = lambda: btcctl(place, "history", "--ledger", "hledger", environment=zone).out.splitlines()
    wait_until(lambda: len(days()) > 20, seconds=60, what=lambda: f"the days: {days()}")
    lines = days()
    equal(lines[:2], ["; btc-priced: BTC in USD, last price of each day, local time", "decimal-mark ."])
    table = csv.DictReader(btcctl(place, "history", "--since", "30d", "--step", "1d", "--day-zone", "local", "--csv", environment=zone).out.splitlines())
    closes = {row["time"][:10]: Decimal(row["close"]).quantize(Decimal("0.01")) for row in table}
    for line in lines[2:]:
        day, price = re.fullmatch(r"P (\d{4}-\d\d-\d\d) 23:59:59 BTC (\d+\.\d\d) USD(?:  ; .*)?", line).groups()
        equal(Decimal(price), closes[day])
    equal(lines[2:], sorted(set(lines[2:])))
    today = subprocess.run(["date", "+%F"], env={**os.environ, **zone}, capture_output=True, text=True).stdout.strip()
    assert today not in "".join(lines), "the day is not over"
    beans = btcctl(place, "history", "--ledger", "beancount", "--sats", environment=zone).out.splitlines()
    day, price = re.fullmatch(r"(\d{4}-\d\d-\d\d) price SAT (0\.\d{10}) USD(?:  ; .*)?", beans[-1]).groups()
    equal(Decimal(price) * 10**8, closes[day])
    hours = wait_until(
        lambda: (h := btcctl(place, "history", "--ledger", "hledger", "--step", "1h", "--since", "5h", "--commodity", "$").out.splitlines())[2:] and h,
        seconds=60, what="the hours")
    assert re.search(r"P .* \d\d:59:59 BTC \$\d+\.\d\d(  ; .*)?$", hours[-1]), hours
    done = btcctl(place, "history", "--ledger", "hledger", "--since", "today", environment={"TZ": "UTC"})
    equal((done.status, done.out, done.err), (1, "", "btcctl: No day of this time is over yet.\n"))
    # So many that are over.
    prices = lambda *words: [line for line in btcctl(place, "history", "--ledger", "hledger", *words, environment=zone).out.splitlines() if line.startswith("P ")]
    equal(prices("-n", "1"), days()[-1:])
    equal(prices("-n", "3"), days()[-3:])
    for wrong in (["--utc"], ["--csv"], ["--day-zone", "utc"]):
        equal(btcctl(place, "history", "--ledger", "hledger", *wrong).status, 64)
    equal(btcctl(place, "history", "--ledger", "beancount", "--step", "1h").status, 64)
    stop(daemon, simulator)
    return f"{len(lines) - 2} days"


PAYMENTS = '''\ufeffid;Created (UTC);Amount;note\r
1;{known};0,5 btc;"caf\u00e9; ""x\ny"""\r
2;{other};-1500 sat;\r
3;yesterday;1 btc;\r
\r
4;{known};;\r
5;2999-01-01T00:00:00Z;1 btc;\r
6;2012-01-01T00:00:00Z;1 btc;\r
7;{known};"1 btc"x;\r
8;{known};1.500 btc;\r
9;{known}'''


@scenario("a file of payments: the price of each moment beside it, every byte of the file, and each line without a price by its number", beside=True)
def _():
    simulator, place, daemon = house(17)
    known = wait_until(
        lambda: (second := int(time.time()) - 2) and btcctl(place, "at", f"@{second}", "--json").json.get("at", {}).get("step") == "second" and second,
        what="a second")
    written = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(known))
    text = PAYMENTS.format(known=written, other=f"{known}123")
    at = lambda *arguments, text=text: subprocess.run(
        [BINARIES / "btcctl", "at", "--socket", place.socket, "--csv", "-", *arguments], input=text.encode(), capture_output=True, timeout=60,
        env={**os.environ, "TZ": "America/New_York"})
    done = at("--decimal", ",")
    said = done.stderr.decode().splitlines()
    equal(said, ["Times in UTC are read from column 2 (Created (UTC)), amounts from column 3 (Amount).", "Empty lines: 6."] + [f"btcctl: line {line}." for line in (
        "5: 'yesterday' is not a date and time such as 2026-08-25T14:30:05Z", "8: '2999-01-01T00:00:00Z' is in the future",
        "9: no price is recorded for that time", "10: a quotation mark is missing, or one too many", "11: '1.500 btc' is not an amount with a decimal comma")]
        + ["btcctl: 5 of 9 rows have no price."])
    equal(done.returncode, 1)
    rows = list(csv.reader(done.stdout.decode("utf-8-sig").splitlines(keepends=True), delimiter=";"))
    equal(rows[0], ["id", "Created (UTC)", "Amount", "note", "price", "value", "currency", "step", "low", "high", "origin", "doubt"])
    exact = btcctl(place, "at", written + "Z", "0.5btc", "--json").json["at"]
    comma = lambda number: number.replace(".", ",")
    equal(rows[1][3:10], ['caf\u00e9; "x\ny"', comma(exact["price"]), comma(exact["usd"]), "USD", exact["step"], "", ""])
    equal(Decimal(rows[2][5].replace(",", ".")), -Decimal(exact["price"]) * 1500 / 10**8)
    equal([row[4:] == [""] * 8 for row in rows if len(row) == 12], [False, False, False, True, False, True, True, True, False])
    equal(rows[-1][:6], ["9", written, "", "", comma(exact["price"]), ""])
    # Without what was added, it is the file.
    lines, kept = done.stdout.split(b"\r\n"), text.encode().split(b"\r\n")
    assert len(lines) == len(kept) and all(line.startswith(old) for line, old in zip(lines, kept)), done.stdout
    assert at("--decimal", ",", "--quiet").stderr.decode().startswith("btcctl: line 5"), "errors are printed"
    # A header that has one of the names, a time that occurs twice, and a day.
    table = at("--unit", "sat", text="time,value\n2026-11-01T01:30,5\n2026-11-01,5\n")
    equal(table.stdout.splitlines()[0].decode(), "time,value,btc_price,btc_value,btc_currency,btc_step,btc_low,btc_high,btc_origin,btc_doubt")
    assert "line 2: the time occurs twice: this is the first one, 2026-11-01T01:30:00-04:00" in table.stderr.decode(), table
    assert "1 of the times are days" in table.stderr.decode(), table
    for wrong, words in ((["--raw"], "--csv prints the file"), (["--decimal", "x"], "it is '.' or ','"), (["--unit", "ounce"], "it is btc, sat"),
                         (["yesterday"], "unexpected word 'yesterday'"), (["--amount-column", "9"], "it has no column '9'")):
        refused = at(*wrong)
        assert refused.returncode == 64 and words in refused.stderr.decode() and not refused.stdout, (wrong, refused)
    equal(btcctl(place, "at", "--csv", "/nowhere").status, 64)
    needless = btcctl(place, "at", "1h", "--unit", "sat")
    equal((needless.status, needless.err.split(".")[0]), (64, "btcctl: --unit needs --csv"))
    # Minutes that are requested: one request has all that are near each other.
    daemon.stop()
    daemon = Daemon(place, simulator.urls, sources=("coinbase", "bitstamp"), backfill=True)
    fresh(place)
    old = known - 400 * 86_400
    spread = "".join(f"{old + minutes * 60}\n" for minutes in [*range(0, 300, 10), 40_000, 80_000, 120_000])
    fetched = wait_until(lambda: (d := at("--fetch", text=spread)).returncode == 0 and d, seconds=60, what="the minutes")
    rows = list(csv.reader(fetched.stdout.decode().splitlines()))
    equal({(len(row), row[4], row[5], row[6]) for row in rows}, {(9, "minute", "", "")})
    daemon.stop()
    equal(at().returncode, 69)
    simulator.stop()
    return said[1]


main()
