#!/usr/bin/env python3
"""The history: the stored prices across kills, bad disks and wrong clocks, and the filling of gaps.

KILLS: how many kills, 10 if it is not set.
"""

import collections
import csv
import datetime
import os
import sqlite3
import zoneinfo

from lib.btcpriced import *
from lib.terminal import Terminal
from lib.wallclock import WallClock

UTC = datetime.timezone.utc
COLUMNS = "start, currency, open, high, low, close, ticks, fresh, origin"


def unix(*parts):
    return int(datetime.datetime(*parts, tzinfo=UTC).timestamp())


def table(place, name="minute", currency="USD"):
    """The rows of a table, by their starts, prices as decimals."""
    database = sqlite3.connect(f"file:{place.state}/history.sqlite3?mode=ro", uri=True, timeout=10)
    try:
        rows = database.execute(
            f"SELECT start, open, high, low, close, ticks, fresh, origin, doubtful, seconds FROM {name} WHERE currency = ? ORDER BY start", [currency])
        return {row[0]: [Decimal(price) / 10**8 for price in row[1:5]] + list(row[5:]) for row in rows}
    except sqlite3.OperationalError as error:
        # The tables are made in the background, after the first price.
        if "no such table" not in str(error):
            raise
        return {}
    finally:
        database.close()


def is_whole(place):
    database = sqlite3.connect(f"{place.state}/history.sqlite3", timeout=10)
    try:
        return database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        database.close()


def filled(fill):
    """A daemon with the rows that `fill` writes into its database."""
    place, simulator = Place(), replaying("68900")
    daemon = Daemon(place, simulator.urls)
    settled(place)
    wait_until(lambda: Path(place.state, "history.sqlite3").exists(), what="the file")
    daemon.stop()
    database = sqlite3.connect(f"{place.state}/history.sqlite3")
    fill(database)
    database.commit()
    database.close()
    daemon = Daemon(place, simulator.urls)
    settled(place)
    return place, daemon


class Stage:
    """A daemon whose minutes are short: the test sets the wall clock from one minute to the next.

    `error`: how far the daemon's clock is ahead of the exchanges' clock, seconds.
    """

    def __init__(self, start, *arguments, place=None, prices="68900", error=0, sources=("binance", "coinbase")):
        self.clock, self.error = WallClock(start), error
        self.machine = WallClock(start + error) if error else self.clock
        self.simulator = replaying(prices, environment=self.clock.environment)
        self.sources = sources
        self.place = place or Place()
        self.arguments = [
            "--tick-interval-ms", "100", "--history-write-every-s", "1", *patient("binance", "coinbase"), *arguments]
        self.start()

    def start(self):
        self.daemon = Daemon(
            self.place, self.simulator.urls, *self.arguments, sources=self.sources, environment=self.machine.environment)
        fresh(self.place)

    def set(self, time_of_day, error=0):
        if error and self.machine is self.clock:
            raise ValueError("the two have one clock")
        self.error = error
        self.clock.set(time_of_day)
        self.machine.set(time_of_day + error)

    def minute(self, *prices):
        """Shows these prices one after the other, and advances to the next minute."""
        for price in prices:
            self.simulator.faults(f"{self.sources[0]} always price {price}")
            wait_until(lambda: self.state()["quote"]["value"] == str(price), what=lambda: f"{price}; {self.state()}")
        self.next()

    def next(self):
        minute = self.clock.now // 60 * 60
        # In two steps: a clock that is set by a minute is wrong until the next response.
        for second in (minute + 35, minute + 65):
            self.set(max(second, self.clock.now), self.error)
            begun = (second + self.error) * 1000
            # The present price is seen in the next minute too.
            wait_until(lambda: self.state()["quote"]["timestamp"] >= begun, what=lambda: f"a tick of the next minute; {self.state()}", every=0.02)
            if self.machine is not self.clock and len(self.sources) > 1:
                wait_until(self.is_compared, what=lambda: btcctl(self.place, "status").out)

    def is_compared(self):
        """Whether the daemon knows what all exchanges' clocks show now: the boot clock has not moved with them."""
        clock = btcctl(self.place, "status", "--json").json["status"]["clock"]
        if abs(self.error) <= 60:
            return clock["state"] == "agrees"
        return clock["sources"] == len(self.sources) and abs(clock["differenceMs"] / 1000 + self.error) < 3

    def state(self):
        return btcctl(self.place, "current", "--json").json

    def rows(self, *starts, **options):
        """Waits until the rows of these minutes are on the disk."""
        def look():
            try:
                found = table(self.place, **options)
            # The file may be locked, or about to be set aside.
            except sqlite3.DatabaseError:
                return None
            return found if set(starts) <= set(found) else None
        return wait_until(look, what=lambda: f"{starts}; {self.daemon.lines[-3:]}")

    def skipped(self):
        return btcctl(self.place, "status", "--json").json["status"]["ticks"]["skipped"]


@scenario("prices are stored by the minute, and every format shows the same", beside=True)
def _():
    base = unix(2026, 3, 10, 12, 0, 5)
    stage = Stage(base)
    minute = base // 60 * 60
    stage.minute("68900", "68950.5", "68890.25", "68910")
    stage.minute("68911", "68912.123456789")
    stage.minute("68905")
    rows = stage.rows(minute, minute + 60, minute + 120)
    equal(rows[minute][:4], [Decimal("68900"), Decimal("68950.5"), Decimal("68890.25"), Decimal("68910")])
    # The first price of a minute is the last one of the minute before, until a tick has a new one.
    equal(rows[minute + 60][:4], [Decimal("68910"), Decimal("68912.12345679"), Decimal("68910"), Decimal("68912.12345679")])
    assert all(row[4] == row[5] > 0 and row[6] == "own" for row in rows.values()), rows
    span = ["--since", "2026-03-10T12:00:00Z", "--until", "2026-03-10T12:03:00Z", "--step", "1m"]
    objects = [json.loads(line) for line in btcctl(stage.place, "history", *span, "--json").out.splitlines()]
    for form, expected in (
        ("open", 0), ("high", 1), ("low", 2), ("close", 3),
    ):
        equal([Decimal(o[form]) for o in objects], [rows[minute + 60 * index][expected] for index in range(3)], form)
    equal([(o["start"], o["step"], o["currency"], o["origin"]) for o in objects],
          [((minute + 60 * index) * 1000, "minute", "USD", "own") for index in range(3)])
    comma = list(csv.DictReader(btcctl(stage.place, "history", *span, "--csv").out.splitlines()))
    equal([[row["time"], row["start"], row["open"], row["close"], row["fresh"]] for row in comma],
          [[f"2026-03-10T12:0{index}:00+00:00", str(minute + 60 * index), o["open"], o["close"], str(o["fresh"])]
           for index, o in enumerate(objects)])
    lines = btcctl(stage.place, "history", *span).out.splitlines()
    # The minutes of the test are short: too little of them is known.
    covered = rows[minute][8]
    equal(lines[0], f"2026-03-10T12:00:00+00:00 68900 68950.5 68890.25 68910 own ({covered} of 60 s)")
    # The hour is not over and has no row. Its known part is shown.
    hour = btcctl(stage.place, "history", *span[:4], "--step", "1h", "--json").json
    equal((hour["open"], hour["high"], hour["low"], hour["close"]), ("68900", "68950.5", "68890.25", "68905"))
    equal(table(stage.place, "hour"), {})
    at = btcctl(stage.place, "at", "2026-03-10T12:00:02Z", "0.5btc", "--json").json["at"]
    equal((at["price"], at["step"], at["usd"], at["approximate"]), ("68900", "minute", "34450", True))
    equal(btcctl(stage.place, "at", "2026-03-10T12:00:50Z", "--raw").out, "68910\n")
    coarse = btcctl(stage.place, "at", "2026-03-10T12:00:50Z", "--raw", "--max-step", "1m")
    equal((coarse.status, coarse.out), (75, ""))
    assert f"{covered} of 60 s of the minute" in coarse.err, coarse
    text = btcctl(stage.place, "at", "2026-03-10T12:00:02Z", "0.5btc").out.splitlines()
    equal(text[0].split(" - ")[1], f"about $68,900.00 ({covered} of 60 s of the minute: $68,890.25 to $68,950.50)")
    assert text[2].startswith("0.5 BTC = 50,000,000 sat = about $34,"), text
    nothing = btcctl(stage.place, "at", "2025-01-01")
    equal((nothing.status, nothing.out), (1, ""))
    assert "No price is recorded" in nothing.err, nothing
    # Seconds are kept only for this hour.
    equal(btcctl(stage.place, "history", "--since", "2026-03-09", "--until", "2026-03-09T01:00Z", "--step", "1s").status, 1)
    day = stage.state()["day"]
    equal((day["since"], day["open"], day["high"], day["low"], day["backfilled"]), (minute * 1000, "68900", "68950.5", "68890.25", False))
    equal(btcctl(stage.place, "current", "--format", "{high24h} {low24h} {change24h}").out, "$68,950.50 $68,890.25 +0.01 %\n")
    client = Varlink(stage.place.socket)
    equal(client.call("io.btcpriced.History.GetDay")["parameters"], {"currency": "USD", "day": day})
    equal(client.call("io.btcpriced.History.GetHistory", currency="XXX")["error"], "io.btcpriced.History.UnknownCurrency")
    client.close()
    # An hour later it has a row.
    stage.set(minute + 3605)
    stage.minute("68905")
    stage.rows(minute, name="hour")
    equal(table(stage.place, "hour")[minute][:4], [Decimal("68900"), Decimal("68950.5"), Decimal("68890.25"), Decimal("68905")])
    # The rest of the present minute is written at the end.
    stage.minute("68906")
    stage.daemon.stop()
    rows = table(stage.place)
    assert rows[max(rows)][6] == "own" and is_whole(stage.place), rows
    stage.start()
    equal(stage.state()["day"]["high"], "68950.5", "the day is known over a restart")
    stage.daemon.stop()


