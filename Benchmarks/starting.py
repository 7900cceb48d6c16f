"""Starts, stops, sizes and idle memory, compared with other programs."""

import glob
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from btcpriced import can_connect
from client import stripped
from measuring import BINARIES, BUILT, Place, atexit, known_price, memory, redis, replaying, spawn, spread, table, wait_until
from serving import reply_of
from ticking import LOAD, MEASURED, go_daemon, peers

RUNS = 20


def until(condition, seconds=20):
    """Polls a condition without a pause, since the measured times are a few milliseconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
    return time.monotonic()


def started(command, environment=None):
    os.sched_setaffinity(0, {MEASURED})
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    os.sched_setaffinity(0, {LOAD})
    return process, begun


def ended(process):
    begun = time.monotonic()
    process.terminate()
    process.wait()
    return time.monotonic() - begun


def ours(simulator, program):
    place = Place()
    known_price(place, "68000")
    folder = tempfile.mkdtemp(prefix="btc-priced-notify-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{folder}/notify")
        process, begun = started(
            [program, "--state-directory", place.state, "--runtime-directory", place.runtime, "--sources", "binance", "--source-binance-url",
             simulator.urls["binance"]], {"NOTIFY_SOCKET": f"{folder}/notify"})
        while b"READY=1" not in manager.recv(4096):
            pass
        ready = time.monotonic() - begun
    price = until(lambda: b'"freshness":"fresh"' in reply_of(place.socket)) - begun
    return ready, price, ended(process)


def peer(command, simulator):
    folder = tempfile.mkdtemp(prefix="btc-priced-peer-")
    process, begun = started([*command, simulator.urls["binance"], f"{folder}/price", f"{folder}/socket", "1000"])
    ready = until(lambda: can_connect(f"{folder}/socket")) - begun

    def price():
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"{folder}/socket")
            client.sendall(b"price\n")
            return client.recv(64) != b"-\n"
    priced = until(price) - begun
    stop = ended(process)
    shutil.rmtree(folder)
    return ready, priced, stop


def daemon_stripped():
    program = BUILT / "btc-priced"
    subprocess.run(["strip", "-o", f"{program}.part", BINARIES / "btc-priced"], check=True)
    shutil.copyfile(f"{program}.part", program)
    program.chmod(0o755)
    return program


def unpacked(package):
    """Unpacks a Debian package without installing it, because a measurement should not start its service."""
    folder = tempfile.mkdtemp(prefix="btc-priced-package-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["dpkg", "-x", glob.glob(f"{folder}/{package}_*.deb")[0], f"{folder}/root"], check=True)
    return f"{folder}/root"


def idle_chronyd():
    """chronyd as a server without clients, which does not change this machine's clock."""
    root = unpacked("chrony")
    with open(f"{root}/chrony.conf", "w") as file:
        file.write(f"port 0\ncmdport 0\nbindcmdaddress {root}/../chronyd.sock\npidfile {root}/../chronyd.pid\n")
    return spawn([f"{root}/usr/sbin/chronyd", "-x", "-d", "-u", "root", "-f", f"{root}/chrony.conf"], stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL), f"{root}/usr/sbin/chronyd"


def mib(path):
    return f"{os.path.getsize(path) / 1048576:.1f}"


def measure():
    program, simulator = daemon_stripped(), replaying("68000")
    makers = {"btc-priced": lambda: ours(simulator, program)} | {name: lambda command=command: peer(command, simulator) for name, command in peers().items()}
    found = {name: [] for name in makers}
    before = os.sched_getaffinity(0)
    for _ in range(RUNS):
        for name, maker in makers.items():
            found[name].append(maker())
    os.sched_setaffinity(0, before)
    rows = [[name, *(spread([run[column] for run in runs], digits=1) for column in range(3))] for name, runs in found.items()]
    text = (f"## Start and stop\n\n{RUNS} runs of each in turn; milliseconds, the median and the middle half. btc-priced is ready when it says READY=1, the others when "
            "their socket can be connected to.\n\n" + table(["", "to ready", "to the first price", "to stop"], rows))
    chronyd, chronyd_program = idle_chronyd()
    _, server = redis()
    place = Place()
    daemon = spawn([program, "--state-directory", place.state, "--runtime-directory", place.runtime, "--sources", "binance", "--source-binance-url",
                    simulator.urls["binance"]], stderr=subprocess.DEVNULL)
    time.sleep(30)
    deb = max(glob.glob(str(BINARIES.parent / "deb" / "btc-priced_*.deb")), default=None, key=os.path.getmtime)
    rows = [["btc-priced", mib(program), f"{memory(daemon, 'VmRSS') / 1024:.1f}", f"{memory(daemon, 'RssAnon') / 1024:.1f}"],
            ["btcctl", mib(stripped()), "", ""],
            ["the package of both", mib(deb) if deb else "", "", ""],
            ["Go daemon", mib(go_daemon()), "", ""],
            ["chronyd, idle", mib(chronyd_program), f"{memory(chronyd, 'VmRSS') / 1024:.1f}", f"{memory(chronyd, 'RssAnon') / 1024:.1f}"],
            ["redis-server, idle", mib(shutil.which("redis-server")), f"{memory(server, 'VmRSS') / 1024:.1f}", f"{memory(server, 'RssAnon') / 1024:.1f}"]]
    for process in (daemon, chronyd, server):
        process.terminate()
        process.wait()
    simulator.stop()
    return text + "\n## Sizes\n\nStripped, as in a package; btc-priced ticks once a second, the others do nothing.\n\n" + table(
        ["", "MiB on the disk", "MiB resident", "of them private"], rows)
