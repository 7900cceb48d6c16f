#!/usr/bin/env python3
"""Hostile clients, each next to a well-behaved one that loses no second: a watch that misses no tick, and calls with a reply
within a second. Hits of a limit are counted."""

import os
import resource

from lib.btcpriced import *
from lib.crowd import Crowd, enough_descriptors

PRICE = "io.btcpriced.Price"
CALL = json.dumps({"method": f"{PRICE}.GetPrice"}).encode() + b"\0"

place, simulator = Place(), Simulator("--seed", "1")
# A second for a call, two to read a reply.
daemon = Daemon(place, simulator.urls, "--clients-timeout-s", "1")
fresh(place)


class Beside:
    """The well-behaved client: it watches, and calls without a pause."""

    def __init__(self, place=place):
        self.place = place

    def __enter__(self):
        self.watch = Watch(self.place, "--json")
        wait_until(lambda: len(self.watch.lines) >= 1, what="a line")
        self.slowest, self.calls, self.isOver = 0, 0, False
        self.thread = threading.Thread(target=self._call, daemon=True)
        self.thread.start()
        # Connected before the attack on the daemon begins.
        wait_until(lambda: self.calls > 0, what="an answer")
        return self

    def _call(self):
        connection = Varlink(self.place.socket)
        while not self.isOver:
            begun = time.monotonic()
            assert connection.call(f"{PRICE}.GetPrice")["parameters"]["state"]["freshness"] == "fresh"
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.calls += 1
            time.sleep(0.01)
        connection.close()

    def __exit__(self, kind, error, trace):
        if kind:
            self.isOver = True
            return
        count = len(self.watch.lines)
        wait_until(lambda: len(self.watch.lines) >= count + 2, what="more lines")
        self.isOver = True
        self.thread.join()
        self.watch.stop()
        ticks = [state["tick"] for state in self.watch.states]
        equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "the ticks")
        equal({state["freshness"] for state in self.watch.states}, {"fresh"})
        assert self.slowest < 1 and self.calls > 20, (self.slowest, self.calls)

    @property
    def figures(self):
        return f"{len(self.watch.lines)} ticks without a gap, {self.calls} calls beside it, the slowest {self.slowest * 1000:.0f} ms"


def hits():
    status = btcctl(place, "status", "--json").json["status"]
    return {limit["name"]: limit["hits"] for limit in status["clients"]["limits"]}


def ended(connection, seconds=10):
    """Whether the daemon closes the connection within this time."""
    connection.socket.settimeout(seconds)
    try:
        while connection.socket.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def abuse(name, limit=None):
    """Defines a scenario next to the well-behaved client, and checks the count of the limit that it hits."""
    def note(function):
        @scenario(name)
        def _():
            before = hits()
            with Beside() as beside:
                figures = function()
            after = hits()
            changed = {name: after[name] - before[name] for name in after if after[name] != before[name]}
            assert (set(changed) == {limit}) if limit else not changed, f"limits hit: {changed}"
            equal(daemon.process.poll(), None)
            return ", ".join(filter(None, [beside.figures, f"{limit} {changed[limit]} times" if limit else None, figures]))
    return note


@abuse("half a message and silence", "messageTimeoutMs")
def _():
    connection = Varlink(place.socket)
    connection.send(CALL[:10])
    begun = time.monotonic()
    assert ended(connection)
    assert 0.9 < time.monotonic() - begun < 5


@scenario("a connection without a call is closed after twenty times as long", beside=True)
def _():
    own = Place()
    other = Daemon(own, simulator.urls, "--clients-timeout-s", "1")
    connection, begun = Varlink(own.socket), time.monotonic()
    assert ended(connection, seconds=40)
    took = time.monotonic() - begun
    assert 19.5 < took < 30, took
    limits = {limit["name"]: limit for limit in btcctl(own, "status", "--json").json["status"]["clients"]["limits"]}
    equal((limits["idleTimeoutMs"]["most"], limits["idleTimeoutMs"]["hits"]), (20_000, 1))
    other.stop()


