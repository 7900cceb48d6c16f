#!/usr/bin/env python3
"""The HTTP gateway: its formats as other programs read them, its handling of old prices, and hostile clients."""

import base64
import datetime
import hashlib
import os
import resource
import sqlite3

from lib.btcpriced import *
from lib.gateway import Events, Gateway, free_port, get

FOUR = ("binance", "coinbase", "bitstamp", "kraken")


class World:
    """A simulator, a daemon with prices in all its currencies, and a gateway."""

    def __init__(self, *arguments, currencies=("USD", "EUR", "JPY"), daemon=(), **options):
        self.simulator = replaying("68901.23")
        self.place = Place()
        intervals = [word for code in currencies[1:] for word in (f"--currency-{code}-interval-ms", "1000")]
        self.daemon_arguments = ("--currencies", ",".join(currencies), *intervals, *daemon)
        self.start_daemon()
        for code in currencies:
            wait_until(lambda: btcctl(self.place, "current", "-c", code, "--json").json["freshness"] == "fresh", what=code)
        self.gateway = Gateway(self.place.socket, *arguments, **options)
        self.get = self.gateway.get

    def start_daemon(self):
        self.daemon = Daemon(self.place, self.simulator.urls, *self.daemon_arguments, sources=FOUR)

    def stop(self):
        for part in (self.gateway, self.daemon, self.simulator):
            part.stop()


def problem(reply, status):
    equal((reply.status, reply.headers["content-type"]), (status, "application/problem+json"), reply)
    equal(reply.json["status"], str(status))
    assert reply.json["title"] and reply.json["detail"], reply
    return reply.json["detail"]


# --- Formats ---------------------------------------------------------------------------------------------------------

@scenario("each format has the values that its programs read, by their own rules")
def _():
    world = World()
    # mempool's: Core Lightning walks members to a number or a string; LNbits has a JSONPath "$.USD"; Home Assistant value_json.USD.
    prices = world.get("/api/v1/prices")
    equal(prices.status, 200, prices)
    equal(list(prices.json), ["time", "USD", "EUR", "JPY"])
    equal((prices.json["USD"], prices.json["EUR"], prices.json["JPY"]), ("68901.23", "59255.06", "10335184.5"))
    assert abs(int(prices.json["time"]) - time.time()) < 5, prices.json
    for code in ("USD", "EUR"):
        assert isinstance(json.loads(prices.body)[code], float), "a JSON number"
    # BTCPay Server's rate providers: Value<decimal?> of each member of BTC, without those that are not above zero.
    rates = world.get("/exrates/BTC").json
    equal(rates, {"BTC": {"USD": "68901.23", "EUR": "59255.06", "JPY": "10335184.5"}})
    # ZEUS reads BTCPay Server's format: a bare array, in the order of the request.
    pairs = world.get("/api/rates?storeId=abc&currencyPairs=BTC_EUR,BTC_USD,BTC_XYZ").json
    equal([(p["code"], p["currencyPair"], p["cryptoCode"], p["rate"]) for p in pairs],
          [("EUR", "BTC_EUR", "BTC", "59255.06"), ("USD", "BTC_USD", "BTC", "68901.23")])
    equal(pairs[1]["name"], "US Dollar")
    equal(len(world.get("/api/rates?storeId=").json), 3)
    equal(world.get("/rates?currencyPairs=BTC_JPY").json["data"][0]["code"], "JPY")
    # Our own format.
    price = world.get("/v1/price")
    equal((price.json["currency"], price.json["price"], price.json["state"]), ("USD", "68901.23", "fresh"))
    equal((price.headers["cache-control"], price.headers["content-type"]), ("max-age=1", "application/json"))
    equal(price.headers["age"], "0", "the response is new")
    assert 0 <= int(price.headers["price-age"]) <= 2 and price.headers["last-modified"].endswith(" GMT"), price
    equal(world.get("/v1/price?currency=eur").json["price"], "59255.06")
    equal(world.get("/v1/price", If_None_Match=world.get("/v1/price?currency=EUR").headers["etag"]).status, 200)
    head = world.get("/v1/price", "HEAD")
    equal((head.status, head.body), (200, b""))
    kept = world.get("/openapi.json").headers["etag"]
    same = world.get("/openapi.json", If_None_Match=f'"x", W/{kept}')
    equal((same.status, same.body, same.headers["etag"], "content-length" in same.headers), (304, b"", kept, False))
    listed = world.get("/v1/currencies").json["currencies"]
    equal([c["currency"] for c in listed], ["USD", "EUR", "JPY"])
    equal([s["name"] for s in world.get("/v1/sources?currency=EUR").json["sources"]], ["kraken", "coinbase", "bitstamp", "binance"])
    equal(world.get("/v1/status").json["ticking"], "running")
    for path in ("/v1/sources", "/v1/status", "/v1/currencies", "/metrics"):
        text = world.get(path).body.decode()
        assert "http://" not in text and "127.0.0.1" not in text and world.place.socket not in text, path
    equal(world.get("/openapi.json").json["openapi"], "3.1.0")
    found = world.get("/metrics", Accept="application/openmetrics-text; version=1.0.0").headers["content-type"]
    assert found.startswith("application/openmetrics-text"), found
    assert b"# EOF" not in world.get("/metrics").body
    for path in ("/nothing", "/v1/prices", "/v1/price?currency=SEK", "/v1/watch?currency=USD,SEK", "/../etc/passwd", "/%2e%2e/etc/passwd", "/v1/price%00", "/v1/price%2f"):
        detail = problem(world.get(path), 404)
        if "SEK" in path:
            equal(detail, "The price is not kept in SEK, only in USD, EUR, JPY.")
    for path in ("/v1/price?currency=", "/v1/price?currency=EURO", "/v1/price?max-age=-1", "/v1/price?max-age=x",
                 "/v1/price?currency=USD,EUR", "/v1/watch?currency=1", "/api/v1/prices?confirmed=yes", "/rate/USD?confirmed=2"):
        problem(world.get(path), 400)
    # A typo does not return another currency. The formats of other programs ignore unknown parameters.
    equal(problem(world.get("/v1/price?curency=EUR"), 400), "There is no parameter 'curency'; did you mean 'currency'?")
    for path in ("/v1/status?x", "/v1/sources?max-age=1", "/v1/at?time=1h&amount=1", "/v1/history?since=1h&bogus=1", "/v1/day?time=1h", "/v1/watch?x=1"):
        problem(world.get(path), 400)
    equal(world.get("/api/v1/prices?bogus=1").status, 200)
    rate = world.get("/rate/eur").json
    assert rate["currency"] == "EUR" and Decimal(rate["rates"]["median"]) > 1000, rate
    equal(problem(world.get("/rate/SEK"), 404), "The price is not kept in SEK, only in USD, EUR, JPY.")
    sources = world.get("/v1/sources").json["sources"]
    assert sources and all(source["elsewhere"] for source in sources), sources
    equal(world.get("/v1/status").json["elsewhere"], [source["name"] for source in sources])
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        problem(world.get("/v1/price", method), 405)
    world.stop()


