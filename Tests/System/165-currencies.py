#!/usr/bin/env python3
"""The price in several currencies: each with its own markets, its own state and its own ticks."""

import os

from lib.btcpriced import *
from lib.gateway import Events, Gateway
from lib.rates import RateServer
from lib.terminal import Terminal

CURRENCIES = ROOT / "Sources" / "BTCPriceCore" / "Model" / "Currency.swift"
ALL = ["USD", "EUR", "GBP", "CHF", "CAD", "AUD", "JPY"]
# The rates of the simulator, see Sources/ExchangeSimulator/Pair.swift.
RATES = {"USD": 1, "EUR": 0.86, "GBP": 0.75, "CHF": 0.8, "CAD": 1.38, "AUD": 1.53, "JPY": 150}


def daemon_of(simulator, *arguments, place=None, currencies=("USD", "EUR"), sources=("binance", "coinbase", "bitstamp", "kraken")):
    """A daemon with these currencies, each with a tick per second."""
    intervals = [word for code in currencies[1:] for word in (f"--currency-{code}-interval-ms", "1000")]
    return Daemon(place or Place(), simulator.urls, "--currencies", ",".join(currencies), *intervals, *arguments, sources=sources)


def current(place, currency=None, *arguments):
    result = btcctl(place, "current", "--json", *(["-c", currency] if currency else []), *arguments)
    return result.json if result.out else {}


def fresh_in(place, currency, seconds=10):
    return wait_until(
        lambda: (s := current(place, currency)).get("freshness") == "fresh" and s, seconds=seconds,
        what=f"a fresh price in {currency}")


@scenario("each currency has the price of its own markets, and the first one is the default")
def each():
    simulator = replaying("68900")
    daemon = daemon_of(simulator, currencies=ALL)
    for code in ALL:
        state = fresh_in(daemon.place, code)
        equal((state["currency"], state["quote"]["currency"]), (code, code))
        expected = Decimal("68900") * Decimal(str(RATES[code]))
        equal(Decimal(state["quote"]["value"]), expected, code)
        assert state["quote"]["market"] in (f"BTC/{code}", "BTC/USDT"), state
    equal(current(daemon.place)["currency"], "USD")
    lines = {code: btcctl(daemon.place, "current", "-c", code).out.split(" - ")[1].strip() for code in ALL}
    equal(lines, {"USD": "$68,900.00", "EUR": "€59,254.00", "GBP": "£51,675.00", "CHF": "CHF 55,120.00", "CAD": "CA$95,082.00",
                  "AUD": "A$105,417.00", "JPY": "¥10,335,000"})
    equal(btcctl(daemon.place, "current", "--raw", "-c", "chf").out, "55120\n")
    equal(btcctl(daemon.place, "current", "--format", "{currency} {symbol} {price}", "-c", "JPY").out, "JPY ¥ ¥10,335,000\n")
    equal(btcctl(daemon.place, "current", "--raw", environment={"BTCCTL_CURRENCY": "EUR"}).out, "59254\n")
    equal(btcctl(daemon.place, "current", "--raw", "--currency", "GBP", environment={"BTCCTL_CURRENCY": "EUR"}).out, "51675\n")
    unknown = btcctl(daemon.place, "current", "-c", "SEK")
    equal(unknown.status, 64)
    assert "The price is not kept in SEK, only in USD, EUR, GBP, CHF, CAD, AUD, JPY" in unknown.err, unknown
    for verb in (["watch"], ["wait", "--timeout", "3s"], ["sources"]):
        equal(btcctl(daemon.place, *verb, "-c", "SEK").status, 64, verb)
    # Version 0.1.0 has no currencies: its calls get the first one.
    client = Varlink(daemon.place.socket)
    equal(client.call("io.btcpriced.Price.GetPrice")["parameters"]["state"]["quote"]["currency"], "USD")
    wrong = client.call("io.btcpriced.Price.GetPrice", currency="SEK")
    equal((wrong["error"], wrong["parameters"]["known"]), ("io.btcpriced.Price.UnknownCurrency", ALL))
    client.close()
    assert within(simulator.limits()), simulator.limits()
    stop(daemon, simulator)