@abuse("sixteen MiB without a NUL", "messageBytes")
def _():
    before = memory(daemon.process)
    connection = Varlink(place.socket)
    sent = 0
    try:
        while sent < 16 << 20:
            connection.send(b"x" * 65536)
            sent += 65536
        raise AssertionError("it was taken")
    except ConnectionError:
        pass
    grown = memory(daemon.process) - before
    assert grown < 1024, grown
    return f"ended after {sent} bytes"


@abuse("bad JSON, deep nesting, wrong types, duplicate and unknown keys, invalid UTF-8")
def _():
    deep = b'{"method":"a.B","parameters":' + b'{"a":' * 500 + b"1" + b"}" * 501 + b"\0"
    for junk in (b"junk\0", b"\0", b"[]\0", b"{}\0", b'{"method":1}\0', b'{"method":"a.B","parameters":[]}\0', b'{"method":"a.B","more":1}\0',
                 b'{"method":"a.B","x":1}\0', b'{"method":"a.B","method":"a.B"}\0', b'{"method":"a.B","more":true,"oneway":true}\0',
                 b'{"method":"\xff\xfe"}\0', b'{"method":"\\ud800"}\0', b"[" * 6000 + b"\0", deep, CALL[:-1] + b" x\0"):
        connection = Varlink(place.socket)
        connection.send(CALL + junk)
        equal(connection.receive()["parameters"]["state"]["freshness"], "fresh", "what came before is answered")
        assert ended(connection), junk
    for junk, error in ((b'{"method":"a.B"}\0', "InterfaceNotFound"), (b'{"method":"B"}\0', "MethodNotFound"),
                        (CALL[:-2] + b',"parameters":{"x":1}}\0', "InvalidParameter"),
                        (CALL[:-2] + b',"parameters":{"cachePolicy":7}}\0', "InvalidParameter")):
        connection = Varlink(place.socket)
        connection.send(junk + CALL)
        equal(connection.receive()["error"], f"org.varlink.service.{error}")
        equal(connection.receive()["parameters"]["state"]["freshness"], "fresh", "the connection goes on")
        connection.close()


@scenario("1,000 calls of GetMetrics at once: they share one answer and its memory")
def _():
    call = json.dumps({"method": f"{PRICE}.GetMetrics"}).encode() + b"\0"
    # With the default write timeout: a busy machine may not read all replies within 2 s.
    own = Place()
    other = Daemon(own, simulator.urls)
    fresh(own)
    connections, before = [Varlink(own.socket) for _ in range(1000)], memory(other.process)
    with Beside(own) as beside:
        for connection in connections:
            connection.send(call)
        for connection in connections:
            connection.socket.recv(1, socket.MSG_PEEK)
        grown = memory(other.process) - before
        for connection in connections:
            assert connection.receive()["parameters"]["families"], "an answer"
            connection.close()
    other.stop()
    # A connection takes a third of a KiB. If each had its own 36 KiB, it would be 35 MiB.
    assert grown < 12_000, f"{grown} KiB"
    return f"{beside.figures}, {grown} KiB more"


@scenario("a client that never reads its replies is closed, at no cost to the others")
def _():
    before = hits()
    with Beside() as beside:
        connections = [Varlink(place.socket) for _ in range(20)]
        for connection in connections:
            connection.socket.setblocking(False)
            try:
                while True:
                    connection.socket.send(CALL * 100)
            except (BlockingIOError, ConnectionError):
                pass
        grown = memory(daemon.process)
        wait_until(lambda: hits()["writeTimeoutMs"] - before["writeTimeoutMs"] == 20, what="the end of all")
    return f"{beside.figures}, {grown} KiB anonymous memory"


