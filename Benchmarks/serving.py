"""The socket: calls per second and watchers, compared with redis with the same bytes."""

import os
import resource
import socket
import statistics
import subprocess
import tempfile
import time

from measuring import BUILT, MEASURED, ON_LOAD, Row, atexit, compiled, private_memory, ratios, running_daemon, shutil, spawn, wait_until

CONNECTIONS, ROUNDS, SECONDS = 50, 10, 1
WATCHERS, MESSAGES = 10_000, 15
FORMS = {"bare": "bare", "parameters": "with parameters", "spaces": "with spaces"}
CALL = b'{"method":"io.btcpriced.Price.GetPrice"}\0'


def redis():
    """Starts a redis server on a Unix socket, which stores nothing. Returns the socket's path and the process."""
    folder = tempfile.mkdtemp(prefix="btc-priced-redis-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/redis.sock"
    process = spawn(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder, "--maxclients", "15000"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(path), what="redis")
    return path, process


def pin(process):
    for thread in os.listdir(f"/proc/{process.pid}/task"):
        os.sched_setaffinity(int(thread), {MEASURED})


def reply_of(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(CALL)
        reply = b""
        while not reply.endswith(b"\0"):
            reply += connection.recv(65536)
    return reply


def calls(ours, theirs):
    """The thousands of calls a second, by form: those of redis, and ours right after."""
    def rate(path, form):
        command = [*ON_LOAD, compiled("load.c"), path, form, str(CONNECTIONS), str(SECONDS)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1000
    rounds = [{form: (rate(theirs, "redis"), rate(ours, form)) for form in FORMS} for _ in range(ROUNDS)]
    return {form: zip(*[pairs[form] for pairs in rounds]) for form in FORMS}


def watched(path, process, *words):
    """The milliseconds until the last watcher has a message, and the KiB that a watcher takes."""
    before = private_memory(process)
    child = spawn([*ON_LOAD, compiled("watch.c"), path, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr.readline() == "ready\n"
    time.sleep(3)
    grown = private_memory(process) - before
    out = child.communicate()[0]
    assert child.returncode == 0, out
    return float(out), grown / WATCHERS


def measure():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    place, simulator, daemon = running_daemon()
    BUILT.mkdir(parents=True, exist_ok=True)
    file = BUILT / "reply"
    file.write_bytes(reply_of(place.socket))
    path, server = redis()
    subprocess.run(["redis-cli", "-s", path, "-x", "set", "price"], input=file.read_bytes(), check=True, capture_output=True)
    for process in (daemon.process, server):
        pin(process)
    rows = []
    for form, (theirs, ours) in calls(place.socket, path).items():
        rows.append(Row(f"calls, {FORMS[form]}, thousands/s", statistics.median(ours), "redis GET", statistics.median(theirs),
                        ratios(ours, theirs), ratio_at_least=1.0))
    ours = watched(place.socket, daemon.process, "varlink", WATCHERS, MESSAGES)
    theirs = watched(path, server, "redis", WATCHERS, MESSAGES, file)
    daemon.stop()
    simulator.stop()
    server.terminate()
    server.wait()
    return rows + [Row(f"{WATCHERS:,} watchers, {what}", mine, "redis PUBLISH", its)
                   for what, mine, its in zip(("ms to the last", "KiB each"), ours, theirs)]