@scenario("the page's content security policy has the digests of its script and style")
def _():
    world = World(currencies=["USD"])
    page = world.get("/")
    for name in ("script", "style"):
        text = page.body.decode().split(f"<{name}>", 1)[1].split(f"</{name}>", 1)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page.headers["content-security-policy"], f"GatewayRoutes.swift: the digest of the {name} is {digest}"
    world.stop()


@scenario("the history: candles, a past price, the day, mempool's format", beside=True)
def _():
    simulator, place = Simulator(), Place()
    daemon = Daemon(place, simulator.urls, "--currencies", "USD,EUR", sources=("binance", "coinbase", "bitstamp"), backfill=True)
    wait_until(lambda: any("EUR were filled" in line and "minutes from" in line for line in daemon.lines), seconds=90, what=lambda: f"the history; {daemon.lines}")
    gateway = Gateway(place.socket)
    minutes = gateway.get("/v1/history?since=3h&step=1m").json
    equal((minutes["currency"], minutes["step"], minutes["next"]), ("USD", "minute", None))
    assert 178 <= len(minutes["candles"]) <= 181, len(minutes["candles"])
    candle = minutes["candles"][0]
    equal(list(candle), ["time", "open", "high", "low", "close", "ticks", "fresh", "origin"])
    assert Decimal(candle["low"]) <= Decimal(candle["open"]) <= Decimal(candle["high"]), candle
    def in_both():
        def read():
            return gateway.get("/v1/history?since=2y&step=1d&currency=eur").json

        days = read()
        shown = btcctl(place, "history", "-c", "EUR", "--since", "2y", "--step", "1d").out.splitlines()
        # Older hours, which arrive once a minute, make their days again.
        return days["candles"][:-1] == read()["candles"][:-1] and (days, shown)

    days, lines = wait_until(in_both, what="two readings of the same days")
    assert days["currency"] == "EUR" and len(days["candles"]) >= 729, len(days["candles"])
    shown = {line.split()[0]: line.split()[1:5] for line in lines}
    for candle in days["candles"][:-1]:
        equal([candle[name] for name in ("open", "high", "low", "close")], shown[candle["time"].replace(".000Z", "Z")])
    table = gateway.get("/v1/history?since=3h&step=1m&format=csv")
    equal(table.headers["content-type"], "text/csv; charset=utf-8; header=present")
    rows = table.body.decode().split("\r\n")
    equal(rows[0], "time,open,high,low,close,ticks,fresh,origin,covered_minutes,doubtful,currency,pair,covered_seconds,single")
    assert ",USD,BTC/USD," in rows[1] and "link" not in table.headers, rows[1]
    assert rows[1].startswith(minutes["candles"][0]["time"] + "," + minutes["candles"][0]["open"]), rows[:2]
    equal(gateway.get("/v1/history?since=3h&step=1m", Accept="text/csv").headers["content-type"], table.headers["content-type"])
    moment = minutes["candles"][60]
    at = gateway.get(f"/v1/at?time={moment['time'][:16]}Z").json
    equal((at["price"], at["step"], at["candle"]), (moment["open"], "minute", moment))
    equal(at["approximate"], False)
    # For a year ago only the day is known, which the response shows. The price was in its range.
    long_ago = gateway.get("/v1/at?time=400d").json
    equal((long_ago["step"], long_ago["approximate"]), ("day", True))
    assert Decimal(long_ago["candle"]["low"]) <= Decimal(long_ago["price"]) <= Decimal(long_ago["candle"]["high"]), long_ago
    assert problem(gateway.get("/v1/at?time=400d&max-step=1m"), 404).startswith("Only the day is known, from "), long_ago
    old = int(time.time()) - 400 * 86_400
    equal(gateway.get(f"/api/v1/historical-price?timestamp={old}").json["step"], "day")
    problem(gateway.get(f"/api/v1/historical-price?timestamp={old}&max-step=1h"), 404)
    equal(gateway.get("/v1/history?since=90d&step=1m").json["coarser"], "hour")
    equal(gateway.get("/v1/history?since=3h&step=1m").json["coarser"], None)
    # At the next tick in euros.
    state = wait_until(lambda: (d := btcctl(place, "current", "-c", "EUR", "--json").json["day"]) and d["backfilled"] and d,
                       what="the day")
    day = gateway.get("/v1/day?currency=EUR").json
    equal((day["currency"], day["open"], day["high"], day["backfilled"]), ("EUR", state["open"], state["high"], True))
    assert gateway.get("/v1/price").json["day"]["since"].endswith("Z")
    # mempool's format: a number for each currency, and the time.
    second = int(datetime.datetime.fromisoformat(moment["time"].replace("Z", "+00:00")).timestamp())
    past = gateway.get(f"/api/v1/historical-price?timestamp={second}").json
    equal((list(past["prices"][0]), past["prices"][0]["time"], past["prices"][0]["USD"]), (["time", "USD", "EUR"], str(second), moment["open"]))
    assert Decimal("0.85") < Decimal(past["exchangeRates"]["USDEUR"]) < Decimal("0.87"), past["exchangeRates"]
    equal(list(gateway.get(f"/api/v1/historical-price?currency=EUR&timestamp={second}").json["prices"][0]), ["time", "EUR"])
    series = gateway.get("/api/v1/historical-price?currency=USD").json["prices"]
    assert len(series) >= 730 and int(series[0]["time"]) > int(series[-1]["time"]) and int(series[0]["time"]) % 86_400 == 0, series[:2]
    # The same price at a time with and without `timestamp`.
    for day in (series[0], series[1], series[40], series[-1]):
        equal(gateway.get(f"/api/v1/historical-price?currency=USD&timestamp={day['time']}").json["prices"], [day])
    equal([gateway.get("/api/v1/historical-price?timestamp=1000000000").json.get(key) for key in ("prices", "step")], [[], None])
    problem(gateway.get("/v1/at?time=2012-01-01"), 404)
    for path in ("/v1/at", "/v1/at?time=someday", "/v1/at?time=1h&max-step=2m", "/v1/history?since=1h&until=2h", "/v1/history?step=1w", "/v1/history?format=xml",
                 "/v1/history?currency=EURO", "/api/v1/historical-price?timestamp=-1", "/api/v1/historical-price?timestamp=now"):
        problem(gateway.get(path), 400)
    problem(gateway.get("/v1/day?currency=XXX"), 404)
    problem(gateway.get("/api/v1/historical-price?currency=USD&max-step=1h"), 404)
    for path in ("/v1/history?currency=XXX", "/v1/at?time=1h&currency=SEK"):
        problem(gateway.get(path), 404)
    # A long history comes in parts.
    daemon.stop()
    database = sqlite3.connect(f"{place.state}/history.sqlite3")
    start = int(time.time()) // 3600 * 3600 - 5000 * 3600
    database.executemany(
        "INSERT OR IGNORE INTO hour (start, currency, open, high, low, close, ticks, fresh, origin) VALUES (?,'USD',?,?,?,?,3600,3600,'own')",
        ((start + index * 3600, *[(60_000 + index) * 10**8] * 4) for index in range(4000)))
    database.commit()
    database.close()
    daemon = Daemon(place, simulator.urls, "--currencies", "USD,EUR", sources=("binance", "coinbase", "bitstamp"))
    settled(place)
    # Only dollars have hours there. Without a currency in the request, the others are left out.
    path = f"/api/v1/historical-price?max-step=1h&timestamp={start + 400 * 3600}"
    equal(list(gateway.get(path).json["prices"][0]), ["time", "USD"])
    problem(gateway.get(f"{path}&currency=EUR"), 404)
    since, times, parts = "300d", [], 0
    while since:
        part = gateway.get(f"/v1/history?since={since}&step=1h").json
        assert len(part["candles"]) <= 2000
        times += [candle["time"] for candle in part["candles"]]
        since, parts = part["next"], parts + 1
    assert times == sorted(set(times)) and len(times) > 4500 and parts == 3, (len(times), parts)
    # A table has no member for that.
    path, rows = "/v1/history?since=300d&step=1h&format=csv&currency=USD", []
    while path:
        part = gateway.get(path)
        rows += part.body.decode().split("\r\n")[1:-1]
        link = part.headers.get("link")
        path = link and "/v1/history" + re.fullmatch(r'<(\?.*)>; rel="next"', link)[1]
    equal([row.split(",")[0] for row in rows], times)
    # It is made of what was read, not of the request's text.
    part = gateway.get("/v1/history?since=300d&step=1h&format=csv&until=2100-01-01%2014:30&until=%0D%0Ax-injected:%20yes")
    equal("x-injected" in part.headers, False)
    assert re.fullmatch(r'<\?currency=USD&step=1h&format=csv&since=[\d:.TZ-]+&until=2100-01-01T14:30:00.000Z>; rel="next"', part.headers["link"]), part.headers

    # However a request is spelled, its body is made once.
    def cost(targets):
        """Seconds of the processor that these requests cost the gateway."""
        def spent():
            return sum(map(int, Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        before = spent()
        for target in targets:
            equal(gateway.get(target).status, 200)
        return (spent() - before) / os.sysconf("SC_CLK_TCK")
    first = datetime.datetime.fromtimestamp(start, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M")
    target = f"/v1/history?step=1h&since={first}"
    digits = [place for place, letter in enumerate(target) if letter.isdigit() and place > 20]
    spelled = ["".join(f"%{ord(letter):02x}" if place in digits and number >> digits.index(place) & 1 else letter
                       for place, letter in enumerate(target)) for number in range(150)]
    once, each = cost([target] * 150), cost(spelled)
    assert each < 2 * once + 0.15, (once, each)
    stop(gateway, daemon, simulator)


@scenario("an old price is not served: 503 with Retry-After, never zero or null; a currency with an old price is left out", beside=True)
def _():
    world = World("--max-age", "3", currencies=("USD", "EUR"))
    equal(world.get("/healthz").json, {"state": "fresh"})
    world.simulator.faults("* BTC/EUR always status 503\n")
    wait_until(lambda: "EUR" not in world.get("/api/v1/prices").json, every=0.2, what="no euros")
    equal(world.get("/api/v1/prices").json["USD"], "68901.23")
    equal(list(world.get("/exrates/BTC").json["BTC"]), ["USD"])
    equal(world.get("/api/rates?currencyPairs=BTC_EUR").json, [])
    old = world.get("/v1/price?currency=EUR")
    detail = problem(old, 503)
    reason = "no (exchange responded|update has ended in time)"
    assert re.fullmatch(rf"The price in EUR is \d+ s old, more than max-age allows \(3 s\): {reason}\.", detail), detail
    assert int(old.headers["retry-after"]) >= 1, old
    equal(world.get("/v1/price?currency=EUR&max-age=600").json["state"], "stale")
    by_code = {c["currency"]: c for c in world.get("/v1/currencies").json["currencies"]}
    equal(("price" in by_code["USD"], "price" in by_code["EUR"], by_code["EUR"]["state"]), (True, False, "stale"))
    assert int(by_code["EUR"]["ageMs"]) > 3000 and re.fullmatch(reason, by_code["EUR"]["reason"]), by_code
    world.simulator.faults("* always refuse\n")
    for path in ("/v1/price", "/api/v1/prices", "/exrates/BTC", "/api/rates"):
        reply = wait_until(lambda: (r := world.get(path)).status == 503 and r, every=0.2, what=path)
        problem(reply, 503)
        assert not re.search(rb"\bnull\b|[:\[] *0[,}\]]", reply.body), reply
        for text in ("refused", "127.0.0.1"):
            assert text not in reply.body.decode(), "no error text of the daemon"
    detail = problem(world.get("/healthz"), 503)
    assert re.fullmatch(rf"The price in USD is stale: {reason}\.", detail), detail
    world.simulator.faults("")
    wait_until(lambda: world.get("/healthz").status == 200, every=0.2, what="its recovery")
    equal(world.get("/v1/price").json["price"], "68901.23")
    world.daemon.stop()
    for path in ("/v1/price", "/healthz", "/metrics", "/v1/status"):
        equal(problem(wait_until(lambda: (r := world.get(path)).status == 503 and r, what=path), 503), "The daemon can't be reached.")
    world.stop()


@scenario("after a reboot the age of the price is unknown: 503 until a tick succeeds, for any allowed age", beside=True)
def _():
    world = World(currencies=["USD"])
    world.daemon.stop()
    os.unlink(f"{world.place.runtime}/last-quote.json")
    world.simulator.faults("* always refuse")
    world.start_daemon()
    wait_until(lambda: btcctl(world.place, "current", "--json").json["freshness"] == "stale", what="the kept price")
    wait_until(lambda: world.get("/v1/status").status == 200, what="the daemon")
    for path in ("/v1/price?max-age=86400", "/api/v1/prices", "/exrates/BTC", "/api/rates?currencyPairs=BTC_USD"):
        problem(world.get(path), 503)
    world.simulator.faults("")
    wait_until(lambda: world.get("/v1/price").status == 200, what="the price")
    world.stop()


@scenario("monitoring does not resume the ticks, and a client that wants a price does", beside=True)
def _():
    world = World(currencies=("USD",), daemon=("--tick-pause-when-idle", "1"))

    def ticking():
        return btcctl(world.place, "status", "--json").json["status"]["ticking"]
    wait_until(lambda: ticking() == "idle", every=0.1, what="idle")
    for path in ("/healthz", "/metrics", "/v1/status", "/v1/sources"):
        world.get(path)
        time.sleep(0.3)
    assert b'btcpriced_price_state="paused"} 1' in world.get("/metrics").body
    equal(ticking(), "idle")
    equal(problem(world.get("/healthz"), 503), "The price in USD is stale: the updates are paused while no program reads the price.")
    # The last price is too old by now. The request waits for the tick that it causes.
    time.sleep(1)
    equal(world.get("/v1/price?max-age=1").json["state"], "fresh")
    btcctl(world.place, "pause")
    time.sleep(2)
    detail = problem(world.get("/v1/price?max-age=1"), 503)
    assert detail.endswith(" s old, more than max-age allows (1 s): the updates are paused."), detail
    world.stop()


@scenario("an unconfirmed price is shown like any other, unless the request does not want it", beside=True)
def _():
    simulator, place = replaying("68901.23"), Place()
    # With a single source the first price is unconfirmed for ten minutes.
    daemon = Daemon(place, simulator.urls, sources=("coinbase",))
    fresh(place)
    gateway = Gateway(place.socket)
    equal(gateway.get("/v1/price").json["confirmation"], "unconfirmed")
    for path in ("/api/v1/prices", "/exrates/BTC", "/api/rates?currencyPairs=BTC_USD", "/rates", "/rate/USD"):
        for form in (path, path + ("&" if "?" in path else "?") + "confirmed=0"):
            reply = gateway.get(form)
            assert reply.status == 200 and b"68901.23" in reply.body, reply
        refused = gateway.get(path + ("&" if "?" in path else "?") + "confirmed=1")
        equal(problem(refused, 503), "The price is unconfirmed.")
        assert int(refused.headers["retry-after"]) >= 1, refused
    equal(problem(gateway.get("/v1/price?confirmed=1"), 503), "The price is unconfirmed.")
    equal(problem(gateway.get("/v1/price?max-uncertainty=0.5"), 503), "The price has an unknown uncertainty.")
    stop(gateway, daemon, simulator)


@scenario("the gateway's options require what a program that knows only its address can't ask for", beside=True)
def _():
    simulator, place = replaying("68901.23"), Place()
    daemon = Daemon(place, simulator.urls, sources=("coinbase",))
    fresh(place)
    strict, sure = Gateway(place.socket, "--confirmed"), Gateway(place.socket, "--max-uncertainty", "0.5%")
    for path in ("/rate/USD", "/exrates/BTC", "/v1/price"):
        equal(problem(strict.get(path), 503), "The price is unconfirmed.")
        equal(strict.get(f"{path}?confirmed=0").status, 200)
        equal(problem(sure.get(path), 503), "The price has an unknown uncertainty.")
    equal(problem(sure.get("/rate/USD?confirmed=yes"), 400), "confirmed is 0, 1 or strict.")
    strict.stop()
    stop(sure, daemon, simulator)


@scenario("no request over HTTP makes the daemon request an exchange")
def _():
    simulator = Simulator("--seed", "7", faults="* always status 500\n")
    place = Place()
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "60000", sources=FOUR)
    wait_until(lambda: btcctl(place, "status", "--json").json["status"]["ticks"]["done"] == 1, what="the first tick")
    gateway = Gateway(place.socket)
    before = sum(s["requests"] for s in btcctl(place, "sources", "--json").json["sources"])
    for path in ("/v1/price", "/v1/currencies", "/api/v1/prices", "/exrates/BTC", "/", "/metrics", "/v1/status") * 3:
        gateway.get(path)
        time.sleep(0.1)
    equal(sum(s["requests"] for s in btcctl(place, "sources", "--json").json["sources"]), before)
    stop(gateway, daemon, simulator)


@scenario("invented currencies cost the daemon nothing, and a daemon that hangs delays no client for long", beside=True)
def _():
    world = World(currencies=("USD",))

    def calls():
        return int(re.search(r'btcpriced_calls_total\{method="ListSources",result="ok"\} (\d+)', btcctl(world.place, "metrics").out)[1])
    before = calls()
    for number in range(500):
        problem(world.get(f"/v1/sources?currency={''.join(chr(65 + number // 26 ** place % 26) for place in range(3))}"), 404)
    equal(calls(), before)
    stream = Events(world.gateway.port)
    wait_until(lambda: stream.states, what="an event")
    os.kill(world.daemon.process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    wait_until(lambda: [e for e in stream.events if e[0] == "gone"], what="the news that it is gone")
    gone = time.monotonic() - begun
    # Usually within 5 s.
    assert gone < 12, gone
    begun = time.monotonic()
    problem(world.get("/v1/price"), 503)
    first = time.monotonic() - begun
    begun = time.monotonic()
    for path in ("/healthz", "/metrics", "/v1/status", "/v1/sources", "/v1/price"):
        problem(world.get(path), 503)
    others = time.monotonic() - begun
    assert first < 4 and others < 10, (first, others)
    late = Events(world.gateway.port)
    wait_until(lambda: late.events, what="an event")
    equal({e[0] for e in late.events}, {"gone"}, "no old price as fresh")
    os.kill(world.daemon.process.pid, signal.SIGCONT)
    wait_until(lambda: late.states and late.states[-1]["state"] == "fresh", what="the price again")
    world.stop()
    return f"gone after {gone:.1f} s; {first:.1f} s, then five requests in {others:.1f} s"


@scenario("a client that requests the past on 60 connections leaves half of the calls to the others", beside=True)
def _():
    world = World(currencies=("USD",))
    done, replies = False, {}

    def flood(number):
        moment = int(time.time()) - 1_000_000 * (number + 1)
        while not done:
            moment -= 1
            try:
                reply = world.get(f"/api/v1/historical-price?timestamp={moment}", timeout=60, X_Forwarded_For="198.51.100.1")
            except OSError:
                return
            replies[reply.status] = replies.get(reply.status, 0) + 1
    threads = [threading.Thread(target=flood, args=(number,), daemon=True) for number in range(60)]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(replies.values()) >= 60, seconds=60, what="the first replies")
    for number in range(10):
        reply = world.get(f"/api/v1/historical-price?timestamp={1_700_000_000 + number}", timeout=60, X_Forwarded_For="198.51.100.2")
        equal(reply.status, 200, reply)
    # Another program with the same address waits in turn.
    reply = world.get("/api/v1/historical-price?timestamp=1600000000", timeout=60, X_Forwarded_For="198.51.100.1")
    equal(reply.status, 200, reply)
    done = True
    world.stop()
    for thread in threads:
        thread.join()
    return f"the busy client's replies: {replies}"


# --- Addresses and permitted hosts -----------------------------------------------------------------------------------

@scenario("the gateway serves only its own host names and addresses, and pages of other sites only if they are listed")
def _():
    world = World("--hosts", "Shop.internal,host.docker.internal", "--origins", "https://shop.example", currencies=("USD",))
    for host in ("localhost", f"127.0.0.1:{world.gateway.port}", "shop.internal:99", "HOST.docker.internal", "10.0.0.1", "[2001:db8::1]:80"):
        equal(world.get("/v1/price", Host=host).status, 200, host)
    for host in ("evil.example", "127.0.0.1.evil.example", "10.1"):
        for path in ("/v1/price", "/", "/metrics", "/nothing"):
            problem(world.get(path, Host=host), 421)
    problem(world.get("/v1/price", Origin="https://evil.example"), 403)
    problem(world.get("/v1/price", Sec_Fetch_Site="cross-site"), 403)
    listed = world.get("/v1/price", Origin="https://shop.example", Sec_Fetch_Site="cross-site")
    equal((listed.status, listed.headers["access-control-allow-origin"]), (200, "https://shop.example"))
    assert "access-control-allow-origin" not in world.get("/v1/price").headers
    equal(world.get("/v1/price").headers["x-content-type-options"], "nosniff")
    any_host = Gateway(world.place.socket, "--hosts", "*", "--origins", "null, moz-extension://0b1c,capacitor://localhost")
    equal(any_host.get("/v1/price", Host="evil.example").status, 200)
    for origin in ("null", "moz-extension://0b1c", "capacitor://localhost"):
        equal(any_host.get("/v1/price", Origin=origin).headers["access-control-allow-origin"], origin)
    problem(any_host.get("/v1/price", Origin="chrome-extension://0b1c"), 403)
    any_host.stop()
    for option, entry in (("--hosts", "*.internal"), ("--hosts", "http://price.internal"), ("--origins", "https://*.shop.example")):
        wrong = subprocess.run([BINARIES / "btc-price-http", option, entry], capture_output=True, text=True, timeout=10)
        equal(wrong.returncode, 64, entry)
        assert f"'{entry}' is not " in wrong.stderr and ": write " in wrong.stderr, wrong
    world.stop()


@scenario("the gateway listens at several addresses and Unix sockets, with a warning for addresses off loopback")
def _():
    folder = tempfile.mkdtemp(prefix="btc-priced-http-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/http.sock"
    world = World(listen=["127.0.0.1:18341", "[::1]:18341", "0.0.0.0:18342", f"unix:{path}"], currencies=("USD",))
    for address in (("127.0.0.1", 18341), ("::1", 18341), ("127.0.0.1", 18342)):
        equal(get(address, "/v1/price").status, 200, address)
    equal(get(path, "/v1/price", Host="anything.example").status, 200)
    equal(oct(os.stat(path).st_mode & 0o777), "0o666")
    warnings = [line for line in world.gateway.lines if "warning" in line]
    equal(len(warnings), 1)
    assert "0.0.0.0:18342 can be reached from other machines" in warnings[0], warnings
    taken = subprocess.run([BINARIES / "btc-price-http", "--socket", world.place.socket, "--listen", "127.0.0.1:18341"],
                           capture_output=True, text=True, timeout=10)
    equal(taken.returncode, 1)
    assert "cannot listen at 127.0.0.1:18341: Address already in use" in taken.stderr, taken
    taken = subprocess.run([BINARIES / "btc-price-http", "--socket", world.place.socket, "--listen", f"unix:{path}"],
                           capture_output=True, text=True, timeout=10)
    equal(taken.returncode, 1, taken)
    assert os.path.exists(path) and get(path, "/v1/price").status == 200, "the socket is still the first one's"
    both = Gateway(world.place.socket, listen=["[::]:18343"])
    for address in (("127.0.0.1", 18343), ("::1", 18343)):
        equal(get(address, "/v1/price").status, 200, address)
    both.stop()
    wrong = subprocess.run([BINARIES / "btc-price-http", "--listen", "localhost"], capture_output=True, text=True, timeout=10)
    equal(wrong.returncode, 64)
    equal(world.gateway.stop(), 0)
    world.stop()


# --- Event streams ---------------------------------------------------------------------------------------------------

@scenario("an event stream has each tick of each currency, reports the end of the daemon, and continues after its return", beside=True)
def _():
    world = World(currencies=("USD", "EUR"))
    both, euros = Events(world.gateway.port), Events(world.gateway.port, "/v1/watch?currency=EUR")
    wait_until(lambda: len(both.states) >= 6 and len(euros.states) >= 3, what="events")
    assert "content-type: text/event-stream" in both.text.lower() and "retry: 1000" in both.text, both.text[:500]
    equal({s["currency"] for s in both.states}, {"USD", "EUR"})
    equal({(s["currency"], s["price"]) for s in euros.states}, {("EUR", "59255.06")})
    last = euros.events[-1][1]
    again = Events(world.gateway.port, "/v1/watch", Last_Event_ID="another-1")
    wait_until(lambda: len(again.states) >= 2, what="the newest at once")
    ids = [i for _, i, _ in both.events]
    equal(len(set(ids)), len(ids), "each event has its own id")
    assert last in ids, "the ids are those of all streams"
    world.daemon.stop()
    wait_until(lambda: ("gone", None, {"state": "unreachable"}) in both.events, what="the news that it is gone")
    before = len(both.states)
    world.start_daemon()
    wait_until(lambda: len(both.states) > before + 2, what="more events")
    for stream in (both, euros, again):
        assert not stream.is_closed, "the stream goes on"
        stream.stop()
    # Without a stream the gateway watches nothing.
    def watchers():
        return btcctl(world.place, "status", "--json").json["status"]["clients"]["watchers"]
    wait_until(lambda: watchers() == 0, every=0.1, what="no watcher")
    world.stop()


@scenario("with updates=changes an event stream has the changes between the ticks too; another one has the ticks", beside=True)
def _():
    simulator, place = Simulator("--seed", "7"), Place()
    daemon = Daemon(place, simulator.urls, sources=("binance", "coinbase"), streams=("binance",))
    gateway = Gateway(place.socket)
    problem(gateway.get("/v1/watch?updates=often"), 400)
    calm = Events(gateway.port)
    wait_until(lambda: len(calm.states) >= 2, what="ticks")
    equal(simulator.streams()["binance"]["opened"], 0, "nobody needs a stream yet")
    live = Events(gateway.port, "/v1/watch?updates=changes")
    wait_until(lambda: len(live.states) >= 3 and simulator.streams()["binance"]["open"] == 1, what="the stream")
    before = len(live.states), len(calm.states)
    wait_until(lambda: len(live.states) >= before[0] + 20, what="changes")
    changes, ticks = len(live.states) - before[0], len(calm.states) - before[1]
    assert changes >= 2 * ticks, f"{changes} events with changes, {ticks} without"
    assert len({state["price"] for state in live.states[before[0]:]}) >= 10, live.states
    live.stop()
    # The gateway's watch returns to ticks.
    wait_until(lambda: len(calm.states) >= before[1] + ticks + 3, what="ticks after it")
    calm.stop()
    gateway.stop()
    daemon.stop()
    return f"{changes} events with changes, {ticks} without"


@scenario("a stream that names a currency that a reload drops is ended with the reason; the others go on", beside=True)
def _():
    simulator, place = replaying("68901.23"), Place()
    configuration = Path(place.state, "config.toml")
    configuration.write_text('currencies = ["USD", "EUR"]\ncurrency.EUR.interval-ms = 1000\n')
    daemon = Daemon(place, simulator.urls, "--config", configuration)
    fresh(place)
    gateway = Gateway(place.socket)
    euros, others = Events(gateway.port, "/v1/watch?currency=EUR"), Events(gateway.port)
    wait_until(lambda: euros.states and {state["currency"] for state in others.states} == {"USD", "EUR"}, what="events")
    configuration.write_text('currencies = ["USD"]\n')
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: euros.is_closed, what="the end of the stream")
    name, _, data = euros.events[-1]
    equal((name, data), ("ended", {"state": "ended", "reason": "The price is not kept in EUR, only in USD."}))
    before = len(others.states)
    wait_until(lambda: len(others.states) > before + 1, what="more events")
    equal([name for name, _, _ in others.events if name != "price"], [])
    problem(gateway.get("/v1/watch?currency=EUR"), 404)
    stop(gateway, daemon, simulator)


@scenario("above the limit of event streams one more gets a retry; a client that does not read harms nobody")
def _():
    world = World("--connections", "40", currencies=("USD",), daemon=("--tick-interval-ms", "100"))
    lazy = []
    for _ in range(10):
        client = socket.create_connection(("127.0.0.1", world.gateway.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.sendall(b"GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
        lazy.append(client)
    streams = [Events(world.gateway.port) for _ in range(10)]
    wait_until(lambda: all(s.states for s in streams), what="events")
    refused = world.get("/v1/watch")
    problem(refused, 503)
    assert int(refused.headers["retry-after"]) >= 1, refused
    time.sleep(2)
    counts = [len(s.states) for s in streams]
    assert min(counts) >= 15, counts
    streams.pop().stop()
    wait_until(lambda: (s := Events(world.gateway.port)) and (time.sleep(0.2) or s.states), every=0.1, what="room for one")
    for client in lazy:
        client.close()
    world.stop()


@scenario("a stream that is read late gets few old events, then the newest of each currency; it is told that the daemon is gone", beside=True)
def _():
    world = World(currencies=("USD", "EUR"), daemon=("--tick-interval-ms", "100"))
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect(("127.0.0.1", world.gateway.port))
    client.sendall(b"GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n")

    quick, text = Events(world.gateway.port), b""

    def number(event):
        return int(event[1].split("-")[1])

    wait_until(lambda: len(quick.states) >= 160, every=0.2, what="eighty ticks of two currencies")
    newest = number(quick.events[-1])

    def numbers(currency):
        return [int(n) for n in re.findall(rb'id: \w+-(\d+)\nevent: price\ndata: {"currency":"%s"' % currency, text)]

    client.settimeout(10)

    def read():
        more = client.recv(1 << 16)
        assert more, f"the stream ended after {text[-300:]}"
        return more

    while not all(numbers(code) and numbers(code)[-1] > newest for code in (b"USD", b"EUR")):
        text += read()
    old = sum(n <= newest for code in (b"USD", b"EUR") for n in numbers(code))
    assert old <= 40, f"{old} old events of 160 were sent"
    quick.stop()
    suspend(world.daemon.process)
    wait_until(lambda: world.get("/healthz").status == 503, what="the gateway sees it")
    while b"event: gone" not in text:
        text += read()
    client.close()
    world.daemon.process.send_signal(signal.SIGCONT)
    world.stop()
    return f"{old} old events of 160"


# --- Behind other servers ---------------------------------------------------------------------------------------------

def snippet(language):
    """The lines in docs/http.md for a program."""
    return re.search(rf"(?ms)^```{language}\n(.*?)^```$", (ROOT / "docs" / "http.md").read_text())[1]


@scenario("nginx and Caddy in front of the gateway pass on prices and events, with the documented configuration", beside=True)
def _():
    folder = tempfile.mkdtemp(prefix="btc-priced-proxy-")
    os.chmod(folder, 0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/http.sock"
    world = World(listen=[f"unix:{path}"], currencies=("USD",))
    port = free_port()
    configuration = Path(folder, "nginx.conf")
    configuration.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ access_log off;\n"
        f"client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; "
        f"scgi_temp_path {folder}/e;\nserver {{ listen 127.0.0.1:{port};\n"
        + snippet("nginx").replace("/run/btc-price-http/http.sock", path) + "} }\n")
    caddyfile = Path(folder, "Caddyfile")
    other = free_port()
    caddyfile.write_text("{\nadmin off\n}\n" + snippet("caddy").replace("/run/btc-price-http/http.sock", path).replace(
        "price.internal", f"http://127.0.0.1:{other}"))
    for name, command, proxy, prefix in (
            ("nginx", ["nginx", "-c", configuration], port, "/btc"), ("caddy", ["caddy", "run", "--config", caddyfile, "--adapter", "caddyfile"], other, "")):
        if not shutil.which(name):
            raise Skip(f"{name} is absent")
        process = spawn(command, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": folder})

        def price():
            try:
                return get(("127.0.0.1", proxy), f"{prefix}/v1/price")
            except OSError:
                return None
        reply = wait_until(lambda: (r := price()) and r.status == 200 and r, what=name, every=0.05)
        equal(reply.json["price"], "68901.23")
        events = Events(proxy, f"{prefix}/v1/watch")
        wait_until(lambda: len(events.states) >= 3, what=f"events through {name}")
        events.stop()
        page = get(("127.0.0.1", proxy), f"{prefix}/")
        equal(page.status, 200)
        assert not re.search(rb"""["'=]/v1/""", page.body), "the page asks for what is beside it"
        process.terminate()
        process.wait(timeout=10)
    world.stop()


# --- Abuse -----------------------------------------------------------------------------------------------------------

class Steady:
    """A well-behaved client next to the others: ten requests a second on a kept connection, and on new ones."""

    def __init__(self, world):
        self.world, self.done, self.count, self.errors = world, False, 0, []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        import http.client
        kept = http.client.HTTPConnection("127.0.0.1", self.world.gateway.port, timeout=5)
        while not self.done:
            try:
                kept.request("GET", "/v1/price")
                reply = kept.getresponse()
                body = reply.read()
                other = self.world.get("/v1/price")
                if reply.status != 200 or other.status != 200 or b'"68901.23"' not in body:
                    self.errors.append((reply.status, other.status))
            except OSError as error:
                self.errors.append(repr(error))
                kept.close()
            self.count += 1
            time.sleep(0.1)

    def stop(self):
        self.done = True
        self.thread.join()
        equal(self.errors, [])
        return self.count


def send(port, *parts, wait=0.0):
    """The response to these bytes, until the gateway closes the connection or sends nothing more."""
    client = socket.create_connection(("127.0.0.1", port))
    client.settimeout(2)
    found = b""
    try:
        for part in parts:
            client.sendall(part)
            time.sleep(wait)
        while part := client.recv(65536):
            found += part
    except TimeoutError:
        found += b"<silent>"
    except OSError:
        pass
    client.close()
    return found


@scenario("next to hostile clients a well-behaved one loses nothing")
def _():
    world = World("--connections", "200", currencies=("USD",))
    port = world.gateway.port
    steady = Steady(world)
    host = b"Host: localhost\r\n"
    # Idle connections up to the limit and above: those idle for longest are closed.
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(400)]
    time.sleep(0.5)
    gone = 0
    for client in idle:
        client.setblocking(False)
        try:
            gone += client.recv(1) == b""
        except BlockingIOError:
            pass
    assert gone >= 195, gone
    # Slowloris: a byte now and then. Half of the connections have had a response before.
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for number, client in enumerate(slow):
        if number % 2:
            client.sendall(b"GET /v1/price HTTP/1.1\r\n" + host + b"\r\n")
            assert b"68901.23" in client.recv(4096)
        client.sendall(b"GET /v1/price HTTP/1.1\r\n" + host)
    begun = time.monotonic()
    ended = set()
    while len(ended) < len(slow) and time.monotonic() - begun < 20:
        for client in slow:
            try:
                client.sendall(b"X-A: b\r\n")
                client.setblocking(False)
                if client.recv(1024) == b"":
                    ended.add(client)
            except BlockingIOError:
                pass
            except OSError:
                ended.add(client)
        time.sleep(0.5)
    took = time.monotonic() - begun
    assert len(ended) == len(slow) and took < 14, (len(ended), took)
    for client in idle + slow:
        client.close()

    def refused(*lines, body=b""):
        found = send(port, b"\r\n".join(lines) + b"\r\n\r\n" + body)
        assert found.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")) and b"<silent>" not in found, (lines[:3], found[:200])
    get_line = b"GET /v1/price HTTP/1.1"
    refused(get_line, b"Host: localhost", b"X-Long: " + b"a" * 20_000)
    refused(b"GET /" + b"a" * 20_000 + b" HTTP/1.1", b"Host: localhost")
    refused(get_line, b"Host: localhost", *[b"X-%d: y" % i for i in range(200)])
    refused(get_line, b"Host: localhost", b"Host: evil.example")
    refused(get_line)
    refused(get_line, b"Host: localhost", b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")
    refused(get_line, b"Host: localhost", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")
    refused(get_line, b"Host: localhost", b"Content-Length: 5", body=b"hello")
    refused(get_line, b"Host: localhost", b"Content-Length: 0", b"Content-Length: 5", body=b"hello")
    refused(get_line, b"Host: localhost", b"Name with space: x")
    refused(b"GET /v1/price HTTP/9.9", b"Host: localhost")
    refused(b"NONSENSE")
    refused(b"\x16\x03\x01\x02\x00\x01\x00")
    # Pipelined requests get their responses in order.
    many = send(port, (get_line + b"\r\n" + host + b"\r\n") * 99 + get_line + b"\r\n" + host + b"Connection: close\r\n\r\n")
    equal(many.count(b"HTTP/1.1 200 OK"), 100)
    # A client that closes its half gets its response. So does one that wants another protocol, whose connection then ends.
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(get_line + b"\r\n" + host + b"\r\n")
    client.shutdown(socket.SHUT_WR)
    found = b""
    while part := client.recv(65536):
        found += part
    assert b'"68901.23"' in found, found
    # So does one of an event stream.
    client = socket.create_connection(("127.0.0.1", port))
    client.settimeout(30)
    client.sendall(b"GET /v1/watch HTTP/1.1\r\n" + host + b"\r\n")
    client.shutdown(socket.SHUT_WR)
    found = b""
    while found.count(b"event: price") < 2 and (part := client.recv(65536)):
        found += part
    assert found.count(b"event: price") >= 2, found
    client.close()
    # Nothing follows the head of a response to HEAD: the next response does.
    for path in (b"/v1/watch", b"/v1/price", b"/"):
        found = send(port, b"HEAD " + path + b" HTTP/1.1\r\n" + host + b"\r\n" + get_line + b"\r\n" + host + b"Connection: close\r\n\r\n")
        head, _, rest = found.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK") and rest.startswith(b"HTTP/1.1 200 OK") and b'"68901.23"' in rest, (path, found)
    found = send(port, get_line + b"\r\n" + host + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
    assert b'"68901.23"' in found and b"<silent>" not in found, found
    # A large body is refused, and the client can read the refusal.
    posted = send(port, b"POST /v1/price HTTP/1.1\r\n" + host + b"Content-Length: 300000\r\n\r\n" + b"a" * 300_000)
    assert posted.startswith(b"HTTP/1.1 405 Method Not Allowed"), posted[:200]
    # A health check may send no name. No browser does so.
    for name in (b"", host):
        old = send(port, b"GET /v1/price HTTP/1.0\r\n" + name + b"\r\n")
        assert b" 200 OK" in old.splitlines()[0] and b'"68901.23"' in old, old
    absolute = send(port, b"GET http://evil.example/v1/price HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert absolute.startswith(b"HTTP/1.1 421"), absolute[:100]
    # Clients that send without reading.
    deaf = socket.create_connection(("127.0.0.1", port))
    deaf.setblocking(False)
    sent = 0
    for _ in range(200):
        try:
            sent += deaf.send((b"GET / HTTP/1.1\r\n" + host + b"\r\n") * 100)
        except BlockingIOError:
            time.sleep(0.01)
    random = seeded()
    for _ in range(300):
        send_quietly(port, random.randbytes(random.randrange(1, 2000)))
    deaf.close()
    count = steady.stop()
    status = (Path("/proc") / str(world.gateway.process.pid) / "status").read_text()
    resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1])
    assert resident < 60_000, resident
    world.stop()
    return f"{count} times two requests, {gone} idle connections closed, slowloris ended after {took:.1f} s, resident {resident} KiB"


def send_quietly(port, data):
    client = socket.create_connection(("127.0.0.1", port))
    try:
        client.sendall(data)
    except OSError:
        pass
    client.close()


@scenario("2,000 clients that read no response cost at most 64 MiB, and a new one is accepted", beside=True)
def _():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    simulator, place = Simulator("--seed", "3"), Place()
    daemon = Daemon(place, simulator.urls, sources=("coinbase", "bitstamp"), backfill=True)
    fresh(place)
    gateway = Gateway(place.socket)
    path = "/v1/history?since=23h&step=1m"
    whole = wait_until(lambda: (r := gateway.get(path)).status == 200 and len(r.json["candles"]) > 1300 and r, seconds=90, every=1, what="a history")
    deaf = []
    for number in range(2100):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", gateway.port))
        # Every fourth one has a request of its own.
        asked = f"{path}&until={number % 1300}m" if number % 4 == 0 else path
        client.sendall(f"GET {asked} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 4)
        deaf.append(client)
    # Behind all of those requests, on a machine that may be slow.
    equal(gateway.get("/v1/price", timeout=60).status, 200)
    status = (Path("/proc") / str(gateway.process.pid) / "status").read_text()
    own = int(re.search(r"RssAnon:\s+(\d+)", status)[1])
    assert own < 64 * 1024, f"{own} KiB"
    for client in deaf:
        client.close()
    gateway.stop()
    daemon.stop()
    return f"{len(whole.body)} bytes each, {own} KiB of memory"


@scenario("the daemon restarted under load: no wrong price, and no error except 503")
def _():
    restarts = int(os.environ.get("RESTARTS", "10"))
    world = World(currencies=("USD",))
    done, found, wrong = False, {}, []

    def ask():
        while not done:
            try:
                reply = world.get("/v1/price")
            except OSError as error:
                wrong.append(repr(error))
                continue
            found[reply.status] = found.get(reply.status, 0) + 1
            if reply.status == 200 and reply.json["price"] != "68901.23" or reply.status not in (200, 503):
                wrong.append(reply)
    threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(restarts):
        world.daemon.kill() if number % 2 else world.daemon.stop()
        time.sleep(0.1)
        world.start_daemon()
        wait_until(lambda: world.get("/v1/price").status == 200, what="the price again")
    done = True
    for thread in threads:
        thread.join()
    equal(wrong, [])
    world.stop()
    return f"{restarts} restarts, {found}"


@scenario("schemathesis finds no difference from the description of the interface")
def _():
    python = Path(os.environ.get("VARLINK_PYTHON", ROOT / ".build/venv/bin/python3"))
    if not (python.parent / "schemathesis").exists():
        raise Skip("schemathesis is absent")
    world = World(currencies=("USD", "EUR"))
    folder = tempfile.mkdtemp(prefix="btc-priced-schemathesis-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    configuration = Path(folder, "schemathesis.toml")
    # A price that is too old has status 503, as in the description.
    # A schema can't express that the start is before the end, or that 30 February does not exist. Those get status 400.
    configuration.write_text(
        '[checks]\nnot_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]\n'
        '[[operations]]\ninclude-operation-id = ["getHistory", "getPriceAt", "getEvents"]\n'
        'checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", "4xx", 503]\n')
    random = seeded()
    done = subprocess.run(
        [python.parent / "schemathesis", "--config-file", configuration, "run", f"http://127.0.0.1:{world.gateway.port}/openapi.json", "--exclude-path", "/v1/watch",
         "--max-examples", os.environ.get("EXAMPLES", "20"), "--seed", str(random.randrange(1 << 32)), "--no-color",
         "--checks", "all", "--exclude-checks", "unsupported_method"],
        capture_output=True, text=True, timeout=600, cwd=folder)
    equal(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
    world.stop()
    return done.stdout.strip().splitlines()[-1].strip("= ")


main()
