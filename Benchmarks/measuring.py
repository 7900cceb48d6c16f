"""Shared by the benchmarks: the rows of the table, the programs to compare with, pinned processes."""

import os
import re
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from lib.btcpriced import BINARIES, Daemon, Place, Simulator, atexit, fresh, known_price, replaying, spawn, wait_until

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / ".build" / "benchmarks"
# The measured programs run on one processor, the load and the exchanges on another.
MEASURED, LOAD = 0, max(os.sched_getaffinity(0))
ON_MEASURED, ON_LOAD = ("taskset", "-c", str(MEASURED)), ("taskset", "-c", str(LOAD))
# One tick in 100 ms, of all daemons that are compared.
TICKS = int(os.environ.get("TICKS", "600"))
INTERVAL = 0.1


@dataclass
class Row:
    """A row of the table: our figure and the peer's, and at most one goal, for their ratio or for our figure. `ratio`: unless it is that of
    the two figures."""
    what: str
    ours: float
    peer: str = ""
    theirs: float | None = None
    ratio: float | None = None
    ratio_at_most: float | None = None
    ratio_at_least: float | None = None
    at_most: float | None = None


def compiled(source):
    """Compiles a C program of this folder. Returns its path."""
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / Path(source).stem
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, HERE / source], check=True)
    return program


def compiled_go(source):
    """Compiles a Go program of peers/. Returns its path."""
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / f"{Path(source).stem}-go"
    subprocess.run(["go", "build", "-o", program, HERE / "peers" / source], check=True, env={**os.environ, "GO111MODULE": "off"})
    return program


def running_daemon(price="68901.23"):
    """A daemon with a price that two exchanges have, which ticks once a second."""
    place, simulator = Place(), replaying(price)
    known_price(place, price)
    daemon = Daemon(place, simulator.urls)
    wait_until(lambda: fresh(place)["confirmation"] == "confirmed", what="a confirmed price", every=0.2)
    return place, simulator, daemon


def private_memory(process):
    """Of a process, KiB: what is in no file."""
    with open(f"/proc/{process.pid}/status") as status:
        return int(re.search(r"RssAnon:\s+(\d+)", status.read())[1])


def process_time(pid):
    """Processor seconds of all threads, including those that have ended, from the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def ratios(mine, others):
    """The median of the ratios, pair by pair: a slow phase of the machine affects both values of a pair."""
    return statistics.median(a / b for a, b in zip(mine, others))
