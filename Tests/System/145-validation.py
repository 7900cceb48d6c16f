#!/usr/bin/env python3
"""Shown prices are true: real incidents, a month of faults drawn from them, and recorded prices, in virtual time with the
shipped ticker, fallback, health and validation; and the same with the built binaries."""

import gzip
import os
import textwrap
import zipfile

from lib.btcpriced import *

TABLE = Path(__file__).with_name("145-incidents.golden")
DATA = SHARED / "data"


@scenario("every real incident passes as a scenario, and the golden table has its results")
def _():
    text = rehearse("incidents")
    lines = [line for line in text.splitlines() if line.startswith(("ok | ", "FAILED | "))]
    rows = ["| " + " | ".join(line.split(" | ")[1:]) + " |" for line in lines]
    if os.environ.get("UPDATE_GOLDEN"):
        head = TABLE.read_text().partition("\n| ")[0]
        TABLE.write_text(f"{head}\n| when | what | expected | shown |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")
    failed = [line for line in text.splitlines() if not line.startswith("ok | ")][:-1]
    assert not failed, "\n".join(failed)
    missing = [row for row in rows if row not in TABLE.read_text()]
    assert not missing, "145-incidents.golden says otherwise (UPDATE_GOLDEN=1 writes it):\n" + "\n".join(missing)
    return text.splitlines()[-1]


@scenario("days of a virtual month of faults: no price is shown that is not true for its market")
def _():
    # The same days each time, with every kind of fault. `make test-deep` draws whole months.
    seed, days = os.environ.get("SEED", "1"), int(os.environ.get("DAYS_OF_MONTH", "3"))
    print(f"seed {seed}, {days} days", flush=True)
    text = rehearse("month", seed, "days", days)
    print(textwrap.indent(text, "    "))
    assert "missing: none" in text, "a kind of fault does not occur"
    total = next(line for line in text.splitlines() if line.startswith("total: "))
    equal(number(total, r"ticks (\d+)"), days * 86_400, "ticks")
    equal(number(total, r"untrue (\d+)"), 0, "values that are not the market's")
    equal(number(total, r"unwarned (\d+)"), 0, "USDT prices without a warning")
    for word in ("confirmed", "unconfirmed", "withheld"):
        assert number(total, rf" {word} (\d+)") > 0, f"none was {word}"
    return total


# --- On the built binaries -------------------------------------------------------------------------------------------

THREE = ("binance", "coinbase", "bitstamp")


def states_during(faults, ticks, *arguments):
    """Runs a fault script after a time without faults. Returns the daemon, which still runs, and the states."""
    place, simulator = Place(), Simulator("--seed", "7")
    daemon = Daemon(place, simulator.urls, *LOOKS_OFTEN, *arguments, sources=THREE)
    fresh(place)
    # Each source is known, because the observer has requested it.
    wait_until(
        lambda: all(s["lastSuccess"] for s in btcctl(place, "sources", "--json").json["sources"]), seconds=60, every=0.2,
        what="an answer of each source")
    watch = Watch(place, "--json")
    wait_until(lambda: watch.lines, what="a state")
    simulator.faults(faults)
    ticks += len(watch.lines) - 1
    wait_until(lambda: len(watch.lines) >= ticks, seconds=ticks * 2 + 10, every=0.05, what=f"{ticks} ticks")
    return place, simulator, daemon, watch.states


def of(states, name):
    return [state[name] for state in states]


@scenario("a print 30 % below is never shown: the same tick shows another source, and the journal has the reason", beside=True)
def _():
    place, simulator, daemon, states = states_during("binance always price x0.7", 6, *patient(*THREE))
    assert all(Decimal(s["quote"]["value"]) > 60_000 for s in states), of(states, "quote")
    equal([s for s in states if s["freshness"] == "stale"], [], "stale ticks")
    why = (r"binance gave no price: implausible: \S+ BTC/USDT is -30\.\d % from the price of \d s ago, which coinbase \(\S+\) and "
           r"bitstamp \(\S+\) contradict")
    wait_until(lambda: any(re.search(why, line) for line in daemon.lines), what=lambda: f"the reason in {daemon.lines}")
    equal(states[-1]["quote"]["source"], "coinbase")
    text = btcctl(place, "sources").out
    assert re.search(r"(?m)^[z?] +binance .*\n    .*implausible: ", text), text
    status = btcctl(place, "status").out
    assert re.search(r"(?m)^Compared +: [1-9] ticks? confirmed by another exchange, 0 unconfirmed, 0 not shown$", status), status
    simulator.faults("")
    wait_until(lambda: btcctl(place, "current", "--json").json["quote"]["source"] == "binance", seconds=40, what="its return",
               every=0.2)
    daemon.stop()


@scenario("the uncertainty: none with one market, dollars and the number of markets with several", beside=True)
def _():
    place, simulator = Place(), Simulator("--seed", "7")
    daemon = Daemon(place, simulator.urls, sources=("coinbase",))
    equal(fresh(place)["uncertainty"], None)
    equal(btcctl(place, "current", "--format", "{uncertainty}").out, "-\n")
    daemon.stop()
    place, simulator, daemon, states = states_during("", 2)
    sure = wait_until(lambda: (lambda u: u if u and u["markets"] == 3 else None)(btcctl(place, "current", "--json").json["uncertainty"]),
                      seconds=40, every=0.2, what="three markets")
    assert 0 < Decimal(sure["plusMinus"]) < 700, sure
    text = btcctl(place, "status").out
    assert re.search(r"(?m)^Price +: \$[\d,]+\.\d\d (±|\+/-) [\d,]+\.\d\d \(\d markets\)$", text), text
    assert re.fullmatch(r"[\d.]+\n", btcctl(place, "current", "--format", "{uncertainty}").out)
    equal({s["verdict"] for s in btcctl(place, "sources", "--json").json["sources"] if s["use"] == "current"}, {"used"})
    daemon.stop()
    return f"{sure}"


