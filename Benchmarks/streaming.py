"""The costs of streams compared with requests, and the time from a message's last byte to the watcher's line."""

import base64
import hashlib
import json
import os
import re
import select
import socket
import subprocess
import threading
import time

from btcpriced import Simulator, Watch
from measuring import BINARIES, HERE, Daemon, Place, compiled, fresh, memory, process_time, spawn, table, wait_until
from ticking import LOAD, MEASURED, TICKS

MESSAGES = TICKS // 3
# A little longer than the default of watch.min-interval-ms.
GAP = 0.12
SECONDS = TICKS // 100
VENUES = ("binance", "coinbase", "bitstamp", "kraken")
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


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


def seen(watchers, exchange):
    """The seconds until each watcher has the price of a trade. Before the trade, no price is sent for the minimum interval."""
    while ready := select.select(watchers.values(), [], [], GAP)[0]:
        for descriptor in ready:
            os.read(descriptor, 65536)
    price, sent = exchange.trade()
    waiting, found = dict(watchers), {}
    while waiting:
        ready, _, _ = select.select(waiting.values(), [], [], 10)
        assert ready, f"{price} did not come to {list(waiting)}"
        for name in [name for name, descriptor in waiting.items() if descriptor in ready]:
            if price in os.read(waiting[name], 65536):
                found[name] = time.perf_counter() - sent
                del waiting[name]
    return found


def to_the_line():
    """The microseconds of every message, by receiver."""
    place, ours, theirs = Place(), Exchange(), Exchange()
    pinned = ("taskset", "-c", str(MEASURED))
    daemon = Daemon(place, {"binance": f"http://127.0.0.1:{ours.port}"}, sources=["binance"], streams=["binance"], prefix=pinned)
    fresh(place)
    watch = socket.socket(socket.AF_UNIX)
    watch.connect(place.socket)
    watch.sendall(json.dumps({"method": "io.btcpriced.Price.WatchPrice", "parameters": {"updates": "changes"}, "more": True}).encode() + b"\0")
    btcctl = spawn([*pinned, BINARIES / "btcctl", "watch", "--live", "--raw", "--socket", place.socket], stdout=subprocess.PIPE,
                   stderr=subprocess.DEVNULL)
    relay = spawn([*pinned, compiled(HERE.parent / "Tests/System/lib/relay.c"), str(theirs.port), "/ws/btcusdt@aggTrade"], stdout=subprocess.PIPE)
    wait_until(lambda: ours.stream and theirs.stream, what="the streams")
    assert os.read(relay.stdout.fileno(), 64) == b"open\n"
    watchers = {"socket": watch.fileno(), "btcctl": btcctl.stdout.fileno()}
    took = {"socket": [], "btcctl": [], "relay": []}
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LOAD})
    try:
        for exchange, descriptors in [(ours, watchers), (theirs, {"relay": relay.stdout.fileno()})] * MESSAGES:
            for name, seconds in seen(descriptors, exchange).items():
                took[name].append(seconds * 1e6)
    finally:
        os.sched_setaffinity(0, before)
    for process in (relay, btcctl):
        process.terminate()
        process.wait()
    watch.close()
    daemon.stop()
    return took


def costs(policy, trades, is_watched):
    """Processor time per second in milliseconds, and private memory in KiB."""
    place, simulator = Place(), Simulator("--seed", "1", "--trades", str(trades))
    daemon = Daemon(place, simulator.urls, "--streams", policy, sources=VENUES, streams=VENUES)
    fresh(place)
    watch = Watch(place, "--live", "--json") if is_watched else None
    time.sleep(15)
    counts, requests = simulator.streams(), sum(simulator.requests().values())
    assert all(counts[venue]["open"] == (policy != "never") for venue in VENUES), counts
    begun, used = time.perf_counter(), process_time(daemon.process.pid)
    time.sleep(SECONDS)
    seconds = time.perf_counter() - begun
    used = (process_time(daemon.process.pid) - used) / seconds * 1000
    requests = (sum(simulator.requests().values()) - requests) / seconds
    private = memory(daemon.process, "RssAnon")
    if watch:
        watch.stop()
    daemon.stop()
    simulator.stop()
    return used, private, requests


def measure():
    names = {"socket": "btc-priced, a watch of changes on the socket", "btcctl": "btc-priced, a line of btcctl watch --live --raw on a pipe", "relay": "a relay in C"}
    rows = []
    for name, values in to_the_line().items():
        values.sort()
        rows.append([names[name], len(values), *(f"{value:.0f}" for value in (values[len(values) // 2], values[len(values) * 99 // 100], values[-1]))])
    text = ("## Streams\n\nFrom a message's last byte to the watcher's line, messages of Binance's stream more than 100 ms apart, without TLS. The exchange and "
            "the watchers are one process on one processor, so that one clock dates both; the daemon, btcctl and the relay are on the other. The relay reads a "
            "stream like it, and gets its messages in turn with the daemon.\n\n" + table(["", "messages", "half within µs", "99 % within µs", "the longest"], rows))
    cases = {"requests only": ("never", 5, False)}
    for trades in (5, 100, 1000):
        cases[f"streams, {trades} trades a second, nobody watches changes"] = ("always", trades, False)
        cases[f"streams, {trades} trades a second, and a client that does"] = ("always", trades, True)
    found = {name: costs(*case) for name, case in cases.items()}
    least = found["requests only"][0]
    rows = [[name, f"{used:.2f}", f"{used / least:.1f}", private, f"{requests:.2f}"] for name, (used, private, requests) in found.items()]
    return text + (f"\nThe daemon with four exchanges without TLS, which all have so many trades a second, over {SECONDS} s:\n\n"
                   + table(["", "ms of processor time a second", "over requests only", "KiB private", "requests a second"], rows))