@abuse("endless calls from a client that reads slowly: no more of them are held than fit in one reading")
def _():
    connection, before, most, taken = Varlink(place.socket).socket, memory(daemon.process), 0, 0
    connection.setblocking(False)
    calls, end = CALL * 400, time.monotonic() + 4
    rest = calls
    while time.monotonic() < end:
        try:
            rest = rest[connection.send(rest):] or calls
        except BlockingIOError:
            pass
        try:
            taken += len(connection.recv(3000))
        except BlockingIOError:
            pass
        most = max(most, memory(daemon.process) - before)
    connection.close()
    assert most < 1024, most
    return f"{taken >> 20} MiB of replies read, at most {most} KiB more"


@abuse("a client that shuts down its sending side after more calls than it reads gets its replies and the end")
def _():
    for last in ({"method": f"{PRICE}.GetStatus"}, {"method": f"{PRICE}.GetStatus", "oneway": True}):
        connection = Varlink(place.socket)
        connection.send(CALL * 300 + json.dumps(last).encode() + b"\0")
        connection.socket.shutdown(socket.SHUT_WR)
        connection.socket.settimeout(2.5)
        received = b""
        # Slowly, so that replies are still pending when the end arrives.
        while part := connection.socket.recv(4096):
            received += part
            time.sleep(0.0005)
        equal(received.count(b"\0"), 301 - last.get("oneway", False))
        connection.close()


@abuse("endless names that only look the same")
def _():
    # Each pair of marks is another name. A comparison by appearance would sort the marks of each first.
    marks = [chr(0x300 + i) for i in range(16)]
    names = [f"a{one}{two}" for one in marks for two in marks]
    message = json.dumps({"method": "a.B", "parameters": dict.fromkeys(names[:250], 1)}, ensure_ascii=False).encode() + b"\0"
    assert len(message) < 8192
    connections = [Varlink(place.socket) for _ in range(8)]
    end = time.monotonic() + 3
    count = 0
    while time.monotonic() < end:
        for connection in connections:
            connection.send(message * 8)
        for connection in connections:
            for _ in range(8):
                equal(connection.receive()["error"], "org.varlink.service.InterfaceNotFound")
                count += 1
    for connection in connections:
        connection.close()
    return f"{count} messages of {len(message)} bytes"


@scenario("thousands of connections of one user that read nothing take the memory that all may have, and not more")
def _():
    if not enough_descriptors(3000):
        raise Skip("a process may not have 3,000 connections")
    own = Place()
    own.share()
    other = Daemon(own, simulator.urls, "--clients-queued-mib", "8")
    fresh(own)
    before = memory(other.process)
    with Beside(own) as beside:
        crowd = Crowd(own, 3000, json.dumps({"method": "x." + "y" * 8000}).encode() + b"\0" + CALL * 200)
        equal(crowd.count, 3000)
        most, end = 0, time.monotonic() + 4
        while time.monotonic() < end:
            most = max(most, memory(other.process) - before)
            time.sleep(0.05)
        hits = {limit["name"]: limit for limit in btcctl(own, "status", "--json").json["status"]["clients"]["limits"]}
        crowd.stop()
        # What they took is given back in the next quarter of clients.timeout-s.
        wait_until(lambda: memory(other.process) - before < 4 << 10, seconds=15, what="the memory")
    equal(hits["queuedBytes"]["most"], 8 << 20)
    assert hits["queuedBytes"]["hits"] > 100, hits
    # The bytes, the parts of their blocks that malloc(3) can't use, and a third of a KiB for each connection.
    assert most < 24 << 10, f"{most} KiB more"
    said = [line for line in other.lines if "of unread replies" in line]
    equal(len(said), 1, other.lines)
    assert f"user {crowd.uid} " in said[0], said
    other.stop()
    return f"{beside.figures}, at most {most} KiB more, {hits['queuedBytes']['hits']} connections closed"


