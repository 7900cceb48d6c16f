#!/usr/bin/env python3
"""Recorded prices are shown unchanged."""

import csv
import itertools

from lib.btcpriced import *

RECORDING = "data/derived_binance_btcusdt_1s_20240808T235415Z_20240809T000505Z.csv"


def replay(file, count):
    place = Place()
    with open(file) as recording:
        expected = [Decimal(row["close"]) for row in csv.DictReader(recording)]
    equal(len(expected), count, "recorded prices")
    # The daemon waits at the first request until the watcher is connected, so that the watcher misses nothing.
    known_price(place, expected[0])
    simulator = Simulator("--replay", file, faults="binance always refuse")
    daemon = Daemon(
        place, simulator.urls, "--tick-interval-ms", "100", "--tick-budget-ms", "5000", "--source-binance-timeout-ms",
        "5000", "--source-binance-hedge-ms", "5000", sources=["binance"])
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 2, what="the watcher")
    simulator.faults("")
    wait_until(lambda: simulator.requests()["binance"] >= count + 2, seconds=300, what="the end of the recording", every=0.2)

    def replayed():
        # Before the recording begins, the daemon shows the stored price as stale. At this interval a price is fresh for 200 ms,
        # which a busy machine may need to send it.
        return list(itertools.dropwhile(lambda state: state["freshness"] != "fresh", watch.states))
    wait_until(lambda: len(replayed()) > count, what="the last line", every=0.2)
    daemon.stop()
    states = watch.states
    ticks = [state["tick"] for state in states]
    equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "ticks without a gap")
    found = [Decimal(state["quote"]["value"]) for state in replayed()][:count]
    assert found == expected, f"prices: {next((i, f, e) for i, (f, e) in enumerate(zip(found, expected)) if f != e)}"
    return f"{len(found)} of {count} prices in order, every decimal exact, {len(ticks)} ticks without a gap"


@scenario("btcctl watch --json shows the 651 recorded seconds in order, with exact decimals and without a gap in tick")
def _():
    return replay(shared(RECORDING), 651)


@scenario("our own recording is shown the same way")
def _():
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        prices = ["61828.02000000", "61830.99", "61829.10000001", "61825.12345678", "61829.99999999", "61901.23"]
        file.write("time,close\n" + "".join(f"{i},{price}\n" for i, price in enumerate(prices)))
        file.flush()
        return replay(file.name, len(prices))


main()
