"""The socket: calls per second and fan-out, compared with redis with the same bytes, a bare SwiftNIO handler and an epoll loop in C."""

import os
import socket
import statistics
import subprocess
import time

from measuring import BINARIES, BUILT, HERE, atexit, compiled, memory, redis, running_daemon, spawn, table, wait_until

SERVER, LOAD = 0, max(os.sched_getaffinity(0))
ROUNDS, SECONDS = 5, 2
WATCHERS, TICKS = 10_000, 15
CALL = b'{"method":"io.btcpriced.Price.GetPrice"}\0'


def pin(process):
    for thread in os.listdir(f"/proc/{process.pid}/task"):
        os.sched_setaffinity(int(thread), {SERVER})


def nio_handler():
    subprocess.run(["make", "nio-handler"], cwd=HERE.parent, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return BINARIES / "nio-handler"


def reply_of(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(CALL)
        reply = b""
        while not reply.endswith(b"\0"):
            reply += connection.recv(65536)
    return reply


def listening(program, file):
    path = f"{BUILT}/{program.name}.sock"
    if os.path.exists(path):
        os.unlink(path)
    process = spawn([program, path, file], stdout=subprocess.DEVNULL)
    atexit.register(lambda: os.path.exists(path) and os.unlink(path))
    wait_until(lambda: os.path.exists(path), what=program.name)
    return path, process


def loaded(path, kind, connections):
    done = subprocess.run(["taskset", "-c", str(LOAD), compiled("load.c"), path, kind, str(connections), str(SECONDS)], capture_output=True,
                          text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def calls(servers):
    rows = []
    for connections in (1, 50, 1000):
        found = {name: [] for name in servers}
        for _ in range(ROUNDS):
            for name, (path, kind, _) in servers.items():
                found[name].append(loaded(path, kind, connections))
        theirs = [values[0] for values in found["redis GET"]]
        for name, values in found.items():
            rates = [value[0] for value in values]
            ratio = statistics.median(mine / other for mine, other in zip(rates, theirs))
            rows.append([connections, name, f"{statistics.median(rates) / 1000:.0f}", f"{ratio:.2f}",
                         f"{statistics.median(value[1] for value in values):.0f}", f"{statistics.median(value[2] for value in values):.0f}"])
    return table(["connections", "", "thousand calls a second", "over redis", "half within µs", "99 % within µs"], rows)


def watched(path, process, *words):
    """The output of watch, and the server's additional anonymous memory meanwhile and its total, KiB."""
    before = memory(process, "RssAnon")
    child = spawn(["taskset", "-c", str(LOAD), compiled("watch.c"), path, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr.readline() == "ready\n"
    time.sleep(3)
    grown, whole = memory(process, "RssAnon") - before, memory(process, "RssAnon")
    out = child.communicate()[0]
    assert child.returncode == 0, out
    return [float(word) for word in out.split()], grown, whole


def fan_out(servers, file):
    rows = []
    for name, words in (("btc-priced", ("varlink", WATCHERS, TICKS)), ("redis PUBLISH", ("redis", WATCHERS, TICKS, file))):
        path, _, process = servers["redis GET" if name.startswith("redis") else "btc-priced, bare call"]
        (half, longest, missed, wait, count), grown, whole = watched(path, process, *words)
        rows.append([name, f"{half:.0f}", f"{longest:.0f}", int(missed), f"{wait:.1f} ({int(count)})", f"{grown / WATCHERS:.2f}", f"{whole / 1024:.1f}"])
    return table(["", "the last one has it within ms: median", "the longest", "ticks missed", "a call meanwhile, 99 % within ms (calls)",
                  "KiB of private memory a watcher", "MiB private in all"], rows)


def measure():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    place, _, daemon = running_daemon()
    time.sleep(5)
    BUILT.mkdir(parents=True, exist_ok=True)
    file = BUILT / "reply"
    file.write_bytes(reply_of(place.socket))
    path, server = redis("--maxclients", "15000")
    subprocess.run(["redis-cli", "-s", path, "-x", "set", "price"], input=file.read_bytes(), check=True, capture_output=True)
    servers = {"btc-priced, bare call": (place.socket, "bare", daemon.process),
               'btc-priced, with "parameters":{}': (place.socket, "parameters", daemon.process),
               "btc-priced, with spaces": (place.socket, "spaces", daemon.process), "redis GET": (path, "redis", server)}
    for name, program in (("a bare SwiftNIO handler", nio_handler()), ("an epoll loop in C", compiled("loop.c"))):
        path, process = listening(program, file)
        servers[name] = (path, "bare", process)
    for _, _, process in servers.values():
        pin(process)
    text = ("## The socket\n\nThe server on one processor, the load on another; each figure is the median of "
            f"{ROUNDS} runs of {SECONDS} s in turn, each ratio that of the pairs. redis gives the same {len(file.read_bytes())} bytes.\n\n" + calls(servers))
    text += (f"\nFan-out to {WATCHERS} watchers or subscribers, {TICKS} times, one more client calling without a pause. Of btc-priced the time is "
             "from the observation of the price, so it contains what judging, keeping and encoding take.\n\n" + fan_out(servers, file))
    for _, _, process in servers.values():
        process.terminate()
        process.wait()
    return text