@scenario("currencies that need more requests of their first exchange than its limit allows are named with the figures", beside=True)
def _():
    simulator = Simulator("--seed", "1")

    def said(interval, exchange):
        daemon = daemon_of(simulator, "--tick-interval-ms", interval, "--currency-EUR-sources", exchange, sources=(exchange,))
        fresh(daemon.place)
        daemon.stop()
        return [line for line in daemon.lines if "need" in line and "requests a minute" in line]
    text = "The ticks of USD, EUR need 460 requests a minute to coinbase, and its limit allows 422: some ticks have no new price."
    assert len(lines := said("150", "coinbase")) == 1 and text in lines[0], lines
    equal(said("1000", "coinbase"), [])
    # One request has the prices of all of Kraken's markets.
    equal(said("2000", "kraken"), [])


@scenario("convert, wait, watch, sources and currencies take a currency")
def verbs():
    simulator = replaying("68900")
    daemon = daemon_of(simulator)
    for code in ("USD", "EUR"):
        fresh_in(daemon.place, code)
        # An amount at an unconfirmed price is "about".
        wait_until(lambda: btcctl(daemon.place, "current", "-c", code, "--json").json["confirmation"] != "unconfirmed", what=f"a sure {code}")
    equal(btcctl(daemon.place, "convert", "0.05btc", "eur").out, "0.05 BTC = 5,000,000 sat = €2,962.70\n")
    equal(btcctl(daemon.place, "convert", "250eur", "250usd", "--raw").out, "0.00421912\n0.00362845\n")
    equal(btcctl(daemon.place, "convert", "250eur", "usd").out, "€250.00 = 0.00421912 BTC = 421,912 sat = $290.70\n")
    equal(btcctl(daemon.place, "convert", "250eur", "usd", "--raw").out, "290.69767442\n")
    equal(btcctl(daemon.place, "convert", "0.01eur", "usd", "--raw").out, "0.01162791\n", "less than a satoshi's accuracy is no limit")
    both = btcctl(daemon.place, "convert", "250eur", "1btc", "1btc").out.splitlines()
    equal(both[1:], 2 * ["1 BTC = 100,000,000 sat = $68,900.00"], "the default currency, whatever came before")
    both = btcctl(daemon.place, "convert", "250eur", "usd", "--json").json["converted"]
    equal((both["eur"], both["usd"], both["state"]["currency"], both["otherState"]["currency"]), ("250", "290.69767442", "EUR", "USD"))
    equal(btcctl(daemon.place, "convert", "59254eur").out, "€59,254.00 = 1 BTC = 100,000,000 sat\n")
    converted = btcctl(daemon.place, "convert", "1btc", "-c", "EUR", "--json").json["converted"]
    equal((converted["eur"], converted["unit"], "usd" in converted), ("59254", "btc", False))
    equal(btcctl(daemon.place, "wait", "-c", "EUR", "--above", "59k", "--below", "10k", "--raw").status, 10)
    watch = Watch(daemon.place, "-c", "EUR,USD")
    wait_until(lambda: len(watch.lines) >= 6, what="six lines")
    amounts = {line.split(" - ")[1] for line in watch.lines}
    equal(amounts, {"$68,900.00", "€59,254.00"})
    watch.stop()
    sources = btcctl(daemon.place, "sources", "-c", "EUR", "--json").json["sources"]
    equal([s["name"] for s in sources], ["kraken", "coinbase", "bitstamp", "binance"])
    equal({s["market"] for s in sources}, {"BTC/EUR"})
    equal([s["market"] for s in btcctl(daemon.place, "sources", "--json").json["sources"]], ["BTC/USDT"] + 3 * ["BTC/USD"])
    listed = btcctl(daemon.place, "currencies", "--json").json["currencies"]
    equal([(c["currency"], c["intervalMs"], c["state"]["currency"]) for c in listed], [("USD", 1000, "USD"), ("EUR", 1000, "EUR")])
    table = btcctl(daemon.place, "currencies").out.splitlines()
    assert len(table) == 3 and "€59,254.00" in table[2] and "kraken, coinbase, bitstamp, binance" in table[2], table
    equal(btcctl(daemon.place, "watch", "-c", "EUR,USD", "--bar", "waybar").status, 0)
    equal(btcctl(daemon.place, "watch", "-c", "EUR,USD", "--exec", "true").status, 64)
    equal(btcctl(daemon.place, "current", "-c", "EURO").status, 64)
    stop(daemon, simulator)