@scenario("USDT at 0.9 dollars: a warning in the state, btcctl and the journal; converted", beside=True)
def _():
    shown = []
    for policy in ("warn", "convert"):
        place, simulator = Place(), Simulator(
            "--seed", "7", faults="binance always price x1.1111\nkraken always usdt 0.9")
        daemon = Daemon(place, simulator.urls, "--currency-usdt", policy, sources=(*THREE, "kraken"))
        wait_until(lambda: daemon.said("USDT is off its peg: USDT is at 0.9"), seconds=30, what="the journal's line")
        wait_until(lambda: btcctl(place, "current", "--json").json["warning"], what="the warning")
        state = fresh(place)
        price, text = Decimal(state["quote"]["value"]), btcctl(place, "current").err
        assert text.startswith("Warning: USDT is off its peg, at 0.9"), text
        status = btcctl(place, "status").out
        assert re.search(r"(?m)^USDT +: 0\.\d+ USD, by .* ago; off its peg$", status), status
        if policy == "warn":
            equal((state["quote"]["source"], state["conversion"]), ("binance", None))
            assert price > 75_000 and ": this is a price in USDT" in text, (price, text)
        else:
            conversion = state["conversion"]
            equal(state["quote"]["source"], "binance")
            equal(price, round(Decimal(conversion["value"]) * Decimal(conversion["rate"]), 8), "the product")
            assert 68_000 < price < 70_000 and ": this price is converted" in text, (price, text)
            assert f"; {conversion['value']} USDT at " in status or " USDT at 0.9" in status, status
        shown.append(f"{policy} {price}")
        daemon.stop()
    return ", ".join(shown)


@scenario("the median of three: an outlier is reported and does not count, and two prices are too few", beside=True)
def _():
    place, simulator = Place(), Simulator("--seed", "7")
    daemon = Daemon(place, simulator.urls, "--mode", "median", sources=(*THREE, "kraken"))
    state = fresh(place)
    equal((state["quote"]["source"], state["quote"]["market"], state["confirmation"]), ("median", "BTC/USD", "confirmed"))
    wait_until(lambda: "binance" in btcctl(place, "current", "--json").json["consensus"]["sources"], what="binance as dollars")
    simulator.faults("bitstamp always price x1.2")
    found = wait_until(
        lambda: (lambda s: s if s["consensus"]["outliers"] == ["bitstamp"] else None)(btcctl(place, "current", "--json").json),
        what="the outlier")
    assert 67_000 < Decimal(found["quote"]["value"]) < 71_000, found
    assert Decimal(found["consensus"]["spread"]) < 1000, found
    assert wait_until(lambda: daemon.said("Not counted, since they are far from the median"), what="the journal's line")
    status = btcctl(place, "status").out
    assert re.search(r"(?m)^Source +: median \(BTC/USD\), .* ago; of .* within \$[\d,.]+, without bitstamp", status), status
    text = btcctl(place, "sources").out
    assert re.search(r"(?m)^    contradicted by binance, coinbase and kraken$", text), text
    simulator.faults("bitstamp always refuse\nkraken always refuse")
    failed = wait_until(
        lambda: (lambda s: s if s["freshness"] == "stale" else None)(btcctl(place, "current", "--json").json), what="a failed tick")
    assert "3 have to agree, and only " in failed["failure"], failed
    daemon.stop()
    return found["consensus"]


def recordings():
    """The recordings: name, seconds between ticks, and the second and price of each tick."""
    for path in sorted(DATA.glob("lean/*trade.zip")):
        with zipfile.ZipFile(path) as archive:
            rows = [line.split(",") for line in archive.read(archive.namelist()[0]).decode().split()]
        yield path.stem, 60 if "_minute_" in path.name else 1, [(int(row[0]) / 1000, float(row[4])) for row in rows]
    trades = []
    for path in sorted(DATA.glob("hftbacktest_*.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                stamp, _, frame = line.partition(" ")
                if '"e":"trade"' in frame:
                    trades.append((int(stamp) / 1e9, float(json.loads(frame)["data"]["p"])))
    if trades:
        yield "hftbacktest, every trade of 11 minutes", 1, trades
    for path in DATA.glob("nautilus_kraken_*.json"):
        result = json.loads(path.read_text())["result"]
        rows = next(value for key, value in result.items() if key != "last")
        yield path.stem, 1, sorted((float(row[2]), float(row[0])) for row in rows)


@scenario("no recorded price is withheld, although no source can confirm it")
def _():
    if not DATA.is_dir():
        raise Skip(f"{DATA} is absent")
    with tempfile.TemporaryDirectory() as folder:
        for name, interval, prices in recordings():
            path = Path(folder, "prices")
            path.write_text("".join(f"{second} {price}\n" for second, price in prices))
            text = rehearse("replay", path, interval)
            print(f"    {name}: {text.strip()}")
            assert " stale 0 withheld 0" in text, text
            assert number(text, r"fresh (\d+)") > 500, text


main()
