"""Shared by the benchmarks: the programs to compare with, pinned processes, medians with their spread."""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from btcpriced import BINARIES, Daemon, Place, atexit, fresh, known_price, replaying, spawn, switches, wait_until

HERE = Path(__file__).resolve().parent
LAST = max(os.sched_getaffinity(0))
BUILT = HERE.parent / ".build" / "benchmarks"


def compiled(source):
    """Compiles a C program of this folder. Returns its path."""
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / Path(source).stem
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, HERE / source], check=True)
    return program


def running_daemon(price="68901.23"):
    """A daemon with a fresh price that ticks once a second."""
    place, simulator = Place(), replaying(price)
    known_price(place, price)
    daemon = Daemon(place, simulator.urls, sources=["binance"])
    fresh(place)
    return place, simulator, daemon


def redis(*options):
    """Starts a redis server on a Unix socket, which stores nothing. Returns the socket's path and the process."""
    folder = tempfile.mkdtemp(prefix="btc-priced-redis-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/redis.sock"
    process = spawn(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder, *options],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(path), what="redis")
    return path, process


def once(command):
    """Runs a process to its end. Returns the wall time in seconds and the peak resident memory in KiB."""
    begun = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - begun
    assert status == 0, f"{command}: {status}"
    return seconds, usage.ru_maxrss


def paired(commands, runs):
    """Runs processes in turn on one processor. Returns the seconds of all runs of each."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LAST})
    try:
        for command in commands.values():
            for _ in range(10):
                once(command)
        seconds = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                seconds[name].append(once(command)[0])
    finally:
        os.sched_setaffinity(0, before)
    return seconds


def resident(command):
    """The peak resident memory of a process, KiB. A small program starts it, since a child's peak begins with its parent's size."""
    done = subprocess.run(
        ["/usr/bin/env", "sh", "-c", 'exec "$0" "$@" >/dev/null', "/usr/bin/time", "-f", "%M", *command], capture_output=True, text=True,
        check=True)
    return int(done.stderr.split()[-1])


def memory(process, name):
    """A field of /proc/PID/status in KiB, such as VmRSS or RssAnon."""
    with open(f"/proc/{process.pid}/status") as status:
        return int(re.search(rf"{name}:\s+(\d+)", status.read())[1])


def process_time(pid):
    """Processor seconds of all threads, including those that have ended, from the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def spread(values, scale=1000, digits=2):
    """`1.02 (0.98 to 1.10)`: the median, and the middle half."""
    first, middle, third = statistics.quantiles(values, n=4)
    return f"{middle * scale:.{digits}f} ({first * scale:.{digits}f} to {third * scale:.{digits}f})"


def ratios(mine, others):
    """The median of the ratios, pair by pair: a slow phase of the machine affects both values of a pair."""
    return statistics.median(a / b for a, b in zip(mine, others))


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines) + "\n"