@scenario("past moments: no price is shown as more exact than it is known, and --fetch gets the minute", beside=True)
def _():
    simulator, place, generator = Simulator("--seed", "3"), Place(), seeded()
    daemon = Daemon(place, simulator.urls, sources=("coinbase", "bitstamp", "binance"), backfill=True)
    fresh(place)
    # A moment before the first tick has no price.
    early = btcctl(place, "at", "30m", "--json")
    assert early.status == 1 or early.json["at"]["candle"]["origin"] != "own", early
    wait_until(lambda: daemon.said("minutes from"), seconds=90, what=lambda: f"the history; {daemon.lines}")
    wait_until(lambda: len(table(place, "day")) >= 729 and len(table(place)) >= 1400, seconds=90, what="the candles")
    steps = collections.Counter()
    for ago in [generator.uniform(*span) for span in ((0.5, 20), (1, 23), (30, 600), (100, 700), (800, 5000), (800, 17_000)) for _ in range(2)]:
        moment = time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(time.time() - ago * 3600))
        known = btcctl(place, "at", moment, "--json").json["at"]
        steps[known["step"]] += 1
        text, raw = btcctl(place, "at", moment, "--utc"), btcctl(place, "at", moment, "--raw")
        equal((" - about $" in text.out, "The exact moment is not known, only the " in raw.err), (known["step"] in ("hour", "day"),) * 2, (text, raw))
        exact = btcctl(place, "at", moment, "--raw", "--max-step", "1m")
        equal(exact.status, 75 if known["step"] in ("hour", "day") else 0, exact)
        fetched = btcctl(place, "at", moment, "--fetch", "--json")
        equal((fetched.status, fetched.err), (0, ""), moment)
        minute = fetched.json["at"]
        equal(minute["step"], "minute", moment)
        low, high = Decimal(known["candle"]["low"]), Decimal(known["candle"]["high"])
        assert low <= Decimal(minute["price"]) <= high, f"{moment}: {minute['price']} is outside of what was said, {low} to {high}"
        # The fetched minute is stored.
        equal(btcctl(place, "at", moment, "--json").json["at"]["candle"], minute["candle"], moment)
        # It makes no hour: what is said of the minute beside it is what was said before.
        beside = moment[:14] + f"{int(moment[14:16]) ^ 1:02}" + moment[16:]
        equal(btcctl(place, "at", beside, "--json").json["at"]["candle"]["start"] == known["candle"]["start"], known["step"] != "minute", beside)
    # Nor a day, of which nothing else is known. The user has used the calls of the first seconds.
    old = wait_until(lambda: btcctl(place, "at", "2023-05-05T12:00Z", "--fetch", "--json").json.get("at"), what="the minute of 2023")
    equal(old["step"], "minute")
    equal(btcctl(place, "at", "2023-05-05T18:00Z").status, 1)
    for step in ("1h", "1d"):
        nothing = btcctl(place, "history", "--since", "2023-05-05T00:00Z", "--until", "2023-05-06T00:00Z", "--step", step, "--json")
        equal((nothing.status, nothing.json["error"]), (1, "noPrice"), step)
    note = btcctl(place, "history", "--since", "90d", "--step", "1m", "--csv").err
    assert re.fullmatch(r"Only \d+ of 129600 minutes of this time are known; --step 1h knows more\.\n", note), note
    daemon.stop()
    daemon = Daemon(place, simulator.urls, sources=("coinbase", "bitstamp"))
    fresh(place)
    refused = btcctl(place, "at", "500d", "--fetch")
    equal((refused.status, refused.err), (0, "The minute could not be requested: history.backfill is false.\n"))
    daemon.stop()
    simulator.stop()
    assert {"minute", "hour", "day"} <= steps.keys(), steps
    return str(dict(steps))


@scenario("twenty clients that fetch minutes in francs, which only Kraken has, do not make the price in francs stale", beside=True)
def _():
    # It has none of the minutes, so each call needs a request.
    empty = 'kraken candles always status 200 body {"error":[],"result":{"XBTCHF":[],"last":1}}'
    simulator, place, generator = Simulator("--seed", "3", faults=empty), Place(), seeded()
    daemon = Daemon(
        place, simulator.urls, "--currencies", "USD,CHF", "--currency-CHF-interval-ms", "5000", "--source-kraken-url", simulator.urls["kraken"],
        sources=("coinbase", "bitstamp"), backfill=True)
    watching = Varlink(place.socket)
    state = lambda: watching.call("io.btcpriced.Price.GetPrice", currency="CHF")["parameters"]["state"]
    tick = wait_until(lambda: (s := state())["freshness"] == "fresh" and s, what="a price in francs")["tick"]
    reasons, is_over = collections.Counter(), threading.Event()

    def fetch():
        client = Varlink(place.socket)
        while not is_over.wait(0.1):
            moment = int(time.time()) - generator.randrange(120, 11 * 3600)
            try:
                reply = client.call("io.btcpriced.History.GetPriceAt", currency="CHF", time=moment * 1000, fetch=True)
            except (EOFError, OSError):
                # The daemon is gone, because the scenario has failed.
                return
            reasons[re.sub(r"in \d+ s", "in N s", reply["parameters"]["notFetched"] or "fetched")] += 1
        client.close()
    clients = [threading.Thread(target=fetch, daemon=True) for _ in range(20)]
    for client in clients:
        client.start()
    while (found := state())["tick"] < tick + 3:
        equal((found["freshness"], found["failure"]), ("fresh", None))
        time.sleep(0.2)
    is_over.set()
    for client in clients:
        client.join(timeout=30)
    equal((found["freshness"], found["failure"]), ("fresh", None))
    assert within(simulator.limits()), simulator.limits()
    requested = f"user {os.geteuid()} has requested as much as one may: try again in N s"
    assert requested in reasons and reasons.keys() <= {requested, "no exchange has it: kraken", "no exchange may be requested now"}, reasons
    daemon.stop()
    simulator.stop()
    return str(dict(reasons))


