#!/usr/bin/env python3
"""A kill does not lose a price that a client has seen."""

import os

from lib.btcpriced import *

# `make test-deep` has hundreds.
KILLS = int(os.environ.get("KILLS", "20"))


@scenario(f"kill -9 at {KILLS} random instants, then a start with every source down")
def _():
    randomness = seeded()
    place, simulator = Place(), Simulator("--seed", "1")
    losses, received, exact = [], 0, 0
    for number in range(KILLS):
        daemon = Daemon(
            place, simulator.urls, "--tick-interval-ms", "100", "--tick-budget-ms", "100", sources=["binance"])
        watcher = Varlink(place.socket)
        watcher.send({"method": "io.btcpriced.Price.WatchPrice", "more": True})
        newest = None
        instant = time.monotonic() + randomness.uniform(0, 0.35)
        while (left := instant - time.monotonic()) > 0:
            watcher.socket.settimeout(left)
            try:
                newest = watcher.receive()["parameters"]["state"]
            except TimeoutError:
                break
        daemon.kill()
        # Data in the socket counts as received, although the client has not read it.
        watcher.socket.settimeout(5)
        try:
            while True:
                newest = watcher.receive()["parameters"]["state"]
        except (EOFError, ConnectionError):
            pass
        watcher.close()
        daemon = Daemon(place, sources=["binance"])
        served = Varlink(place.socket).call("io.btcpriced.Price.GetPrice")["parameters"]["state"]
        daemon.kill()
        if newest and newest["quote"]:
            received += 1
            if not served["quote"] or served["quote"]["timestamp"] < newest["quote"]["timestamp"]:
                losses.append((number, newest, served))
            exact += served["observedBoottime"] is not None
            equal(served["freshness"], "stale", "every source is down")
    equal(losses, [], "quotes lost")
    assert received >= KILLS / 2, f"a watcher had something in only {received} of {KILLS} runs"
    return f"{KILLS} kills, {received} with a quote received before, 0 lost, {exact} with an exact age"


@scenario("after SIGTERM the daemon ends within a second, with the last quote saved")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    times = []
    for fault in ("", "* always stall-body", "* always dark"):
        simulator.faults("")
        daemon = Daemon(place, simulator.urls)
        watch = Watch(place, "--json")
        wait_until(lambda: [s for s in watch.states if s["freshness"] == "fresh"], what="a price")
        simulator.faults(fault)
        # A client shares the pending fetch, and must not delay the stop.
        client = Varlink(place.socket)
        time.sleep(1.1)
        client.send({"method": "io.btcpriced.Price.GetPrice", "parameters": {"cachePolicy": "remoteFirst"}})
        time.sleep(0.2)
        status, seconds = daemon.stop()
        equal(status, 0, "exit status")
        assert seconds < 1, f"it took {seconds:.3f} s with fault '{fault}'"
        times.append(f"{seconds * 1000:.0f}")
        newest = [s for s in watch.states if s["quote"]][-1]["quote"]
        with open(f"{place.state}/last-quote.json") as file:
            kept = json.load(file)["quote"]
        assert kept["timestamp"] >= newest["timestamp"], f"kept {kept}, shown {newest}"
        assert not os.path.exists(place.socket), "the socket's file is gone"
        watch.stop()
    return f"{', '.join(times)} ms"


main()
