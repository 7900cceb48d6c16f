"""A steady tick over plain HTTP and over TLS, compared with other programs for the same job: request the price from one exchange, write it
to a file, serve it on a Unix socket. All run at the same time against the same simulator, and tick at different moments."""

import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from btcpriced import Simulator
from counting import Callgrind, count_of_call, count_of_tick
from measuring import BUILT, HERE, Daemon, Place, atexit, known_price, memory, process_time, spawn, spread, switches, table, wait_until

MEASURED, LOAD = 0, max(os.sched_getaffinity(0))
TICKS = int(os.environ.get("TICKS", "3000"))
# Programs that cost far more per tick give results that are as steady with fewer ticks.
OF_LOOP = TICKS // 10
FEWER = TICKS // 5
INTERVAL = 0.1
BLOCKS = 10
SETTLING = 5


def go_daemon():
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / "daemon-go"
    subprocess.run(["go", "build", "-o", program, HERE / "peers" / "daemon.go"], check=True, env={**os.environ, "GO111MODULE": "off"})
    return program


def peers():
    return {"Go daemon": [go_daemon()], "Python daemon": [shutil.which("python3", path="/usr/bin"), HERE / "peers" / "daemon.py"]}


class Peer:
    """A daemon of peers/, in its own folder on a tmpfs."""

    def __init__(self, command, simulator, interval=INTERVAL, prefix=("taskset", "-c", str(MEASURED))):
        folder = tempfile.mkdtemp(prefix="btc-priced-peer-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.file, self.socket = f"{folder}/price", f"{folder}/socket"
        self.process = spawn([*prefix, *command, simulator.urls["binance"], self.file, self.socket, str(int(interval * 1000)),
                              *([simulator.authority] if simulator.authority else [])])
        wait_until(lambda: os.path.exists(self.file), seconds=60, what="its first price")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Ours:
    """btc-priced with one source, as in the other daemons."""

    def __init__(self, simulator, interval=INTERVAL):
        place = Place()
        known_price(place, "68000")
        trust = ["--tls-ca-file", simulator.authority] if simulator.authority else []
        self.daemon = Daemon(place, simulator.urls, "--tick-interval-ms", str(int(interval * 1000)), "--tick-budget-ms", "1000", *trust,
                             sources=["binance"], prefix=("taskset", "-c", str(MEASURED)))
        self.process, self.file, self.socket = self.daemon.process, f"{place.runtime}/last-quote.json", place.socket
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


def written(pid):
    with open(f"/proc/{pid}/io") as file:
        counts = dict(line.split(": ") for line in file.read().splitlines())
    return int(counts["wchar"]), int(counts["write_bytes"])


def system_calls(pid, seconds=5):
    trace = spawn(["strace", "-f", "-c", "-p", str(pid)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    time.sleep(seconds)
    trace.send_signal(signal.SIGINT)
    text = trace.communicate()[1]
    # The columns: % time, seconds, usecs/call, calls, errors if there were any, and the word "total".
    total = next(line.split() for line in text.splitlines() if line.endswith(" total"))
    return int(total[3]) / (seconds / INTERVAL)


def slope(values, ticks):
    """KiB per thousand ticks, by least squares."""
    step = ticks / 1000 / (len(values) - 1)
    middle = (len(values) - 1) / 2
    mean = statistics.mean(values)
    return sum((i - middle) * (value - mean) for i, value in enumerate(values)) / sum((i - middle) ** 2 for i in range(len(values))) / step


def steady(running, ticks):
    """Measures each daemon over the ticks, in blocks."""
    found = {name: {"time": [], "switches": [], "memory": []} for name in running}
    begun = {name: written(daemon.process.pid) for name, daemon in running.items()}
    due = time.monotonic()
    for _ in range(BLOCKS):
        before = {name: (process_time(daemon.process.pid), switches(daemon.process.pid)) for name, daemon in running.items()}
        due += ticks / BLOCKS * INTERVAL
        while time.monotonic() < due:
            time.sleep(max(0, min(due - time.monotonic(), 3)))
            for name, daemon in running.items():
                found[name]["memory"].append(memory(daemon.process, "RssAnon"))
        for name, daemon in running.items():
            pid = daemon.process.pid
            found[name]["time"].append((process_time(pid) - before[name][0]) / (ticks / BLOCKS))
            found[name]["switches"].append((switches(pid) - before[name][1]) / (ticks / BLOCKS))
    for name, daemon in running.items():
        found[name]["written"] = [(now - then) / ticks for now, then in zip(written(daemon.process.pid), begun[name])]
        found[name]["calls"] = system_calls(daemon.process.pid)
    return found


def shell_loop(simulator):
    """The processor seconds and context switches of the loop per tick, including those of its child processes."""
    folder = tempfile.mkdtemp(prefix="btc-priced-loop-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    process = spawn(["taskset", "-c", str(LOAD), HERE / "peers" / "loop.sh", simulator.urls["binance"], f"{folder}/price", str(int(INTERVAL * 1000)),
                     str(OF_LOOP), *([simulator.authority] if simulator.authority else [])])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0, "the shell's loop failed"
    return (usage.ru_utime + usage.ru_stime) / OF_LOOP, (usage.ru_nvcsw + usage.ru_nivcsw) / OF_LOOP


def over(secure, ticks):
    simulator = Simulator("--seed", "1", secure=secure, prefix=("taskset", "-c", str(LOAD)))
    makers = {"btc-priced": Ours} | {name: lambda simulator, command=command: Peer(command, simulator) for name, command in peers().items()}
    running = apart(makers, simulator)
    time.sleep(SETTLING)
    found = steady(running, ticks)
    for daemon in running.values():
        daemon.stop()
    loop = shell_loop(simulator)
    simulator.stop()
    mine = found["btc-priced"]
    rows = []
    for name, values in found.items():
        ratio = statistics.median(a / b for a, b in zip(mine["time"], values["time"]))
        rows.append([name, spread(values["time"], scale=1e6, digits=0), f"{ratio:.2f}", f"{statistics.median(values['switches']):.1f}", f"{values['calls']:.0f}",
                     f"{values['written'][0]:.0f}", f"{values['written'][1]:.0f}", f"{values['memory'][-1] / 1024:.1f}", f"{slope(values['memory'], ticks):+.0f}"])
    rows.append(["shell loop", f"{loop[0] * 1e6:.0f}", f"{statistics.median(mine['time']) / loop[0]:.3f}", f"{loop[1]:.1f}", "", "", "", "", ""])
    return f"{ticks} ticks over {'TLS' if secure else 'plain HTTP'}:\n\n" + table(
        ["", "µs of processor time a tick (middle half)", "btc-priced over it", "context switches a tick", "system calls a tick", "bytes written a tick",
         "of them to a disk", "MiB private", "KiB more a thousand ticks"], rows)


def counted_peer(command, secure, ticks=40, interval=0.25):
    simulator, callgrind = Simulator("--seed", "1", secure=secure), Callgrind()
    peer = Peer(command, simulator, interval, callgrind.prefix)
    time.sleep(3)
    instructions, allocations, _ = callgrind.during(peer.process.pid, lambda: time.sleep(ticks * interval))
    peer.stop()
    simulator.stop()
    return instructions / ticks, allocations / ticks


def counted():
    rows = []
    for secure in (True, False):
        for name, command in {"btc-priced": None, "Python daemon": peers()["Python daemon"]}.items():
            instructions, blocks = count_of_tick(secure) if command is None else counted_peer(command, secure)
            rows.append([name, "TLS" if secure else "plain HTTP", f"{instructions / 1000:,.0f}", f"{blocks:.0f}"])
    instructions, blocks = count_of_call()
    return ("Instructions of a tick under callgrind, and the blocks of memory that it asks the C library for; Go's programs do not run under it:\n\n"
            + table(["", "over", "thousand instructions a tick", "blocks a tick"], rows)
            + f"\nA call of btc-priced's socket takes {instructions:,.0f} instructions and {blocks:.2f} blocks.\n")


def measure():
    return ("## A steady tick\n\n" + f"One tick in {INTERVAL * 1000:.0f} ms, in {BLOCKS} blocks of which the median is told; all daemons at the same time on "
            f"one processor, ticking at different moments, the simulator on the other. Each asks one exchange over a kept connection, writes the price to a "
            f"file on a tmpfs and answers a Unix socket; the shell's loop, which runs after them, {OF_LOOP} times, starts curl and jq. Time and context switches are those of all "
            "threads, of the loop those of all it starts.\n\n" + over(True, TICKS) + "\n" + over(False, FEWER) + "\n" + counted())