@scenario("when other users have all connections, root and the daemon's user still connect, and the next one learns why it can't")
def _():
    if os.geteuid() != 0:
        raise Skip("needs root, to be two users")
    own = Place()
    own.share()
    other = Daemon(own, simulator.urls, "--clients-connections", "100")
    fresh(own)
    crowds = [Crowd(own, 90, CALL, "reads", uid=uid) for uid in (100_001, 100_002)]
    # A moment before, the last of them may not be accepted yet.
    wait_until(lambda: len(said := [line for line in other.lines if "was refused" in line]) >= 2 and said, what="the refusals")
    client = f"{own.runtime}/btcctl"
    shutil.copy(BINARIES / "btcctl", client)
    refused = subprocess.run(
        [client, "current", "--socket", own.socket], capture_output=True, text=True, user="nobody", extra_groups=[])
    equal((refused.returncode, refused.stderr), (75, "btcctl: The daemon has too many connections (connections is 100). Try again later.\n"))
    for command in ("status", "pause", "resume"):
        equal(btcctl(own, command).status, 0, command)
    for crowd in crowds:
        crowd.stop()
    said = [line for line in other.lines if "was refused" in line]
    equal(len(said), 2, other.lines)
    assert "it has 75 connections already" in said[0] and "there are 100 connections already" in said[1], said
    other.stop()


@scenario("dear calls of one user wait, all others do not; one line and a count say so", beside=True)
def _():
    if os.geteuid() != 0:
        raise Skip("needs root, to be two users")
    own = Place()
    own.share()
    other = Daemon(own, simulator.urls)
    fresh(own)
    client = f"{own.runtime}/btcctl"
    shutil.copy(BINARIES / "btcctl", client)
    with Beside(own) as beside:
        begun, count, limit = time.monotonic(), 0, {"hits": 0}
        connection = Varlink(own.socket)
        # Five units each, for up to 100 candles.
        while limit["hits"] < 100:
            for _ in range(200):
                connection.call("io.btcpriced.History.GetHistory")["parameters"]["candles"]
            count += 200
            status = subprocess.run(
                [client, "status", "--json", "--socket", own.socket], capture_output=True, text=True, user="nobody", extra_groups=[])
            limits = json.loads(status.stdout)["status"]["clients"]["limits"]
            limit = next(limit for limit in limits if limit["name"] == "costPerSecond")
            assert time.monotonic() - begun < 100, (count, limit)
        took = time.monotonic() - begun
        equal(limit["most"], 2000)
        assert 50_000 < 5 * count <= 50_005 + 2000 * took, (count, took)
    connection.close()
    said = [line for line in other.lines if "Calls of user 0 wait" in line]
    equal(len(said), 1, other.lines)
    other.stop()
    return f"{beside.figures}; {count} calls in {took:.1f} s, {limit['hits']} waited"


@scenario("more connections than the descriptors allow are a warning, and the daemon keeps those that it needs", beside=True)
def _():
    own = Place()
    other = Daemon(own, simulator.urls, "--clients-connections", "5000", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
    fresh(own)
    assert other.said("clients.connections = 5000: 184 are used, three quarters of the 256 file descriptors"), other.lines
    limits = {limit["name"]: limit["most"] for limit in btcctl(own, "status", "--json").json["status"]["clients"]["limits"]}
    equal((limits["connections"], limits["connectionsPerUser"]), (184, 138))
    other.stop()


@abuse("connects and closes as fast as possible")
def _():
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < 3:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(place.socket)
        if count % 3 == 0:
            connection.send(CALL)
        connection.close()
        count += 1
    return f"{count} connections in 3 s"


@scenario("without free descriptors, accepting pauses and recovers, and the ticks continue")
def _():
    pid = daemon.process.pid
    with Beside() as beside:
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")) + 3, limits[1]))
        crowd = [Varlink(place.socket) for _ in range(20)]
        wait_until(lambda: daemon.said("No client can connect for the moment"), what="the word of it")
        time.sleep(1.5)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        for connection in crowd:
            connection.send(CALL)
        equal({connection.receive()["parameters"]["state"]["freshness"] for connection in crowd}, {"fresh"})
    equal(len([line for line in daemon.lines if "No client can connect" in line]), 1, daemon.lines)
    return beside.figures


main()