@scenario("on a terminal several currencies are a table with a row for each")
def table():
    simulator = replaying("68900")
    daemon = daemon_of(simulator)
    fresh_in(daemon.place, "EUR")
    terminal = Terminal(columns=90, BTC_PRICED_SOCKET=daemon.place.socket)
    terminal.run("clear; btcctl watch -c EUR,USD")
    screen = terminal.shows("EUR  €59,254.00  ", "USD  $68,900.00  ", " old")
    rows = [line for line in screen.splitlines() if line[:3] in ("EUR", "USD")]
    equal([row[:3] for row in rows], ["EUR", "USD"])
    simulator.faults("* always refuse\n")
    terminal.shows("EUR: Failed to update value.", "USD: Failed to update value.")
    terminal.close()
    stop(daemon, simulator)


@scenario("a fault of one market affects only its currency, and the next source responds in the same tick")
def faults():
    simulator = replaying("68900")
    daemon = daemon_of(simulator)
    # Kraken can't be requested every second, and comes last.
    equal(fresh_in(daemon.place, "EUR")["quote"]["source"], "coinbase")
    simulator.faults("bitstamp BTC/EUR always status 500\ncoinbase BTC/EUR always price x0.9\n")
    wait_until(lambda: current(daemon.place, "EUR")["quote"]["source"] in ("binance", "kraken"), what="another source of euros")
    ticks = set()
    for _ in range(20):
        euros, dollars = current(daemon.place, "EUR"), current(daemon.place)
        equal((euros["freshness"], euros["quote"]["value"]), ("fresh", "59254"))
        equal((dollars["freshness"], dollars["quote"]["value"]), ("fresh", "68900"))
        ticks.add(dollars["tick"])
        time.sleep(0.1)
    by_name = {s["name"]: s for s in btcctl(daemon.place, "sources", "-c", "EUR", "--json").json["sources"]}
    # A cooldown of 2.5 s, then one request that probes.
    assert by_name["coinbase"]["use"] in ("resting", "probing"), by_name["coinbase"]
    assert all(s["use"] != "resting" for s in btcctl(daemon.place, "sources", "--json").json["sources"]), "dollars are well"
    daemon.says("coinbase BTC/EUR")
    simulator.faults("* BTC/EUR always status 503\n")
    wait_until(lambda: current(daemon.place, "EUR")["freshness"] == "stale", what="stale euros")
    shown = btcctl(daemon.place, "current", "-c", "EUR")
    assert shown.err.startswith("Failed to update value. Displaying last updated value from "), shown
    equal(current(daemon.place)["freshness"], "fresh")
    stop(daemon, simulator)


@scenario("killed at random moments, no currency loses what a client has seen")
def killed():
    random = seeded()
    simulator = Simulator("--seed", "5")
    place = Place()
    kills = int(os.environ.get("KILLS", "3"))
    seen = {}
    for _ in range(kills):
        daemon = daemon_of(simulator, place=place, currencies=("USD", "EUR", "CHF"))
        for code in ("USD", "EUR", "CHF"):
            found = current(place, code)
            if code in seen:
                assert found["quote"] and found["observedBoottime"] >= seen[code], (code, found, seen)
        for code in ("USD", "EUR", "CHF"):
            fresh_in(place, code)
        end = time.monotonic() + random.uniform(0, 1.5)
        while time.monotonic() < end:
            for code in ("USD", "EUR", "CHF"):
                seen[code] = current(place, code)["observedBoottime"]
        daemon.kill()
    stop(simulator)
    return f"{kills} kills"


