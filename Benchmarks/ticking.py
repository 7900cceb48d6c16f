"""A steady tick over plain HTTP and over TLS, compared with other programs for the same job: request the price from one exchange, write it
to a file, serve it on a Unix socket. All run at the same time against the same simulator, and tick at different moments."""

import os
import random
import shutil
import statistics
import tempfile
import time

from lib.counting import Callgrind, count_of_tick
from measuring import (HERE, INTERVAL, ON_LOAD, ON_MEASURED, TICKS, Daemon, Place, Row, Simulator, atexit, compiled_go, known_price, private_memory,
                       process_time, ratios, spawn, wait_until)

BLOCKS = 10
SETTLING = 5
PYTHON = [shutil.which("python3", path="/usr/bin"), HERE / "peers" / "daemon.py"]


class Peer:
    """A daemon of peers/, in its own folder on a tmpfs."""

    def __init__(self, command, simulator, interval=INTERVAL, prefix=ON_MEASURED):
        folder = tempfile.mkdtemp(prefix="btc-priced-peer-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.file = f"{folder}/price"
        self.process = spawn([*prefix, *command, simulator.urls["binance"], self.file, f"{folder}/socket", str(int(interval * 1000)),
                              *([simulator.authority] if simulator.authority else [])])
        wait_until(lambda: os.path.exists(self.file), seconds=60, what="its first price")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Ours:
    """btc-priced with one source, as in the other daemons."""

    def __init__(self, simulator):
        place = Place()
        known_price(place, "68000")
        trust = ["--tls-ca-file", simulator.authority] if simulator.authority else []
        self.daemon = Daemon(place, simulator.urls, "--tick-interval-ms", str(int(INTERVAL * 1000)), "--tick-budget-ms", "1000", *trust,
                             sources=["binance"], prefix=ON_MEASURED)
        self.process, self.file = self.daemon.process, f"{place.runtime}/last-quote.json"
        wait_until(lambda: os.path.exists(self.file), what="its first price")

    def stop(self):
        self.daemon.stop()


def apart(makers, simulator):
    """Starts all daemons so that no two of them tick within an eighth of the interval. The time of a tick is that of writing the file."""
    running = {}
    for name, maker in makers.items():
        for _ in range(50):
            candidate = maker(simulator)
            time.sleep(0.5)
            mine = phase(candidate)
            if all(min((mine - phase(other)) % INTERVAL, (phase(other) - mine) % INTERVAL) > INTERVAL / 8 for other in running.values()):
                running[name] = candidate
                break
            candidate.stop()
            time.sleep(random.random() * INTERVAL)
        else:
            raise AssertionError(f"{name} always ticks at the moment of another one")
    return running


def phase(daemon):
    """The moment within the interval at which the daemon writes its file: the median of five ticks."""
    seen = []
    for _ in range(5):
        seen.append(os.stat(daemon.file).st_mtime % INTERVAL)
        time.sleep(INTERVAL)
    return statistics.median(seen)


def steady(running, ticks):
    """The microseconds of processor time of a tick in each block, by daemon."""
    found = {name: [] for name in running}
    due = time.monotonic()
    for _ in range(BLOCKS):
        before = {name: process_time(daemon.process.pid) for name, daemon in running.items()}
        due += ticks / BLOCKS * INTERVAL
        time.sleep(max(0, due - time.monotonic()))
        for name, daemon in running.items():
            found[name].append((process_time(daemon.process.pid) - before[name]) / (ticks / BLOCKS) * 1e6)
    return found


def counted_peer(secure, ticks=40, interval=0.25):
    simulator, callgrind = Simulator("--seed", "1", secure=secure), Callgrind()
    peer = Peer(PYTHON, simulator, interval, callgrind.prefix)
    time.sleep(3)
    instructions, _, _ = callgrind.during(peer.process.pid, lambda: time.sleep(ticks * interval))
    peer.stop()
    simulator.stop()
    return instructions / ticks


def over(secure, ticks):
    simulator = Simulator("--seed", "1", secure=secure, prefix=ON_LOAD)
    go = compiled_go("daemon.go")
    running = apart({"btc-priced": Ours, "Go daemon": lambda simulator: Peer([go], simulator), "Python daemon": lambda simulator: Peer(PYTHON, simulator)},
                    simulator)
    time.sleep(SETTLING)
    found = steady(running, ticks)
    memory = private_memory(running["btc-priced"].process) / 1024
    for daemon in running.values():
        daemon.stop()
    simulator.stop()
    ours = found.pop("btc-priced")
    name = f"tick over {'TLS' if secure else 'HTTP'}"
    rows = [Row(f"{name}, µs", statistics.median(ours), peer, statistics.median(values), ratios(ours, values),
                ratio_at_most=1.0 if secure and peer == "Go daemon" else None) for peer, values in found.items()]
    instructions, _, lines = count_of_tick(secure)
    rows.append(Row(f"{name}, instructions", instructions, "Python daemon", counted_peer(secure), at_most=320_000 if secure else None))
    return [*rows, Row(f"{name}, lines of code", lines), Row("private memory at rest, MiB", memory, at_most=3)] if secure else rows


def measure():
    return over(True, TICKS) + over(False, TICKS // 2)
