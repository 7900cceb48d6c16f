"""The time from the last byte of an exchange's response to the watcher's line, compared with the same two hops in C."""

import os
import subprocess

from measuring import INTERVAL, ON_LOAD, ON_MEASURED, TICKS, Daemon, Place, Row, compiled, spawn, wait_until

ANSWERS = TICKS // 2


def measure():
    place = Place()
    exchange = spawn([*ON_LOAD, compiled("latency.c"), str(ANSWERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{int(exchange.stdout.readline())}"
    daemon = Daemon(place, {"binance": url}, "--tick-interval-ms", str(int(INTERVAL * 1000)), "--tick-budget-ms", "1000", sources=["binance"],
                    prefix=ON_MEASURED, wait=False)
    # The daemon's first requests wait until the exchange knows the path of the daemon's socket.
    wait_until(lambda: os.path.exists(place.socket), what="the socket")
    out = exchange.communicate(f"{place.socket}\n", timeout=ANSWERS * INTERVAL * 2 + 60)[0]
    daemon.stop()
    assert exchange.returncode == 0, (exchange.returncode, out)
    ours, theirs = map(float, out.split())
    return [Row("poll to watcher, half within µs", ours, "C relay", theirs, at_most=350)]