@scenario("kills at random moments: the file is whole, and at most one minute is lost", beside=True)
def _():
    random_ = seeded()
    kills = int(os.environ.get("KILLS", 10))
    stage = Stage(unix(2026, 3, 10, 12, 0, 5))
    kept, lost_in_all = set(), 0
    for kill in range(kills):
        ended = []
        for _ in range(random_.randrange(1, 6)):
            time.sleep(random_.uniform(0, 0.2))
            # A minute of this clock takes only a moment, and a busy disk longer. The minute before is written by then.
            wait_until(lambda: set(ended) <= set(table(stage.place)), what=lambda: f"{ended} on the disk")
            ended.append(int(stage.clock.now) // 60 * 60)
            stage.next()
        time.sleep(random_.uniform(0, 0.1))
        stage.daemon.kill()
        assert is_whole(stage.place), f"kill {kill}"
        found = set(table(stage.place))
        lost = [minute for minute in ended if minute not in found]
        assert lost in ([], ended[-1:]) and kept <= found, f"kill {kill}: lost {lost} of {ended}, and {kept - found}"
        kept, lost_in_all = found, lost_in_all + len(lost)
        stage.start()
    stage.daemon.stop()
    return f"{kills} kills, {len(kept)} minutes kept, {lost_in_all} lost"


@scenario("gaps are filled from the exchanges in few requests, and the daemon's own candles stay unchanged", beside=True)
def _():
    simulator, place = Simulator(), Place()
    daemon = Daemon(place, simulator.urls, sources=("binance", "coinbase", "kraken"), backfill=True)
    fresh(place)
    wait_until(lambda: daemon.said("minutes from"), seconds=60, what=lambda: f"the candles; {daemon.lines}")
    wait_until(lambda: len(table(place)) >= 1438, seconds=60, what="the candles of a day")
    requests = simulator.requests()
    equal({row[6] for row in table(place, "day").values()} - {"coinbase", "kraken", "mixed"}, set())
    assert len(table(place, "hour")) >= 719 and len(table(place, "day")) >= 729, (len(table(place, "hour")), len(table(place, "day")))
    # Each row comes unchanged from the exchange.
    now = int(time.time())
    known = table(place)
    compared = 0
    for start in range(now // 60 * 60 - 1200 * 60, now // 60 * 60 - 300 * 60, 300 * 60):
        text = lambda second: datetime.datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        url = f"{simulator.urls['coinbase']}/products/BTC-USD/candles?granularity=60&start={text(start)}&end={text(start + 299 * 60)}"
        request = urllib.request.Request(url, headers={"User-Agent": "test"})
        for second, low, high, opened, closed, _ in json.loads(urllib.request.urlopen(request).read(), parse_float=Decimal):
            if known[second][6] == "coinbase":
                equal(known[second][:4], [opened, high, low, closed], second)
                compared += 1
    assert compared > 500, compared
    # Neither the present minute nor the one that has just ended comes from an exchange.
    foreign = max(start for start, row in known.items() if row[6] != "own")
    assert foreign <= now // 60 * 60 - 60, (foreign, now)
    status = btcctl(place, "status", "--json").json["status"]["ticks"]
    # The tests beside this one may take the processor from a few; a tick that waits for candles would miss more.
    assert status["skipped"] <= 3, status
    # A minute of the daemon itself, and a gap.
    daemon.stop()
    database = sqlite3.connect(f"{place.state}/history.sqlite3")
    first = now // 60 * 60 - 600 * 60
    database.execute("DELETE FROM minute WHERE start >= ? AND start < ?", [first, first + 40 * 60])
    database.execute("UPDATE minute SET origin = 'own', ticks = 60, fresh = 60, seconds = 60, close = low WHERE start = ?", [first - 60])
    own = database.execute("SELECT low / 1e8 FROM minute WHERE start = ?", [first - 60]).fetchone()[0]
    database.commit()
    database.close()
    daemon = Daemon(place, simulator.urls, sources=("binance", "coinbase", "kraken"), backfill=True)
    fresh(place)
    # A kill during the backfill.
    time.sleep(random.uniform(2.5, 5))
    daemon.kill()
    assert is_whole(place)
    daemon = Daemon(place, simulator.urls, sources=("binance", "coinbase", "kraken"), backfill=True)
    fresh(place)
    wait_until(lambda: set(range(first, first + 40 * 60, 60)) <= set(table(place)), seconds=30, what="the gap")
    equal(float(table(place)[first - 60][3]), own, "an own candle is not replaced")
    equal(table(place)[first - 60][6], "own")
    limits = simulator.limits()
    assert limits["kraken"].endswith("1 of 1") and "of 10" in limits["coinbase"], limits
    daemon.stop()
    return f"requests for prices and candles until the first backfill was done: {requests}; {compared} candles compared"


@scenario("a backfill with rate limits, errors, half bodies and rubbish continues with another exchange, and the ticks do not wait", beside=True)
def _():
    simulator, place = Simulator(), Place()
    simulator.faults(
        "coinbase candles always status 429 retry-after 3600\n"
        "bitstamp candles request 1 half-body\n"
        "kraken candles request 1 status 200 body {\"error\":[],\"result\":{\"XXBTZUSD\":[[1,\"2\"]],\"last\":1}}\n")
    daemon = Daemon(place, simulator.urls, sources=("binance", "coinbase", "bitstamp", "kraken"), backfill=True)
    fresh(place)

    def is_filled():
        try:
            return len(table(place)) >= 1000 and len(table(place, "day")) >= 700
        except sqlite3.OperationalError:
            return False
    wait_until(is_filled, seconds=90, what=lambda: f"candles; {daemon.lines[-5:]}")
    origins = {name: collections.Counter(row[6] for row in table(place, name).values()) for name in ("minute", "hour", "day")}
    assert all("coinbase" not in counter for counter in origins.values()), origins
    # Each row comes from Bitstamp. The half body and the rubbish left none.
    start = int(time.time()) // 86_400 * 86_400 - 100 * 86_400
    url = f"{simulator.urls['bitstamp']}/api/v2/ohlc/btcusd/?step=86400&limit=60&start={start}"
    given = {int(o["timestamp"]): [Decimal(o[name]) for name in ("open", "high", "low", "close")]
             for o in json.loads(urllib.request.urlopen(url).read())["data"]["ohlc"]}
    days = table(place, "day")
    equal({second: days[second][:4] for second in given}, given)
    sources = {source["name"]: source for source in btcctl(place, "sources", "--json").json["sources"]}
    equal((sources["coinbase"]["use"], sources["coinbase"]["lastFailure"]["kind"]), ("limited", "rate-limited"))
    state = btcctl(place, "current", "--json").json
    equal(state["freshness"], "fresh")
    skipped = btcctl(place, "status", "--json").json["status"]["ticks"]["skipped"]
    assert skipped <= 3, f"{skipped} ticks were skipped: on a busy machine one now and then"
    daemon.stop()
    return str({name: dict(counter) for name, counter in origins.items()})


@scenario("a full disk: the price is still updated, the journal reports it once, and held candles are written when there is room", beside=True)
def _():
    place = Place()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place.state], check=True)
    try:
        stage = Stage(unix(2026, 3, 10, 12, 0, 5), place=place)
        stage.minute("68901")
        first = int(stage.clock.now) // 60 * 60
        filler = Path(place.state, "filler")
        file = os.open(filler, os.O_WRONLY | os.O_CREAT)
        try:
            while os.write(file, bytes(4096)):
                pass
        except OSError:
            os.close(file)
        starts = []
        for index in range(30):
            starts.append(int(stage.clock.now) // 60 * 60)
            stage.next()
        wait_until(lambda: stage.daemon.said("The history can't be written"), what=lambda: f"the line; {stage.daemon.lines}")
        equal(sum("The history can't be written" in line for line in stage.daemon.lines), 1)
        state = stage.state()
        equal(state["freshness"], "fresh")
        shown = btcctl(place, "history", "--since", "2026-03-10T12:00Z", "--until", "2026-03-10T13:00Z", "--step", "1m", "--json").out
        assert len(shown.splitlines()) >= 30, "what is held is shown"
        # With an interval of 100 ms a busy machine skips some ticks.
        assert stage.skipped() < stage.state()["tick"], (stage.skipped(), stage.state()["tick"])
        filler.unlink()
        stage.next()
        stage.rows(first, *starts)
        wait_until(lambda: stage.daemon.said("The history is written again"), what="the line")
        stage.daemon.stop()
        assert is_whole(place)
    finally:
        subprocess.run(["umount", "-l", place.state], check=True)
    return f"{len(starts)} minutes held and written"


@scenario("an unwritable folder: the price is still updated, and held candles are written when possible", beside=True)
def _():
    place = Place()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", place.state], check=True)
    try:
        stage = Stage(unix(2026, 3, 10, 12, 0, 5), place=place)
        starts = []
        for price in ("68901", "68902", "68903"):
            starts.append(int(stage.clock.now) // 60 * 60)
            stage.minute(price)
        wait_until(lambda: stage.daemon.said("The history can't be written"), what=lambda: f"the line; {stage.daemon.lines}")
        equal(stage.state()["freshness"], "fresh")
        assert stage.skipped() < 20, stage.skipped()
        done = btcctl(place, "history")
        equal(done.status, 1)
        assert "The history can't be read" in done.err, done
        assert "the history can't be written, 3 candles in memory" in btcctl(place, "status").out, btcctl(place, "status").out
        subprocess.run(["mount", "-o", "remount,rw", place.state], check=True)
        stage.next()
        stage.rows(*starts)
        stage.daemon.stop()
    finally:
        subprocess.run(["umount", "-l", place.state], check=True)


def fill_disk(folder, leave=0):
    """Fills a file system but for some bytes; the file that fills it."""
    filler = Path(folder, "filler")
    with open(filler, "ab", buffering=0) as file:
        try:
            while file.write(bytes(65_536)):
                pass
        except OSError:
            pass
        if leave:
            os.ftruncate(file.fileno(), max(0, file.tell() - leave))
    return filler


@scenario("a full disk while an old history is migrated, and while a damaged one is saved: nothing is lost", beside=True)
def _():
    if os.geteuid() != 0:
        raise Skip("mounting needs root")
    place, simulator = Place(), replaying("68900")
    path = Path(place.state, "history.sqlite3")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place.state], check=True)

    def read(query, file=path):
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as database:
            return database.execute(query).fetchall()

    def run(until, what):
        """Runs the daemon until something is true; its lines."""
        daemon = Daemon(place, simulator.urls, "--history-keep-minutes", "forever", sources=("binance", "coinbase"))
        settled(place)
        wait_until(lambda: until(daemon), what=lambda: f"{what}; {daemon.lines}")
        equal(btcctl(place, "current", "--json").json["freshness"], "fresh")
        daemon.stop()
        return daemon.lines
    try:
        # As version 0.1.0 left it.
        end = int(time.time()) // 86_400 * 86_400
        with contextlib.closing(sqlite3.connect(path)) as database:
            for name in ("minute", "hour", "day"):
                database.execute(f"""
                    CREATE TABLE {name} (start INTEGER NOT NULL, currency TEXT NOT NULL, open INTEGER NOT NULL, high INTEGER NOT NULL,
                      low INTEGER NOT NULL, close INTEGER NOT NULL, ticks INTEGER NOT NULL, fresh INTEGER NOT NULL, origin TEXT NOT NULL,
                      PRIMARY KEY (start, currency)) STRICT, WITHOUT ROWID""")
            database.execute("CREATE TABLE currency (code TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID")
            database.execute("INSERT INTO currency VALUES ('USD')")
            rows = ((start, *[6_890_000_000_000 + start % 977 * 10**8] * 4) for start in range(end - 90 * 86_400, end, 60))
            database.executemany("INSERT INTO minute VALUES (?,'USD',?,?,?,?,60,60,'own')", rows)
            database.execute("PRAGMA user_version = 1")
            database.commit()
        known = f"SELECT count(*), sum(start), sum(close) FROM minute WHERE start < {end}"
        before = read(known)
        index = "SELECT count(*) FROM sqlite_schema WHERE name = 'minute_of_currency'"
        # No room for anything, and then for the tables but not for the index.
        for leave in (0, 400_000):
            filler = fill_disk(place.state, leave)
            run(lambda daemon: time.sleep(2) or True, "two seconds")
            filler.unlink()
            equal(read(known), before, leave)
        run(lambda _: read("PRAGMA user_version") == [(3,)] and read(index) == [(1,)], "version 3 with its index")
        equal((read(known), read("PRAGMA quick_check")), (before, [("ok",)]))
        # Some pages in the middle are rubbish.
        size = path.stat().st_size
        with open(path, "r+b") as file:
            file.seek(size // 2 // 4096 * 4096)
            file.write(b"\xa5" * 4096 * 3)
        filled_at = []

        def fill_when_damaged(daemon):
            # While the rows are read into the new file.
            if not filled_at and daemon.said("so a new history is begun"):
                filled_at.append(fill_disk(place.state))
            return filled_at
        # The damage is found by a whole read, which a log makes it do.
        Path(f"{path}-wal").write_bytes(b"")
        run(fill_when_damaged, "the damage")
        filled_at[0].unlink()

        def is_salvaged(_):
            # The tables of the new file may not be made yet.
            with contextlib.suppress(sqlite3.OperationalError):
                return read("SELECT count(*) FROM event WHERE kind = 'salvaged'") != [(0,)]
        lines = run(is_salvaged, "what can be read")
        saved = read(known)[0][0]
        # A page has some dozens of rows.
        assert before[0][0] - saved < 600, (before, saved, lines)
        assert len(list(Path(place.state).glob("history.sqlite3.corrupt-*Z"))) == 1
        assert is_whole(place)
    finally:
        subprocess.run(["umount", "-l", place.state], check=True)
    simulator.stop()
    return f"{before[0][0]} minutes of {size / 1e6:.0f} MB, {before[0][0] - saved} in damaged pages"


@scenario("a disk with five seconds per write: no tick waits for it")
def _():
    folder = tempfile.mkdtemp(prefix="btc-priced-slow-")
    program, behind, front = f"{folder}/slowdisk", f"{folder}/behind", f"{folder}/front"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["cc", "-O1", "-o", program, Path(__file__).parent / "lib" / "slowdisk.c", *flags], check=True)
    os.mkdir(behind)
    os.mkdir(front)
    Path(behind + ".delay").write_text("0")
    disk = spawn([program, behind, front], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: os.path.ismount(front), what="the file system")
        slow_place, fast_place = Place(), Place()
        slow_place.state = front
        slow, fast = (Stage(unix(2026, 3, 10, 12, 0, 5), "--log-level", "debug", place=place) for place in (slow_place, fast_place))
        for stage in (slow, fast):
            stage.minute("68901")
            stage.rows(unix(2026, 3, 10, 12))
        Path(behind + ".delay").write_text("5000")
        begun = {stage: len(stage.daemon.lines) for stage in (slow, fast)}
        for _ in range(40):
            slow.next(), fast.next(), time.sleep(0.25)
        late = {}
        for name, stage in (("slow", slow), ("fast", fast)):
            found = [float(line.split(" began ")[1].split(" ms late")[0]) for line in stage.daemon.lines[begun[stage]:] if " ms late" in line]
            assert len(found) > 150, len(found)
            late[name] = sorted(found)
            equal(stage.state()["freshness"], "fresh")
            # A tick that waited for a write would be late by five seconds, with other ticks skipped. A busy machine skips few.
            assert stage.skipped() < len(found) / 4, stage.skipped()
            assert found[-1] < 2500, late
        middle = {name: (found[len(found) // 2], found[len(found) * 95 // 100]) for name, found in late.items()}
        Path(behind + ".delay").write_text("0")
        wait_until(lambda: slow.next() or unix(2026, 3, 10, 12, 30) in table(slow_place), seconds=60, what="what was held")
        for stage in (slow, fast):
            stage.daemon.stop()
        assert is_whole(slow_place)
    finally:
        Path(behind + ".delay").write_text("0")
        subprocess.run(["umount", "-l", front], check=True)
        # A mount namespace of another script may still use the file system.
        disk.terminate()
        disk.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)
    return f"half of the ticks, 95 %: slow disk {middle['slow']} ms late, fast {middle['fast']} ms"


@scenario("a file with rubbish is set aside, before the start and while the daemon runs")
def _():
    place = Place()
    Path(place.state, "history.sqlite3").write_bytes(b"rubbish" * 5000)
    stage = Stage(unix(2026, 3, 10, 12, 0, 5), place=place)
    stage.minute("68901")
    stage.rows(unix(2026, 3, 10, 12))
    stage.daemon.says("so a new history is begun")
    corrupt = lambda: sorted(Path(place.state).glob("history.sqlite3.corrupt-*Z"))
    assert corrupt()[-1].read_bytes().startswith(b"rubbish")
    # Another file in the place of the database.
    other = Path(place.state, "other")
    other.write_bytes(b"nonsense" * 4000)
    other.rename(Path(place.state, "history.sqlite3"))
    stage.minute("68903")
    stage.rows(unix(2026, 3, 10, 12, 1))
    assert corrupt()[-1].read_bytes().startswith(b"nonsense")
    equal(stage.state()["freshness"], "fresh")
    assert stage.skipped() < 20, stage.skipped()
    stage.daemon.stop()
    assert is_whole(place)


@scenario("a wrong clock at the start: minutes are kept under the exchanges' time, and everybody is told", beside=True)
def _():
    noon = unix(2026, 3, 10, 12)
    wrong = {-10 * 86_400: "behind", 7200: "ahead of", unix(2036, 2, 7) - noon: "ahead of"}
    for error, words in wrong.items():
        stage = Stage(noon + 5, error=error)
        wait_until(lambda: stage.daemon.said("This machine's clock is"), what=lambda: f"the line; {stage.daemon.lines}")
        for price in ("68901", "68902"):
            stage.minute(price)
        stage.rows(noon, noon + 60)
        text, status = (btcctl(stage.place, "status", *options) for options in ((), ("--json",)))
        assert f"{words} the time that 2 of 2 sources agree on" in text.out, text.out
        clock = status.json["status"]["clock"]
        assert clock["state"] == "differs" and abs(clock["differenceMs"] / 1000 + error) < 5, clock
        sources = btcctl(stage.place, "sources").out
        assert sources.count("this machine's clock") == 2, sources
        metric = next(line for line in btcctl(stage.place, "metrics").out.splitlines() if line.startswith("btcpriced_clock_difference_seconds "))
        assert abs(float(metric.split()[1]) + error) < 5, metric
        # The clock is set right.
        stage.set(noon + 125)
        wait_until(lambda: stage.daemon.said("clock agrees with most sources again"), what=lambda: f"the line; {stage.daemon.lines}")
        stage.minute("68903")
        stage.rows(noon + 120)
        assert "agrees with most sources" in btcctl(stage.place, "status").out
        stage.daemon.stop()
        rows = table(stage.place)
        equal(sorted(rows), [noon + 60 * minute for minute in range(4)], "no minute of another time")
        equal([row[6] for row in rows.values()], ["own"] * 4)
        equal(sum("This machine's clock" in line for line in stage.daemon.lines), 2, "a line when it begins, and one when it ends")


@scenario("a restart with the clock back at a recorded minute: the minute stays as it is", beside=True)
def _():
    noon = unix(2026, 3, 10, 12)
    stage = Stage(noon + 5, error=1)
    for price in ("68901", "68902", "68903"):
        stage.minute(price)
    stage.daemon.stop()
    before = table(stage.place)
    # Ten minutes later the machine boots with the time of its last minutes, and learns the right one two minutes later.
    stage.simulator.faults("binance always price 75000\ncoinbase always price 75000")
    stage.set(noon + 605, error=-540)
    stage.start()
    stage.minute("75001")
    stage.minute("75002")
    stage.set(noon + 725)
    wait_until(stage.is_compared, what=lambda: btcctl(stage.place, "status").out)
    stage.minute("75003")
    stage.daemon.stop()
    after = table(stage.place)
    equal({start: after[start] for start in before}, before)
    equal(sorted(set(after) - set(before)), [noon + 600 + 60 * minute for minute in range(4)], f"{stage.daemon.lines} {after}")


@scenario("a lone source that states another time: minutes are held, and kept in doubt at the end", beside=True)
def _():
    noon = unix(2026, 3, 10, 12)
    stage = Stage(noon + 5, error=86_400, sources=("coinbase",))
    for price in ("68901", "68902"):
        stage.minute(price)
    status = btcctl(stage.place, "status", "--json").json["status"]["clock"]
    equal(status["state"], "unknown")
    equal(len(btcctl(stage.place, "history", "--since", "2026-03-11T11:00Z", "--step", "1m", "--csv", environment=stage.machine.environment).out.splitlines()), 4)
    stage.daemon.stop()
    rows = table(stage.place)
    equal(len(rows), 3)
    assert all(row[5] == row[7] > 0 for row in rows.values()), f"all ticks are in doubt; {rows}"
    # The clock is right at the next start: the minutes that lie in the future are replaced when their time comes.
    stage.set(noon + 86_400 - 55)
    stage.sources = ("coinbase", "kraken")
    stage.start()
    for price in ("68903", "68904"):
        stage.minute(price)
    stage.rows(noon + 86_400 - 60, noon + 86_400)
    stage.daemon.stop()
    rows = table(stage.place)
    assert rows[noon + 86_400][1] >= 68_903 and rows[noon + 86_400][6] == "own", rows
    assert rows[noon + 86_400][7] < rows[noon + 86_400][5], rows


@scenario("a clock set back by a day while the daemon runs: the exchanges' time is used, and the minutes stay", beside=True)
def _():
    noon = unix(2026, 3, 10, 12)
    stage = Stage(noon + 5, error=1)
    for price in ("68901", "68902", "68903"):
        stage.minute(price)
    before = stage.rows(noon + 120)
    stage.set(noon + 185, error=-86_400)
    wait_until(lambda: stage.daemon.said("This machine's clock is"), what=lambda: f"the line; {stage.daemon.lines}")
    stage.minute("68850")
    stage.minute("68851")
    rows = stage.rows(noon + 180, noon + 240)
    equal({start: rows[start] for start in before}, before)
    stage.daemon.stop()
    equal(sorted(table(stage.place)), [noon + 60 * minute for minute in range(6)])
    assert is_whole(stage.place)


@scenario("the nights of clock changes, days of the reader's time zone, and a leap day", beside=True)
def _():
    def fill(database):
        nights = [unix(2025, 10, 25, 12), unix(2025, 11, 1, 12), unix(2026, 3, 7, 12), unix(2026, 3, 28, 12), unix(2024, 2, 28)]
        for night in nights:
            for hour in range(0, 72):
                start, price = night + hour * 3600, (60_000 + hour) * 10**8
                database.execute(f"INSERT INTO hour ({COLUMNS}) VALUES (?,'USD',?,?,?,?,3600,3600,'own')", [start, price, price, price, price])
                if start % 86_400 == 0:
                    database.execute(f"INSERT INTO day ({COLUMNS}) VALUES (?,'USD',?,?,?,?,86400,86400,'own')", [start, price, price, price, price])
        for day in range(10):
            database.execute(f"INSERT INTO day ({COLUMNS}) VALUES (?,'USD',?,?,?,?,86400,86400,'own')", [unix(2025, 6, 1 + day), *[10**13] * 4])
    place, daemon = filled(fill)

    def hours(zone, since, until):
        out = btcctl(place, "history", "--since", since, "--until", until, "--step", "1h", environment={"TZ": zone}).out
        return [line.split()[0] for line in out.splitlines()]
    autumn = hours("Europe/Berlin", "2025-10-26", "2025-10-27")
    equal((len(autumn), autumn[2:4]), (25, ["2025-10-26T02:00:00+02:00", "2025-10-26T02:00:00+01:00"]))
    autumn = hours("America/New_York", "2025-11-02", "2025-11-03")
    equal((len(autumn), autumn[1:3]), (25, ["2025-11-02T01:00:00-04:00", "2025-11-02T01:00:00-05:00"]))
    spring = hours("Europe/Berlin", "2026-03-29", "2026-03-30")
    equal((len(spring), spring[1:3]), (23, ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"]))
    equal(len(hours("America/New_York", "2026-03-08", "2026-03-09")), 23)
    twice = btcctl(place, "at", "2025-10-26T02:00", environment={"TZ": "Europe/Berlin"})
    assert twice.out.startswith("Oct 26 2025, 02:00 CEST - ") or twice.out.startswith("Oct 26, 02:00 CEST - "), twice
    equal(twice.err, "2025-10-26T02:00 occurs twice: this is the first one, 2025-10-26T02:00:00+02:00. "
                     "The second one is 2025-10-26T02:00:00+01:00.\n")

    def days(zone):
        out = btcctl(place, "history", "--since", "2025-10-25", "--until", "2025-10-28", "--step", "1d", "--day-zone", "local", "--csv",
                     environment={"TZ": zone}).out
        return [(row["time"], row["covered_minutes"], row["open"]) for row in csv.DictReader(out.splitlines())]
    equal(days("Europe/Berlin"), [("2025-10-25T00:00:00+02:00", "600", "60000"), ("2025-10-26T00:00:00+02:00", "", "60010"),
                                  ("2025-10-27T00:00:00+01:00", "", "60035")])
    # The hours in which a day begins are left out without their minutes.
    equal(days("Asia/Kathmandu")[1], ("2025-10-26T00:00:00+05:45", "1380", "60007"))
    # Of the time of the days nothing shorter is known.
    span = ["history", "--since", "2025-06-02T00:00Z", "--until", "2025-06-06T00:00Z"]
    found = btcctl(place, *span, "--json")
    equal(([json.loads(line)["step"] for line in found.out.splitlines()], found.err), (["day"] * 4, ""))
    found = btcctl(place, *span, "--step", "1h")
    equal((found.status, found.out, found.err), (1, "", "btcctl: No hours of this time are known; --step 1d knows more.\n"))
    missing = btcctl(place, "at", "2026-03-29T02:30", environment={"TZ": "Europe/Berlin"})
    equal(missing.status, 64)
    assert "the clock is set forward" in missing.err, missing
    leap = btcctl(place, "history", "--since", "2024-02-28", "--until", "2024-03-02", "--step", "1d", "--utc").out
    equal([line.split("T")[0] for line in leap.splitlines()], ["2024-02-28", "2024-02-29", "2024-03-01"])
    # The days that were asked for are those that are printed, wherever the reader is.
    for zone in ("Pacific/Pago_Pago", "Pacific/Honolulu", "America/Los_Angeles", "America/New_York", "America/Sao_Paulo", "UTC",
                 "Europe/London", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "Pacific/Kiritimati"):
        out = btcctl(place, "history", "--since", "2024-02-28", "--until", "2024-03-02", "--step", "1d", "--csv",
                     environment={"TZ": zone}).out
        equal([row["time"] for row in csv.DictReader(out.splitlines())],
              ["2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"], zone)
    equal(btcctl(place, "at", "2024-02-29T12:00Z", "--raw").out, "60036\n")
    equal(btcctl(place, "at", "2025-02-29").status, 64)
    daemon.stop()


@scenario("a quarter in New York and in Berlin, by UTC and by local days", beside=True)
def _():
    first, last = datetime.datetime(2025, 12, 30, tzinfo=UTC), datetime.datetime(2026, 4, 3, tzinfo=UTC)
    generator = random.Random(3)
    hours = {}
    for start in range(int(first.timestamp()), int(last.timestamp()), 3600):
        low = generator.randrange(60_000, 70_000)
        hours[start] = (low + 3, low + 9, low, low + 6)

    def day(starts):
        known = [hours[start] for start in starts]
        return known[0][0], max(row[1] for row in known), min(row[2] for row in known), known[-1][3]

    def fill(database):
        for start, row in hours.items():
            database.execute(
                f"INSERT INTO hour ({COLUMNS}) VALUES (?,'USD',?,?,?,?,3600,3600,'own')", [start, *(price * 10**8 for price in row)])
            if start % 86_400 == 0 and start + 86_400 <= last.timestamp():
                row = day(range(start, start + 86_400, 3600))
                database.execute(
                    f"INSERT INTO day ({COLUMNS}) VALUES (?,'USD',?,?,?,?,86400,86400,'own')", [start, *(price * 10**8 for price in row)])
    place, daemon = filled(fill)
    lengths = {}
    for name in ("America/New_York", "Europe/Berlin"):
        for zone, options in ((UTC, ()), (zoneinfo.ZoneInfo(name), ("--day-zone", "local"))):
            out = btcctl(place, "history", "--since", "2026-01-01", "--until", "2026-04-01", "--step", "1d", "--csv", *options, environment={"TZ": name}).out
            rows = [(row["time"], *(int(row[column]) for column in ("open", "high", "low", "close"))) for row in csv.DictReader(out.splitlines())]
            wanted = []
            for number_ in range(90):
                date = datetime.date(2026, 1, 1) + datetime.timedelta(days=number_)
                begin, end = (datetime.datetime.combine(d, datetime.time(), zone) for d in (date, date + datetime.timedelta(days=1)))
                starts = range(int(begin.timestamp()), int(end.timestamp()), 3600)
                lengths.setdefault(len(starts), set()).add(f"{name if options else 'UTC'} {date}")
                text = begin.isoformat() if options else f"{date}T00:00:00Z"
                wanted.append((text, *day(starts)))
            equal(rows, wanted, (name, options))
    equal(lengths[23], {"America/New_York 2026-03-08", "Europe/Berlin 2026-03-29"})
    daemon.stop()
    return "360 days, two of them with 23 hours"


@scenario("875 moments of a quarter of an hour with an outage, a start in the middle of a minute and a crash of 7 %", beside=True)
def _():
    counts = collections.Counter()
    for seed in range(1, 5):
        place = Place()
        truth = {int(second): Decimal(price) for second, price in map(str.split, rehearse("moments", seed, f"{place.state}/history.sqlite3").splitlines())}
        first = min(truth)
        clock = WallClock(set_to=first + 3 * 3600)
        simulator = replaying("68900", environment=clock.environment)
        daemon = Daemon(place, simulator.urls, environment=clock.environment)
        fresh(place)
        client = Varlink(place.socket)
        moments = range(first, first + 875)
        known = []
        for begin in range(0, 875, 400):
            times = [second * 1000 for second in moments[begin:begin + 400]]
            known += client.call("io.btcpriced.History.GetPricesAt", times=times)["parameters"]["prices"]
        client.close()
        for second, answer in zip(moments, known):
            candle = answer["candle"]
            if not candle:
                counts["not known"] += 1
                continue
            covered = 60 if candle["coveredSeconds"] is None else candle["coveredSeconds"]
            is_whole_ = answer["step"] == "minute" and covered >= 50
            counts["known to the minute" if is_whole_ else "about"] += 1
            # A tick has the price of its second or of the one before.
            values = [truth[second], truth.get(second - 1, truth[second])]
            low, high = Decimal(candle["low"]), Decimal(candle["high"])
            if is_whole_:
                assert any(low <= value <= high for value in values), (seed, second - first, answer, values)
            elif not any(low <= value <= high for value in values):
                counts["outside of the part that is known"] += 1
        # What is not whole is said to be about, refused, and its range is that of the part.
        second = first + 300
        done = btcctl(place, "at", str(datetime.datetime.fromtimestamp(second, UTC).isoformat()), environment=clock.environment)
        assert " - about $" in done.out, done
        equal(btcctl(place, "at", str(datetime.datetime.fromtimestamp(second, UTC).isoformat()), "--max-step", "1m", environment=clock.environment).status, 75)
        stop(daemon, simulator)
    assert counts["about"] > 1000 and counts["known to the minute"] > 1500, counts
    return str(dict(counts))


@scenario("longer candles than the daemon keeps are made of its own: quarters of an hour, weeks from Monday, months of the reader", beside=True)
def _():
    chance, known = random.Random(58), {}
    today = int(time.time()) // 86_400 * 86_400

    def rows(database, name, step, starts):
        known[name] = []
        for start in starts:
            open_, close = chance.randint(60_000, 70_000), chance.randint(60_000, 70_000)
            row = (start, open_, max(open_, close) + chance.randint(0, 90), min(open_, close) - chance.randint(0, 90), close)
            known[name].append(row)
            database.execute(f"INSERT INTO {name} ({COLUMNS}) VALUES (?,'USD',?,?,?,?,?,?,'own')", [start, *(price * 10**8 for price in row[1:]), step, step])

    def fill(database):
        rows(database, "day", 86_400, range(today - 200 * 86_400, today, 86_400))
        rows(database, "hour", 3600, (start for start in range(today - 60 * 86_400, today - 10 * 86_400, 3600) if chance.random() > 0.02))
        rows(database, "minute", 60, (start for start in range(today - 4 * 86_400, today - 3 * 86_400, 60) if chance.random() > 0.1))
    place, daemon = filled(fill)

    def printed(*words, zone="UTC"):
        out = btcctl(place, "history", *words, "--csv", environment={"TZ": zone}).out
        return [(int(row["start"]), *map(int, (row["open"], row["high"], row["low"], row["close"])), row["covered_minutes"]) for row in csv.DictReader(out.splitlines())]

    def made(name, key):
        """The same, computed here: the key is the start of the longer candle; whole ones have at least five sixths."""
        groups = {}
        for row in known[name]:
            groups.setdefault(key(row[0]), []).append(row)
        return {start: (start, rows[0][1], max(row[2] for row in rows), min(row[3] for row in rows), rows[-1][4], len(rows)) for start, rows in groups.items()}

    def agree(found, expected, minutes, of):
        assert found, "none"
        for row in found:
            want = expected[row[0]]
            equal(row[:5], want[:5])
            equal(row[5], "" if want[5] * minutes >= of else str(want[5] * minutes))
        return len(found)
    at = lambda second: datetime.datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%MZ")
    counts = []
    span = ["--since", at(today - 4 * 86_400), "--until", at(today - 3 * 86_400)]
    for step, seconds in (("5m", 300), ("15m", 900)):
        found = printed(*span, "--step", step)
        equal(len(found), 86_400 // seconds)
        counts.append(agree(found, made("minute", lambda second: second // seconds * seconds), 1, seconds // 60))
    found = printed("--since", at(today - 60 * 86_400), "--until", at(today - 10 * 86_400), "--step", "4h")
    counts.append(agree(found, made("hour", lambda second: second // 14_400 * 14_400), 60, 240))
    monday = lambda second: (second // 86_400 - (second // 86_400 + 3) % 7) * 86_400
    first = lambda second: int(datetime.datetime.fromtimestamp(second, UTC).replace(day=1, hour=0).timestamp())
    weeks = printed("--since", at(today - 150 * 86_400), "--until", at(monday(today)), "--step", "1w")
    counts.append(agree(weeks, made("day", monday), 1440, 7 * 1440))
    months = printed("--since", at(today - 150 * 86_400), "--until", at(first(today)), "--step", "1mo")
    equal([datetime.datetime.fromtimestamp(row[0], UTC).day for row in months], [1] * len(months))
    for row in months:
        equal(row[:5], made("day", first)[row[0]][:5])
    counts.append(len(months))
    # The last ones, with that of now; weeks of the reader's days are made of hours.
    equal([row[0] for row in printed("--step", "1w", "-n", "3", "--until", at(monday(today)))], [monday(today) - 86_400 * days for days in (21, 14, 7)])
    equal([row[0] for row in printed("--count", "5", "--until", at(today - 20 * 86_400))], [row[0] for row in known["hour"] if today - 20 * 86_400 - 5 * 3600 <= row[0] < today - 20 * 86_400])
    local = printed("--since", at(today - 50 * 86_400), "--until", at(today - 12 * 86_400), "--step", "1w", "--day-zone", "local", zone="Asia/Tokyo")
    for row in local:
        hours = [hour for hour in known["hour"] if row[0] <= hour[0] < row[0] + 7 * 86_400]
        equal((row[1:5], (row[0] + 9 * 3600) // 86_400 % 7), ((hours[0][1], max(h[2] for h in hours), min(h[3] for h in hours), hours[-1][4]), 4))
    assert len(local) >= 4, local
    for zone in ("America/New_York", "Asia/Tokyo"):
        # A day that is named is that of UTC, wherever the reader is; and the future has no candles.
        named = datetime.datetime.fromtimestamp(monday(today), UTC).strftime("%Y-%m-%d")
        equal([row[0] for row in printed("--step", "1w", "-n", "3", "--until", named, zone=zone)], [monday(today) - 86_400 * days for days in (21, 14, 7)])
        equal([row[0] for row in printed("--step", "1d", "-n", "2", "--until", "2099-01-01", zone=zone)], [today - 86_400, today])
    none = btcctl(place, "history", "--step", "1mo", "--since", at(first(today) + 86_400), "--until", at(first(today) + 2 * 86_400))
    equal((none.status, "No month begins in this time." in none.err), (1, True), none)
    line = json.loads(btcctl(place, "history", "--step", "1mo", "-n", "2", "--json", "--until", at(first(today))).out.splitlines()[0])
    equal((line["step"], line["start"] % 86_400_000), ("month", 0))
    for words, reason in ((["--count", "3", "--since", "1d"], "--count and --since exclude each other"), (["--step", "2h"], "--step")):
        refused = btcctl(place, "history", *words)
        equal(refused.status, 64)
        assert reason in refused.err, refused
    chart = btcctl(place, "chart", "--since", at(today - 50 * 86_400), "--until", at(today - 20 * 86_400), "--step", "4h")
    equal(chart.status, 0)
    assert "┃" in chart.out, chart.out
    refused = btcctl(place, "chart", "--span", "30d", "--step", "5m")
    equal(refused.status, 64)
    assert "'5m' is too short for this time: at most 2000 candles are drawn" in refused.err, refused
    refused = btcctl(place, "chart", "--span", "1h", "--step", "1mo")
    equal(refused.status, 64)
    assert "'1mo' is longer than this time" in refused.err, refused
    daemon.stop()
    return f"{counts} candles as computed here, {len(local)} weeks of Tokyo"


@scenario("the day matches an independent computation over three virtual days with gaps")
def _():
    seed = seeded().randrange(1 << 32)
    file = tempfile.NamedTemporaryFile(prefix="btc-priced-days-")
    figures = rehearse("history", seed, 3, file.name)
    # The prices without doubt, and those in doubt, which count only if there are no others.
    windows = [[collections.deque() for _ in range(3)] for _ in range(2)]
    compared = gaps = doubted = 0
    for line in open(file.name):
        second, price, *day = line.split()
        second = int(second)
        first = second // 60 * 60 - 1439 * 60
        if price != "-":
            value, is_in_doubt = Decimal(price.removesuffix("?")), price.endswith("?")
            prices, high, low = windows[is_in_doubt]
            prices.append((second, value))
            while high and high[-1][1] <= value:
                high.pop()
            high.append((second, value))
            while low and low[-1][1] >= value:
                low.pop()
            low.append((second, value))
            doubted += is_in_doubt
        else:
            gaps += 1
        for queue in windows[0] + windows[1]:
            while queue and queue[0][0] < first:
                queue.popleft()
        prices, high, low = windows[0] if windows[0][0] else windows[1]
        if prices:
            expected = [prices[0][1], high[0][1], low[0][1], prices[-1][1] - prices[0][1]]
            equal([Decimal(text) for text in day], expected, line)
            compared += 1
        else:
            equal(day, ["-"], line)
    assert compared > 200_000 and gaps > 100, (compared, gaps)
    return f"{compared} ticks compared, {gaps} without a price, {doubted} in doubt; {figures.splitlines()[-1]}"


@scenario("the chart in a terminal: it fits, marks the highest and the lowest price, and is redrawn")
def _():
    simulator, place = Simulator(), Place()
    daemon = Daemon(place, simulator.urls, sources=("binance", "coinbase", "bitstamp"), backfill=True)
    fresh(place)
    wait_until(lambda: daemon.said("minutes from"), seconds=60, what=lambda: f"the candles; {daemon.lines}")
    for columns in (40, 80, 120, 200):
        terminal = Terminal(columns=columns, rows=40, BTC_PRICED_SOCKET=place.socket)
        terminal.run("clear; btcctl chart --span 7d; echo done")
        screen = terminal.shows("done", "┘", "▲", "▼")
        lines = screen.splitlines()
        assert all(len(line) <= columns for line in lines), screen
        assert max(len(line.rstrip()) for line in lines) > columns - 3, screen
        assert lines[0].startswith("BTC/USD $") and "7d" in lines[0], screen
        assert sum(any("\u2800" < c <= "\u28ff" for c in line) for line in lines) >= 8, screen
        if columns == 80:
            colored = terminal.screen(colors=True)
            assert "\x1b[32m" in colored or "\x1b[31m" in colored, colored
            terminal.run("clear; btcctl chart --span 24h --candles --ascii; echo done")
            screen = terminal.shows("done", "#")
            assert screen.isascii(), screen
            terminal.run("clear; btcctl chart --span 1h --watch")
            before = terminal.shows("┘", "1h")
            after = wait_until(lambda: (s := terminal.screen()) != before and s, what="another drawing")
            equal(len(after.splitlines()), len(before.splitlines()))
            terminal.type("C-c")
            terminal.shows("$")
        terminal.close()
    piped = btcctl(place, "chart", "--span", "30d", environment={"LC_ALL": "C"})
    assert piped.out.isascii() and max(map(len, piped.out.splitlines())) <= 80, piped.out
    equal(btcctl(place, "chart", "-c", "EUR").status, 64)
    daemon.stop()


@scenario("queries during the ticks: many at once all get their replies, and one whose reply is not read delays nothing", beside=True)
def _():
    place, simulator = Place(), replaying("68900")
    daemon = Daemon(place, simulator.urls)
    settled(place)
    daemon.stop()
    database = sqlite3.connect(f"{place.state}/history.sqlite3")
    start = int(time.time()) // 60 * 60 - 100_000 * 60
    database.executemany(
        f"INSERT OR IGNORE INTO minute ({COLUMNS}) VALUES (?,'USD',?,?,?,?,60,60,'own')",
        ((start + index * 60, *[(60_000 + index) * 10**8] * 4) for index in range(100_000)))
    database.commit()
    database.close()
    daemon = Daemon(place, simulator.urls)
    settled(place)
    lazy = Varlink(place.socket)
    lazy.send({"method": "io.btcpriced.History.GetHistory", "parameters": {"from": 0}, "more": True})
    results = []

    def ask():
        client = Varlink(place.socket)
        client.send({"method": "io.btcpriced.History.GetHistory", "parameters": {"from": 0}, "more": True})
        starts = []
        while True:
            reply = client.receive()
            starts += [candle["start"] for candle in reply["parameters"]["candles"]]
            assert len(reply["parameters"]["candles"]) <= 100
            if not reply.get("continues"):
                break
        results.append((len(starts), starts == sorted(set(starts)), reply["parameters"]["next"]))
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    equal(len(results), 8)
    assert all(count >= 100_000 and in_order and last is None for count, in_order, last in results), results
    resident = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{daemon.process.pid}/status").read_text())[1])
    assert resident < 60_000, f"{resident} KiB"
    equal(btcctl(place, "status", "--json").json["status"]["ticks"]["skipped"], 0)
    # A note does not cost a request for all minutes.
    note = btcctl(place, "history", "--since", "366d", "--step", "1s").err
    assert note.endswith("; --step 1h knows more.\n"), note
    # Without `more`: a part, and the start of the next one.
    client = Varlink(place.socket)
    part = client.call("io.btcpriced.History.GetHistory", **{"from": 0})["parameters"]
    equal((len(part["candles"]), part["next"]), (100, (start + 100 * 60) * 1000))
    few = client.call("io.btcpriced.History.GetHistory", **{"from": 0, "limit": 3})["parameters"]
    equal((len(few["candles"]), few["next"]), (3, (start + 3 * 60) * 1000))
    client.close()
    lazy.close()
    daemon.stop()
    return f"8 x {results[0][0]} candles, resident {resident} KiB"


@scenario("without a history nothing is stored, and the commands give the reason", beside=True)
def _():
    place, simulator = Place(), replaying("68900")
    daemon = Daemon(place, simulator.urls, "--history-enabled", "false")
    settled(place)
    equal(btcctl(place, "current", "--json").json["day"], None)
    for words in (["history"], ["at", "1h"], ["chart"]):
        done = btcctl(place, *words)
        equal(done.status, 1, words)
        assert "history.enabled is false" in done.err, done
    equal(Varlink(place.socket).call("io.btcpriced.History.GetDay")["error"], "io.btcpriced.History.Disabled")
    daemon.stop()
    equal(Path(place.state, "history.sqlite3").exists(), False)


main()
