#!/usr/bin/env python3
"""Prices that are derived from another currency's by a reference rate, and prices that a reference rate checks."""

import contextlib
import datetime
import json
import os
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lib.btcpriced import *
from lib.gateway import Gateway
from lib.rates import RATES, RateServer, day

LIBRARY = ROOT / "packaging" / "exchanges"
FOUR = ("binance", "coinbase", "bitstamp", "kraken")


def start(place, simulator, server, currencies, *lines, rates="ecb,frankfurter", **options):
    path = f"{place.state}/config.toml"
    listed = ", ".join(f'"{code}"' for code in currencies)
    intervals = [f"currency.{code}.interval-ms = 1000" for code in {*currencies, "EUR"} - {"USD"}]
    Path(path).write_text("\n".join([f"currencies = [{listed}]", *intervals, *lines, server.tables() if server else ""]))
    return Daemon(place, simulator.urls, "--config", path, sources=FOUR, rates=rates, **options)


def becomes(place, currency, condition, what, seconds=30):
    found = {}

    def look():
        found.update(state_in(place, currency))
        return condition(found)
    wait_until(look, seconds=seconds, what=lambda: f"{what}: {found}")
    return found


def is_derived(state):
    return state["freshness"] == "fresh" and state["derived"] is not None


@scenario("a currency without a market has a derived price, which is marked in every output", beside=True)
def _():
    server, simulator, place = RateServer(), replaying("68900"), Place()
    daemon = start(place, simulator, server, ["USD", "HUF"])
    shown = becomes(place, "HUF", lambda s: is_derived(s) and s["uncertainty"], "a derived price and its uncertainty")
    euros = state_in(place, "EUR")
    value = Decimal(euros["quote"]["value"]) * Decimal(RATES["HUF"])
    equal(Decimal(shown["quote"]["value"]), value)
    equal(shown["derived"], {"value": euros["quote"]["value"], "currency": "EUR", "rate": RATES["HUF"], "rateSource": "ecb", "rateDate": day()})
    equal((shown["confirmation"], shown["quote"]["market"], shown["quote"]["currency"]), ("unconfirmed", "BTC/EUR", "HUF"))
    made_of = f"€59,254.00 × {RATES['HUF']} (ecb, {day()})"
    text = f"≈ HUF {value:,.2f}"
    daemon.says("The price in EUR is kept too, because that in HUF may be derived from it.")

    def out(*words):
        result = btcctl(place, *words, "-c", "HUF")
        equal(result.status, 0, words)
        return result
    contains(out("current").out, f" - {text}, derived: {made_of}\n")
    raw = out("current", "--raw")
    equal(Decimal(raw.out), value)
    equal(raw.err, f"Derived: {made_of}.\n")
    equal(out("current", "--format", "{price} | {derived}").out, f"{text} | {made_of}\n")
    equal(out("current", "--json").json["derived"], shown["derived"])
    bar = out("current", "--bar", "waybar").json
    equal((bar["text"], bar["class"]), (text, ["unconfirmed", "derived"]))
    contains(bar["tooltip"], made_of)
    equal(out("current", "--bar", "i3blocks").json["short_text"], text)
    contains(out("convert", "1btc").out, "≈ HUF")
    contains(out("convert", "1btc").err, made_of)
    watch = Watch(place, "-c", "HUF")
    wait_until(lambda: any(made_of in line for line in watch.lines), what="a line of a watch")
    watch.stop()
    table = btcctl(place, "currencies").out
    contains(table, text)
    contains(table, "fresh, derived")
    metrics = btcctl(place, "metrics").out
    contains(metrics, 'btcpriced_price_derived{base="BTC",quote="HUF"} 1\n')
    contains(metrics, 'btcpriced_price_derived{base="BTC",quote="USD"} 0\n')
    gateway = Gateway(place.socket)
    equal(gateway.get("/v1/price?currency=HUF").json["derived"]["rateDate"], day())
    gateway.stop()
    # Without history.backfill no past rates are requested.
    equal(btcctl(place, "history", "-c", "HUF", "--json").out.count('"close"'), 0)
    for words in (["history"], ["at", "1h"], ["chart"]):
        none = btcctl(place, *words, "-c", "HUF")
        equal((none.status, none.err), (1, "btcctl: No price is recorded: the price in HUF is derived, and no price or no reference rate of that time is known.\n"), words)
    equal(server.past, [])
    equal(out("sources").out, "No source is known: the price may be derived from another currency's.\n")
    # The price of the euro is uncertain, too.
    share = lambda state: Decimal(state["uncertainty"]["plusMinus"]) / value
    # Right after a start on a busy machine, it includes the age of the euro's trade.
    settled = becomes(place, "HUF", lambda s: s["uncertainty"] and share(s) < Decimal("0.02"), "an uncertainty below 2 %")
    assert Decimal("0.0071") <= share(settled) < Decimal("0.02"), share(settled)
    equal(server.requests, {"ecb": 1, "frankfurter": 1})
    daemon.stop()
    daemon = start(place, simulator, server, ["HUF"])
    becomes(place, "HUF", is_derived, "a derived price of the first currency")
    status = btcctl(place, "status").out
    contains(status, text)
    contains(status, "derived, and no market's price")
    contains(status, made_of)
    stop(daemon, simulator, server)
    return f"± {share(settled) * 100:.2f} %"


