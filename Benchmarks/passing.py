"""The time from the exchange's last byte to the watcher's line, compared with the same two hops in C."""

import os
import subprocess

from measuring import BINARIES, Daemon, Place, compiled, spawn, table, wait_until
from ticking import INTERVAL, LOAD, MEASURED, TICKS

ANSWERS = TICKS // 3

NAMES = {"socket": "btc-priced, a watch on the socket", "btcctl": "btc-priced, a line of btcctl watch --raw on a pipe", "relay": "a relay in C"}


def measure():
    place = Place()
    exchange = spawn(["taskset", "-c", str(LOAD), compiled("latency.c"), str(ANSWERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{int(exchange.stdout.readline())}"
    daemon = Daemon(place, {"binance": url}, "--tick-interval-ms", str(int(INTERVAL * 1000)), "--tick-budget-ms", "1000", sources=["binance"],
                    prefix=("taskset", "-c", str(MEASURED)), wait=False)
    # The daemon's first requests wait until the exchange knows the path of the daemon's socket.
    wait_until(lambda: os.path.exists(place.socket), what="the socket")
    pipe = os.path.join(place.runtime, "lines")
    os.mkfifo(pipe)
    watch = subprocess.Popen(f"exec taskset -c {MEASURED} {BINARIES / 'btcctl'} watch --raw --socket {place.socket} >{pipe}", shell=True,
                             stderr=subprocess.DEVNULL)
    exchange.stdin.write(f"{place.socket} {pipe}\n")
    exchange.stdin.flush()
    out = exchange.communicate(timeout=ANSWERS * INTERVAL * 2 + 60)[0]
    watch.terminate()
    watch.wait()
    daemon.stop()
    assert exchange.returncode == 0, (exchange.returncode, out)
    rows = []
    for name, count, half, most, longest in (line.split() for line in out.splitlines()):
        rows.append([NAMES[name], count, half, most, longest])
    return (f"## From the exchange's last byte to the watcher's line\n\nThe exchange and the watchers are one process on one processor, so that one clock "
            f"dates both; the daemon, btcctl and the relay are on the other. The relay asks the same exchange as often, over a connection of its own, and writes the "
            f"price to a Unix socket: the same two hops, and nothing in between. Over plain HTTP, one answer in {INTERVAL * 1000:.0f} ms.\n\n"
            + table(["", "answers", "half within µs", "99 % within µs", "the longest"], rows))