@scenario("a reload adds and removes currencies, and the others continue")
def reload():
    simulator = replaying("68900")
    place = Place()
    file = f"{place.state}/config.toml"

    def configure(*codes):
        with open(file, "w") as out:
            out.write(f"currencies = {json.dumps(codes)}\nsources = [\"coinbase\", \"kraken\"]\n")
            out.write("".join(f"currency.{code}.interval-ms = 1000\n" for code in codes[1:]))
            out.write("".join(f'source.{n}.url = "{simulator.urls[n]}"\n' for n in ("binance", "coinbase", "bitstamp", "kraken")))
    configure("USD", "EUR")
    daemon = spawn([BINARIES / "btc-priced", "--config", file, "--state-directory", place.state, "--runtime-directory",
                    place.runtime], stderr=subprocess.DEVNULL, start_new_session=True)
    wait_until(lambda: can_connect(place.socket), what="the socket")
    before = fresh_in(place, "EUR")
    watch = Watch(place, "-c", "EUR", "--json")
    gateway = Gateway(place.socket)
    events = Events(gateway.port)
    wait_until(lambda: {state["currency"] for state in events.states} == {"USD", "EUR"}, what="events in both")
    dropped = Varlink(place.socket)
    dropped.send({"method": "io.btcpriced.Price.WatchPrice", "parameters": {"currencies": ["EUR", "USD"]}, "more": True})
    configure("EUR", "JPY")
    daemon.send_signal(signal.SIGHUP)
    wait_until(lambda: current(place).get("currency") == "EUR", what="the other first currency")
    fresh_in(place, "JPY")
    while "error" not in (reply := dropped.receive()):
        pass
    equal((reply["error"], reply["parameters"]), ("io.btcpriced.Price.UnknownCurrency", {"currency": "USD", "known": ["EUR", "JPY"]}))
    assert current(place)["tick"] >= before["tick"], "the count goes on"
    equal(btcctl(place, "current", "-c", "USD").status, 64)
    wait_until(lambda: watch.states[-1]["tick"] > before["tick"] + 3, what="more ticks for the watch")
    watch.stop()
    # The gateway requests the list of currencies every 10 s.
    wait_until(lambda: events.states[-1]["currency"] == "JPY", what="an event in the new currency")
    assert not events.is_closed and all(event != "gone" for event, *_ in events.events), events.events[-5:]
    equal({state["currency"] for state in events.states[-3:]}, {"EUR", "JPY"})
    events.stop()
    gateway.stop()
    # A restart shows the stored prices, including those that are not in dollars.
    daemon.kill()
    daemon.wait()
    simulator.faults("* always refuse\n")
    daemon = spawn([BINARIES / "btc-priced", "--config", file, "--state-directory", place.state, "--runtime-directory",
                    place.runtime], stderr=subprocess.DEVNULL, start_new_session=True)
    wait_until(lambda: can_connect(place.socket), what="the socket")
    equal({c: current(place, c)["quote"]["value"] for c in ("EUR", "JPY")}, {"EUR": "59254", "JPY": "10335000"})
    daemon.terminate()
    daemon.wait()
    stop(simulator)


@scenario("with 152 currencies, no price and no ban is lost by a restart or a kill, and every list can be read", beside=True)
def _():
    codes = re.search(r'codes: StaticString = """(.*?)"""', CURRENCIES.read_text(), re.S)[1].replace("\\", "").split()
    derived = [code for code in codes if code not in ("USD", "EUR")][:150]
    server = RateServer({**dict.fromkeys(derived, "1000"), "USD": "1.16"})
    simulator, place = replaying("68900"), Place()
    config = Path(place.state, "config.toml")
    config.write_text(f"currencies = {json.dumps(['USD', 'EUR', *derived])}\n"
                      + "".join(f'currency.{code}.derive = "always"\n' for code in derived) + server.tables())

    def start():
        return Daemon(place, simulator.urls, "--config", config, sources=("coinbase", "binance", "bitstamp", "kraken"),
                      rates="ecb,frankfurter")

    def unpriced():
        listed = btcctl(place, "currencies", "--json").json["currencies"]
        equal(len(listed), 152)
        return [currency["currency"] for currency in listed if not currency["state"]["quote"]]
    daemon = start()
    wait_until(lambda: not unpriced(), seconds=60, what=lambda: f"a price in {unpriced()}", every=0.5)
    simulator.faults("binance always status 418 retry-after 3600 body {}")
    kept = Path(place.runtime, "last-quote.json")
    wait_until(lambda: "binance" in json.loads(kept.read_text())["rests"], what="the kept ban")
    for end in (Daemon.stop, Daemon.kill):
        end(daemon)
        asked = simulator.requests()["binance"]
        daemon = start()
        equal(unpriced(), [])
        daemon.says("binance has a cooldown from before the start, until ")
        equal({s["name"]: s["use"] for s in btcctl(place, "sources", "--json").json["sources"]}["binance"], "limited")
        fresh(place)
        assert not any("last-quote" in line for line in daemon.lines), daemon.lines
        equal(simulator.requests()["binance"], asked)
    gateway = Gateway(place.socket)
    for metrics in (btcctl(place, "metrics").out, gateway.get("/metrics").body.decode()):
        equal(set(re.findall(r'quote="(...)"', metrics)), {"USD", "EUR", *derived})
    equal(len(gateway.get("/v1/currencies").json["currencies"]), 152)
    events = Events(gateway.port)
    wait_until(lambda: len({state["currency"] for state in events.states}) == 152, what="an event in every currency")
    events.stop()
    gateway.stop()
    for verb in ("status", "sources", "currencies", "current"):
        equal(btcctl(place, verb).status, 0, verb)
    size = kept.stat().st_size
    stop(daemon, simulator, server)
    return f"{size} bytes"


main()
