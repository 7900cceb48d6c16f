"""The costs of an idle daemon: wake-ups, syncs to the disk, and memory after a crowd of clients has gone."""

import re
import socket
import subprocess
import threading
import time

from measuring import BINARIES, Daemon, Place, compiled, known_price, memory, replaying, running_daemon, spawn, switches, table
from ticking import INTERVAL, TICKS

SECONDS = 40
WHILE = TICKS // 3
CROWD = 1000
SYNCS = "fsync,fdatasync,sync,syncfs,sync_file_range,msync"


def watched_over(place, simulator, *options):
    """A daemon as started by its unit: the service manager listens, and the watchdog's timeout is 30 s."""
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(f"{place.runtime}/notify")
    threading.Thread(target=lambda: [manager.recv(4096) for _ in iter(int, 1)], daemon=True).start()
    return Daemon(place, simulator.urls, *options, environment={"NOTIFY_SOCKET": f"{place.runtime}/notify", "WATCHDOG_USEC": "30000000"},
                  sources=["binance", "coinbase"])


def wake_ups(process):
    before = switches(process.pid)
    time.sleep(SECONDS)
    return (switches(process.pid) - before) / SECONDS


def control(place, verb):
    subprocess.run([BINARIES / "btcctl", verb, "--socket", place.socket], check=True, stdout=subprocess.DEVNULL)


def syncs(results):
    """Counts the syncs of a whole run under strace, which traces only these calls."""
    place, simulator = Place(), replaying("68000", "68001", "68002")
    known_price(place, "68000")
    trace = f"{place.state}/trace"
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", str(int(INTERVAL * 1000)), "--tick-budget-ms", "1000", sources=["binance"],
                    prefix=("strace", "-f", "--seccomp-bpf", "-e", f"trace={SYNCS}", "-o", trace))
    time.sleep(WHILE * INTERVAL)
    with open(trace) as file:
        results.append(len(re.findall(rf"\b(?:{SYNCS.replace(',', '|')})\(", file.read())))
    subprocess.run(["pkill", "-TERM", "-P", str(daemon.process.pid)], check=True)
    daemon.process.wait()
    simulator.stop()


def crowd():
    """Private memory before, during and after a crowd of watchers, KiB."""
    place, simulator, daemon = running_daemon()
    # Waits until the observer has requested the other sources too.
    time.sleep(45)
    found = [memory(daemon.process, "RssAnon")]
    for _ in range(2):
        child = spawn([compiled("watch.c"), place.socket, "varlink", str(CROWD), "3"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert child.stderr.readline() == "ready\n"
        time.sleep(1)
        found.append(memory(daemon.process, "RssAnon"))
        assert child.wait() == 0
        time.sleep(3)
        found.append(memory(daemon.process, "RssAnon"))
    daemon.stop()
    simulator.stop()
    return found


def measure():
    results = []
    tracing = threading.Thread(target=syncs, args=(results,))
    tracing.start()
    place, simulator = Place(), replaying("68000")
    known_price(place, "68000")
    daemon = watched_over(place, simulator)
    time.sleep(25)
    ticking = wake_ups(daemon.process)
    control(place, "pause")
    time.sleep(5)
    paused = wake_ups(daemon.process)
    daemon.stop()
    before, first, after, second, again = crowd()
    tracing.join()
    text = ("## At rest\n\nContext switches of all threads in a second, over " f"{SECONDS} s; systemd's watchdog wants its sign of life. Syncs are those of the whole "
            f"process in {WHILE} ticks of {INTERVAL * 1000:.0f} ms, its start among them.\n\n")
    text += table(["", ""], [["ticking once a second, nobody asks: switches a second", f"{ticking:.2f}"], ["paused: switches a second", f"{paused:.2f}"],
                             [f"syncs in {WHILE * INTERVAL:.0f} s", results[0]]])
    return text + f"\n{CROWD} watchers come and go, twice; private memory in all, KiB.\n\n" + table(
        ["before", f"with {CROWD}", "after them", "with them again", "after that", "more than before"], [[before, first, after, second, again, f"{again - before:+d}"]])
