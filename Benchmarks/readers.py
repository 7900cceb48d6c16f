"""Five programs that want the price of one exchange every second, over TLS: with btc-priced, five times `btcctl watch`; without it, five Python
programs with ccxt, or five shell scripts with curl and jq, which request it themselves."""

import os
import subprocess
import sys
import time

from measuring import BUILT, HERE, ON_LOAD, ON_MEASURED, Daemon, Place, Row, Simulator, spawn, wait_until
from lib.btcpriced import BINARIES, fresh

READERS = 5
SETTLING, SECONDS = 5, 20
CCXT = "ccxt==4.5.90"


def ours(simulator):
    place = Place()
    daemon = Daemon(place, simulator.urls, "--tls-ca-file", simulator.authority, sources=["binance"], prefix=ON_MEASURED)
    fresh(place)
    environment = {**os.environ, "BTC_PRICED_SOCKET": place.socket}
    return [daemon.process, *(spawn([*ON_MEASURED, BINARIES / "btcctl", "watch", "--raw"], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, env=environment)
                              for _ in range(READERS))]


def with_ccxt(simulator):
    python = BUILT / "venv" / "bin" / "python3"
    if not (BUILT / "venv" / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", BUILT / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", CCXT], check=True)
        (BUILT / "venv" / "done").touch()
    command = [*ON_MEASURED, python, HERE / "peers" / "reader.py", simulator.urls["binance"], simulator.authority]
    return [spawn(command, stdout=subprocess.DEVNULL) for _ in range(READERS)]


def with_shell(simulator):
    command = [*ON_MEASURED, HERE / "peers" / "reader.sh", simulator.urls["binance"], simulator.authority]
    return [spawn(command, stdout=subprocess.DEVNULL) for _ in range(READERS)]


def tree(processes):
    """The processes and their children."""
    found = [process.pid for process in processes]
    for pid in found:
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                found += map(int, children.read().split())
        except OSError:
            pass  # It has ended.
    return found


def used(processes):
    """Processor seconds, with those of children that have ended."""
    seconds = 0
    for process in processes:
        # Those of the threads are exact; those of ended children have a clock of 10 ms.
        for task in os.listdir(f"/proc/{process.pid}/task"):
            with open(f"/proc/{process.pid}/task/{task}/schedstat") as stat:
                seconds += int(stat.read().split()[0]) / 1e9
        with open(f"/proc/{process.pid}/stat") as stat:
            seconds += sum(map(int, stat.read().rsplit(")", 1)[1].split()[13:15])) / os.sysconf("SC_CLK_TCK")
    return seconds


def memory(processes):
    """MiB; what several processes share counts once (PSS of proc_pid_smaps(5))."""
    kibibytes = 0
    for pid in tree(processes):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as rollup:
                kibibytes += int(next(line for line in rollup if line.startswith("Pss:")).split()[1])
        except (OSError, StopIteration):
            pass  # It has ended.
    return kibibytes / 1024


def cost(readers):
    """The milliseconds of processor time a second, the memory and the requests a second."""
    simulator = Simulator("--seed", "1", secure=True, prefix=ON_LOAD)
    processes = readers(simulator)
    wait_until(lambda: simulator.requests()["binance"] >= 1, seconds=60, what="a request")
    time.sleep(SETTLING)
    asked, begun, before = simulator.requests()["binance"], time.perf_counter(), used(processes)
    samples = []
    while time.perf_counter() < begun + SECONDS:
        samples.append(memory(processes))
        time.sleep(0.37)
    seconds = time.perf_counter() - begun
    spent, asked = used(processes) - before, simulator.requests()["binance"] - asked
    for process in reversed(processes):
        process.terminate()
        process.wait()
    simulator.stop()
    return spent / seconds * 1000, sum(samples) / len(samples), asked / seconds


def measure():
    mine = cost(ours)
    others = {"ccxt": cost(with_ccxt), "curl, jq": cost(with_shell)}
    return [Row(f"five readers, {what}", mine[place], name, theirs[place])
            for place, what in enumerate(("ms/s", "memory, MiB", "requests/s")) for name, theirs in others.items()]