@scenario("a derived currency has a past: each candle by the reference rate of its day, marked as derived, also over a restart", beside=True)
def _():
    server, simulator, place = RateServer(), Simulator("--seed", "9"), Place()
    daemon = start(place, simulator, server, ["USD", "HUF"], backfill=True)
    becomes(place, "HUF", is_derived, "a derived price")

    def days(code):
        rows = btcctl(place, "history", "-c", code, "--since", "300d", "--step", "1d", "--json").out.splitlines()
        return {row["start"]: row for row in map(json.loads, rows) if "start" in row}
    forints = wait_until(lambda: len(d := days("HUF")) > 299 and d, seconds=90, what=lambda: f"the days; {server.past}, {daemon.lines[-3:]}")
    euros = days("EUR")
    equal(set(forints) - set(euros), set())
    for start_of_day, candle in forints.items():
        date = datetime.datetime.fromtimestamp(start_of_day / 1000, datetime.timezone.utc).date()
        while not (rate := server.past_rate("HUF", date)):
            date -= datetime.timedelta(1)
        if date == datetime.datetime.now(datetime.timezone.utc).date():
            continue
        for name in ("open", "high", "low", "close"):
            equal(Decimal(candle[name]), (Decimal(euros[start_of_day][name]) * Decimal(str(rate))).quantize(Decimal("0.01")), (date, name))
        equal((candle["origin"], candle["currency"]), ("derived", "HUF"))
    today = datetime.datetime.now(datetime.timezone.utc).date()
    equal(server.past[0], f"/v2/rates?base=EUR&from={today - datetime.timedelta(365)}&to={today}&quotes=HUF")
    shown = btcctl(place, "at", "100d", "0.5btc", "-c", "HUF")
    contains(shown.out, "; derived)")
    contains(shown.out, " ≈ HUF ")
    contains(shown.out, "derived from another currency's by the reference rate of the day")
    minute = wait_until(
        lambda: (known := btcctl(place, "at", "3h", "-c", "HUF", "--json").json.get("at")) and known["step"] == "minute" and known, seconds=60, what="the minutes")
    equal((minute["candle"]["origin"], minute["approximate"]), ("derived", True))
    table = subprocess.run([BINARIES / "btcctl", "at", "--socket", place.socket, "--csv", "-", "-c", "HUF"], input="2026-01-05T12:00Z,0.5 btc\n", capture_output=True, text=True)
    contains(table.stdout, ",HUF,day,")
    contains(table.stdout, ",derived,")
    fetched = btcctl(place, "at", "100d", "-c", "HUF", "--fetch", "--json").json["at"]
    equal((fetched["step"], fetched["candle"]["origin"]), ("minute", "derived"))
    equal(btcctl(place, "chart", "-c", "HUF", "--span", "30d").status, 0)
    # Of moments without a rate the minute of the euro is known; the file ends, and says so.
    old = "".join(f"{int(time.time()) - day_ * 86_400}\n" for day_ in (760, 770, 780))
    table = subprocess.run(
        [BINARIES / "btcctl", "at", "--socket", place.socket, "--csv", "-", "-c", "HUF", "--fetch"], input=old, capture_output=True, text=True, timeout=60)
    equal((table.returncode, table.stderr.count("no reference rate of its day is known")), (1, 3), table)
    daemon.stop()
    asked = len(server.past)
    # A day of the time when the currency had a market.
    own = sorted(forints)[-10]
    with contextlib.closing(sqlite3.connect(f"{place.state}/history.sqlite3")) as database, database:
        database.execute("INSERT INTO currency VALUES ('HUF')")
        database.execute(
            "INSERT INTO day (start, currency, open, high, low, close, ticks, fresh, origin) VALUES (?, 'HUF', ?, ?, ?, ?, 86400, 86400, 'own')",
            [own // 1000, *[25_000_000 * 10**8] * 4])
    daemon = start(place, simulator, None, ["USD", "HUF"], server.tables())
    becomes(place, "HUF", is_derived, "a derived price after a restart")
    again = days("HUF")
    equal(again.keys(), forints.keys())
    equal({start_of_day for start_of_day in again if again[start_of_day]["origin"] != "derived"}, {own})
    equal(again[own]["close"], "25000000")
    assert len(server.past) == asked, "history.backfill is false"
    stop(daemon, simulator, server)
    return f"{len(forints)} days"


@scenario("a source of rates that a user describes is tried, used, and replaces a built-in one", beside=True)
def _():
    server, simulator, place = RateServer(), replaying("68900"), Place()
    mine = """
reference-rates = ["mine"]
[reference-rate.mine]
url = "http://127.0.0.1:%d/v2/rates"
base = "EUR"
row = { of = "", where = "/quote", is = "{QUOTE}" }
price = "/rate"
time = "/date"
time-is = "book"
""" % server.server.server_address[1]
    path = Path(place.state, "mine.toml")
    path.write_text(mine)
    tried = subprocess.run([BINARIES / "btc-priced", "--config", path, "--try", "mine"], capture_output=True, text=True, timeout=30)
    equal(tried.returncode, 0, tried.stderr)
    contains(tried.stdout, f"1 EUR = {RATES['HUF']} HUF, of {day()}\n")
    path.write_text(mine.replace("/rate\"", "/rates\""))
    tried = subprocess.run([BINARIES / "btc-priced", "--config", path, "--try", "mine"], capture_output=True, text=True, timeout=30)
    equal(tried.returncode, 1, tried.stdout)
    contains(tried.stdout, "there is no /rates")
    daemon = start(place, simulator, None, ["USD", "HUF"], mine, rates="mine")
    equal(becomes(place, "HUF", is_derived, "a derived price")["derived"]["rateSource"], "mine")
    equal(server.requests, {"ecb": 0, "frankfurter": 3})
    stop(daemon, simulator, server)


@scenario("with one currency, and with an empty list, no rate is requested", beside=True)
def _():
    server, simulator = RateServer(), replaying("68900")
    for currencies, rates in ((["USD"], "ecb,frankfurter"), (["USD", "EUR"], "")):
        place = Place()
        daemon = start(place, simulator, server, currencies, rates=rates)
        fresh(place)
        daemon.stop()
    equal(server.requests, {"ecb": 0, "frankfurter": 0})
    stop(simulator, server)


@scenario("a market's price is shown while there is one, and the change is reported", beside=True)
def _():
    server, place = RateServer(), Place()
    rates, others = replaying("68900"), Simulator("--seed", "3", "--descriptions", str(LIBRARY))
    mxn = 'currency.MXN.sources = ["bitso"]\n' + (LIBRARY / "bitso.toml").read_text()
    daemon = start(place, rates, server, ["USD", "MXN"], f'source.bitso.url = "{others.urls["bitso"]}"', mxn)
    market = becomes(place, "MXN", lambda s: s["freshness"] == "fresh", "a price")
    equal(market["derived"], None)
    others.stop()
    derived = becomes(place, "MXN", is_derived, "a derived price")
    equal(derived["derived"]["currency"], "USD")
    daemon.says("The price in MXN is derived from that in USD, at the rate of ecb")
    stop(daemon, rates, server)


@scenario("a source that has moved, and one that lacks a currency", beside=True)
def _():
    simulator = replaying("68900")
    server, place = RateServer(), Place()
    server.status["ecb"] = 301
    daemon = start(place, simulator, server, ["USD", "HUF", "AED"])
    # The second source has what the first one has not.
    equal(becomes(place, "HUF", is_derived, "a rate of the second source")["derived"]["rateSource"], "frankfurter")
    equal(becomes(place, "AED", is_derived, "a rate of the dirham")["derived"]["currency"], "USD")
    daemon.says("ecb gave no reference rates: not available: HTTP 301: it redirects, which is not followed.")
    stop(daemon, simulator, server)


@scenario("the rates outlive a restart without a network, and are not requested again", beside=True)
def _():
    simulator, server, place = replaying("68900"), RateServer(), Place()
    daemon = start(place, simulator, server, ["USD", "HUF"])
    before = becomes(place, "HUF", is_derived, "a derived price")
    daemon.stop()
    equal(server.requests, {"ecb": 1, "frankfurter": 1})
    daemon = start(place, simulator, server, ["USD", "HUF"])
    becomes(place, "HUF", is_derived, "a derived price after a restart")
    equal(server.requests, {"ecb": 1, "frankfurter": 1})
    daemon.kill()
    # Without exchanges the last price is shown, and still marked.
    simulator.faults("* always refuse")
    daemon = start(place, simulator, server, ["USD", "HUF"])
    last = state_in(place, "HUF")
    equal((last["freshness"], last["derived"]["rate"]), ("stale", before["derived"]["rate"]))
    contains(btcctl(place, "current", "-c", "HUF").out, "≈ HUF")
    daemon.stop()
    # A file with rubbish counts as none.
    Path(place.state, "reference-rates.json").write_text('{"ecb": {"base": "EUR", "received": 1e300, "rates": {"HUF": ["NaN", 1]}}}')
    simulator.faults("")
    daemon = start(place, simulator, server, ["USD", "HUF"])
    becomes(place, "HUF", is_derived, "a derived price")
    equal(server.requests, {"ecb": 2, "frankfurter": 2})
    stop(daemon, simulator, server)


# Three exchanges of a thin currency, each with a market of its own in reals.
def three(*upstream):
    return "".join(
        f'''[exchange.{name}]
url = "https://{name}.example/t?m={{name}}"
price = "/last"
require = {{ "/m" = "{{name}}" }}
{f'upstream = "{upstream[0]}"' if upstream and name != upstream[0] else ""}
markets = {{ BRL = {{}} }}
''' for name in ("one", "two", "three"))


@scenario("a thin currency of three exchanges: a liar, a copied book, a rate that is off by ten", beside=True)
def _():
    cases = [
        ("the first lies by ten", ["one"], "10", None, ()), ("the second lies by 5 %", ["two"], "1.05", None, ()),
        ("the first lies by 2 %", ["one"], "0.98", None, ()), ("the rates are off by ten", [], "1", "34.884", ()),
        ("one book under three names lies by ten", ["one", "two", "three"], "10", None, ("one",)),
    ]
    with ThreadPoolExecutor(len(cases)) as pool:
        return "; ".join(pool.map(lambda case: adversary(*case), cases))


def adversary(label, liars, factor, wrong_rate, upstream):
    """How many seconds of 15 are wrong after the lie has begun."""
    place, server = Place(), RateServer()
    os.makedirs(f"{place.state}/described")
    tables = three(*upstream)
    for text in tables.split("[exchange.")[1:]:
        Path(f"{place.state}/described/{text.split(']')[0]}.toml").write_text("[exchange." + text)
    simulator = Simulator("--seed", "9", "--descriptions", f"{place.state}/described")
    if wrong_rate:
        server.rates["ecb"]["BRL"] = server.rates["frankfurter"]["BRL"] = wrong_rate
    urls = "\n".join(f'source.{name}.url = "{simulator.urls[name]}"' for name in ("one", "two", "three"))
    daemon = start(place, simulator, server, ["USD", "BRL"], 'currency.BRL.sources = ["one", "two", "three"]', urls, tables)
    right = float(becomes(place, "BRL", lambda s: s["freshness"] == "fresh" and not s["derived"], label)["quote"]["value"])
    wait_until(lambda: state_in(place, "BRL")["tick"] > 7, what=f"the ticks before the lie: {label}")
    for name in liars:
        simulator.control(f"price/{name}", factor)
    begun, wrong, fresh_ones = time.monotonic(), 0, 0
    while (passed := time.monotonic() - begun) < 15:
        shown = state_in(place, "BRL")
        if shown["freshness"] == "fresh":
            fresh_ones += 1
            wrong += abs(float(shown["quote"]["value"]) / right - 1) > 0.015
        time.sleep(int(passed) + 1 - passed)
    assert wrong <= 3, f"{label}: {wrong} of {fresh_ones} seconds wrong: {shown}"
    stop(daemon, simulator, server)
    return f"{label}: {wrong} of {fresh_ones} s wrong"


main()
