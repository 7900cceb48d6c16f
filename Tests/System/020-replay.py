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
    wait_until(lambda: (seen := replayed()) and seen[-1]["tick"] - seen[0]["tick"] >= count, what="the last line", every=0.2)
    daemon.stop()
    states = watch.states
    ticks = [state["tick"] for state in states]
    each_tick(ticks, late=len(ticks) // 50)
    # The price of each tick is the recorded one, also after a tick that the watcher read too late, which may be the first ones.
    found = [(state["tick"], Decimal(state["quote"]["value"])) for state in replayed()]
    def rows(begun):
        return [(tick - begun, value) for tick, value in found if tick - begun < count]
    fitting = [begun for begun in range(found[0][0], found[0][0] - 3, -1) if all(value == expected[row] for row, value in rows(begun))]
    assert fitting, f"prices: {next((row, value, expected[row]) for row, value in rows(found[0][0]) if value != expected[row])}"
    return f"{len(rows(fitting[0]))} of {count} prices in order, every decimal exact"


@scenario("btcctl watch --json shows the 651 recorded seconds in order, with exact decimals")
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
