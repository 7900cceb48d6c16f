"""The costs of streams compared with requests and with a client in Go, and the time from a message's last byte to the watcher's line."""

import base64
import hashlib
import json
import os
import re
import select
import socket
import subprocess
import tempfile
import threading
import time

from measuring import (HERE, LOAD, ON_LOAD, ON_MEASURED, TICKS, Daemon, Place, Row, Simulator, atexit, compiled, compiled_go, fresh, private_memory,
                       process_time, shutil, spawn, wait_until)

MESSAGES = TICKS * 5 // 6
# Half of the time between two messages of an exchange, which is a little longer than the default of watch.min-interval-ms.
GAP = 0.06
SETTLING, SECONDS = 10, TICKS / 20
VENUES = ("binance", "coinbase", "bitstamp", "kraken")
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
WATCH = b'{"method":"io.btcpriced.Price.WatchPrice","parameters":{"updates":"changes"},"more":true}\0'


class Exchange:
    """A port with Binance's price and its stream. It expects correct requests and checks none of them."""

    def __init__(self):
        self.price, self.number = "68000.01", 1
        self.stream = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            connection, _ = self.listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        data = b""
        while received := connection.recv(65536):
            if self.stream is connection:
                continue
            data += received
            if not data.endswith(b"\r\n\r\n"):
                continue
            key, data = re.search(rb"(?i)^sec-websocket-key: *(\S+)", data, re.M), b""
            if key:
                accept = base64.b64encode(hashlib.sha1(key[1] + GUID).digest()).decode()
                connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                   f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
                self.stream = connection
            else:
                body = json.dumps({"symbol": "BTCUSDT", "price": self.price})
                connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    def trade(self):
        """Sends one more trade at another price. Returns the price as bytes, and the time of sending."""
        self.number += 1
        # The last digit is not a zero, which would not be shown.
        self.price = f"68000.{self.number % 1000:03d}1"
        at = int(time.time() * 1000)
        text = json.dumps({"stream": "btcusdt@aggTrade", "data": {
            "e": "aggTrade", "E": at, "s": "BTCUSDT", "a": self.number, "p": self.price, "q": "0.1", "f": 1, "l": 1, "T": at, "m": True, "M": True}},
            separators=(",", ":")).encode()
        frame = b"\x81\x7e" + len(text).to_bytes(2, "big") + text
        sent = time.perf_counter()
        self.stream.sendall(frame)
        return self.price.encode(), sent


def connected(path, request=b""):
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.sendall(request)
    return client


def seen(descriptor, exchange, gap):
    """The microseconds until the watcher has the price of a trade. Before the trade, nothing is sent to it for so many seconds."""
    while select.select([descriptor], [], [], gap)[0]:
        os.read(descriptor, 65536)
    price, sent = exchange.trade()
    while select.select([descriptor], [], [], 10)[0]:
        if price in os.read(descriptor, 65536):
            return (time.perf_counter() - sent) * 1e6
    raise AssertionError(f"{price} did not come")


def to_the_line():
    """Pairs of the microseconds of every message, in order: ours and the relay's."""
    place, ours, theirs = Place(), Exchange(), Exchange()
    daemon = Daemon(place, {"binance": f"http://127.0.0.1:{ours.port}"}, sources=["binance"], streams=["binance"], prefix=ON_MEASURED)
    fresh(place)
    watch = connected(place.socket, WATCH)
    relay = spawn([*ON_MEASURED, compiled(HERE.parent / "Tests/System/lib/relay.c"), str(theirs.port), "/ws/btcusdt@aggTrade"], stdout=subprocess.PIPE)
    wait_until(lambda: ours.stream and theirs.stream, what="the streams")
    assert os.read(relay.stdout.fileno(), 64) == b"open\n"
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LOAD})
    took = [(seen(watch.fileno(), ours, 2 * GAP), seen(relay.stdout.fileno(), theirs, GAP)) for _ in range(MESSAGES)]
    os.sched_setaffinity(0, before)
    relay.terminate()
    relay.wait()
    watch.close()
    daemon.stop()
    return map(sorted, zip(*took))


def drain(client):
    """Reads what a server sends, on a thread, as a watcher does."""
    def read():
        while client.recv(65536):
            pass
    threading.Thread(target=read, daemon=True).start()


class Ours:
    """btc-priced with four exchanges."""

    def __init__(self, simulator, policy, is_watched=False):
        place = Place()
        self.daemon = Daemon(place, simulator.urls, "--streams", policy, sources=VENUES, streams=VENUES, prefix=ON_MEASURED)
        self.process, self.stop = self.daemon.process, self.daemon.stop
        fresh(place)
        if is_watched:
            drain(connected(place.socket, WATCH))


class Client:
    """The client in Go, with a watcher."""

    def __init__(self, simulator):
        folder = tempfile.mkdtemp(prefix="btc-priced-peer-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = f"{folder}/socket"
        addresses = [simulator.urls[venue].removeprefix("http://") for venue in VENUES]
        self.process = spawn([*ON_MEASURED, compiled_go("streams.go"), path, *addresses], stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(path), what="its socket")
        drain(connected(path))

    def stop(self):
        self.process.terminate()
        self.process.wait()


def costs(trades, *makers):
    """Of each program, all at the same time and only the last one with streams: the milliseconds of processor time in a second, and the
    private memory in MiB."""
    simulator = Simulator("--seed", "1", "--trades", str(trades), prefix=ON_LOAD)
    running = [maker(simulator) for maker in makers]
    time.sleep(SETTLING)
    counts = simulator.streams()
    assert all(counts[venue]["open"] == 1 for venue in VENUES), counts
    begun, used = time.perf_counter(), [process_time(program.process.pid) for program in running]
    time.sleep(SECONDS)
    seconds = time.perf_counter() - begun
    sent = sum(simulator.streams()[venue]["messages"] - counts[venue]["messages"] for venue in VENUES) / len(VENUES) / seconds
    assert sent > trades * 0.8, f"{sent:.1f} trades a second instead of {trades}: this machine is too slow"
    found = [((process_time(program.process.pid) - before) / seconds * 1000, private_memory(program.process) / 1024)
             for program, before in zip(running, used)]
    for program in running:
        program.stop()
    simulator.stop()
    return found


def measure():
    ours, theirs = to_the_line()
    rows = [Row(f"stream to watcher, {share} within µs", ours[at], "C relay", theirs[at], at_most=goal)
            for share, at, goal in (("half", MESSAGES // 2, 500), ("99 %", MESSAGES * 99 // 100, 1000))]
    def watched(simulator):
        return Ours(simulator, "auto", is_watched=True)
    # Streams are open only while somebody watches changes, and the ticks request as before.
    requests, few = costs(5, lambda simulator: Ours(simulator, "never"), watched)
    many, = costs(100, watched)
    client, = costs(100, Client)
    most, = costs(1000, watched)
    rows += [Row(f"streams, {trades:,} trades/s, ms/s", used, "requests only", requests[0], ratio_at_most=goal)
             for trades, (used, _), goal in ((5, few, None), (100, many, 4.0), (1000, most, 8.0))]
    return [*rows, Row("the same, 100 trades/s", many[0], "Go client", client[0], ratio_at_most=1.0),
            Row("private memory with streams, MiB", max(few[1], many[1], most[1]), "Go client", client[1], at_most=3.5)]
