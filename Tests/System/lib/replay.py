"""Recorded trades of Binance, played again by a server that is not ours: PyPI's websockets, on WebSocket streams and as the price ticker.

The tests import it. With a Python that has websockets it is the server and the client, too:

    replay.py serve --pace 10 --from 30 --seconds 450 --ports 2 --log FILE RECORDING...
    replay.py listen --log FILE ws://127.0.0.1:PORT/ws/btcusdt@aggTrade

serve prints `ports A B`, plays when it reads `go`, and prints the counts of each port; it prints them for `counts`, too. listen prints
`open`. Both end with their standard input. The logs have a line for each message, a JSON array:

    serve: [when it became the last trade, its price, {port's place: when its last byte was sent}]; a client of /ws is {"plain": ...}
    listen: [when it came, its price]

All of these times are of CLOCK_MONOTONIC, which all processes of a machine share.
"""

import argparse
import asyncio
import bisect
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

STREAM = "btcusdt@aggTrade"


class Trade:
    """An aggregated trade: what one order traded at one price. Times are of the exchange, milliseconds, but for `received`."""

    def __init__(self, received, data):
        # By the recorder's clock, seconds.
        self.received = received
        self.price, self.time, self.sent, self.is_maker = data["p"], data["T"], data["E"], data["m"]
        self.first = self.last = data["t"]
        self.quantity = Decimal(data["q"])

    def takes(self, received, data):
        """Whether another trade belongs to it, and is added."""
        if (self.time, self.price, self.is_maker) != (data["T"], data["p"], data["m"]):
            return False
        self.received, self.sent, self.last = received, data["E"], data["t"]
        self.quantity += Decimal(data["q"])
        return True


def recorded(paths):
    """The aggregated trades of recordings: on each line the nanoseconds of the arrival and a message of a combined stream."""
    trades = []
    for path in paths:
        with gzip.open(path, "rt") as lines:
            for line in lines:
                stamp, _, frame = line.partition(" ")
                if '"e":"trade"' not in frame:
                    continue
                data = json.loads(frame)["data"]
                received = int(stamp) / 1e9
                if not trades or not trades[-1].takes(received, data):
                    trades.append(Trade(received, data))
    return trades


def largest_burst(trades):
    """The trades of the millisecond that has most of them."""
    counts = {}
    for trade in trades:
        counts[trade.time] = counts.get(trade.time, 0) + trade.last - trade.first + 1
    busiest = max(counts, key=counts.get)
    return [trade for trade in trades if trade.time == busiest]


# --- For the tests ---------------------------------------------------------------------------------------------------

class Player:
    """The server as a process."""

    def __init__(self, python, recordings, pace, begin=0, seconds=None, ports=1):
        from .btcpriced import spawn
        with tempfile.NamedTemporaryFile(prefix="btc-priced-replay-", delete=False) as file:
            self.log = file.name
        length = [] if seconds is None else ["--seconds", seconds]
        self.process = spawn(
            [python, __file__, "serve", "--pace", pace, "--from", begin, *length, "--ports", ports, "--log", self.log, *recordings],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word, *numbers = self.process.stdout.readline().split()
        assert word == "ports", "the server did not start"
        self.ports = [int(number) for number in numbers]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        self.stream_urls = [f"ws://127.0.0.1:{port}" for port in self.ports]

    def play(self):
        """Plays all of it. The counts of each port since then: requests, streams, and the bytes in and out."""
        return self._ask("go")

    def counts(self):
        """The counts of each port since the start."""
        return self._ask("counts")

    def _ask(self, word):
        print(word, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        return json.loads(line)

    def messages(self):
        """What it has sent."""
        return [(begun, Decimal(price), ends) for begun, price, ends in map(json.loads, Path(self.log).read_text().splitlines())]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        os.unlink(self.log)


class Listener:
    """A plain client as a process."""

    def __init__(self, python, url):
        from .btcpriced import spawn
        with tempfile.NamedTemporaryFile(prefix="btc-priced-listener-", delete=False) as file:
            self.log = file.name
        self.process = spawn(
            [python, __file__, "listen", "--log", self.log, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "open\n", "the client did not connect"

    def stop(self):
        """Ends it; when each message came, and its price."""
        self.process.stdin.close()
        self.process.wait()
        lines = Path(self.log).read_text().splitlines()
        os.unlink(self.log)
        return [(at, Decimal(price)) for at, price in map(json.loads, lines)]


class Course:
    """The last trade's price over the time, from when each became the last one."""

    def __init__(self, trades=()):
        self.times, self.prices = [], []
        for at, price in trades:
            self.add(at, price)

    def add(self, at, price):
        # A thread may add while another one reads: what has a time has a price.
        self.prices.append(price)
        self.times.append(at)

    def last(self, at):
        """The last price at a time; None before the first one."""
        index = bisect.bisect_right(self.times, at) - 1
        return self.prices[index] if index >= 0 else None

    def age(self, price, at):
        """For how many seconds a price has not been the last one; None if it has never been until then."""
        index = bisect.bisect_right(self.times, at) - 1
        if index >= 0 and self.prices[index] == price:
            return 0.0
        while index > 0:
            index -= 1
            if self.prices[index] == price:
                return at - self.times[index + 1]
        return None


# --- The server ------------------------------------------------------------------------------------------------------

async def serve(arguments):
    import websockets.asyncio.server as server
    from websockets.datastructures import Headers
    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Response

    trades = recorded(arguments.recordings)
    origin = trades[0].received + arguments.begin
    trades = [t for t in trades if t.received >= origin and (arguments.seconds is None or t.received < origin + arguments.seconds)]
    last = trades[0].price
    log = []

    class Port:
        """A port with its clients."""

        def __init__(self, place):
            self.place = place
            self.clients = []
            self.counts = {"requests": 0, "streams": 0, "in": 0, "out": 0}

        async def open(self):
            port = self

            class Counting(server.ServerConnection):
                def connection_made(self, transport):
                    write = transport.write

                    def counted(data):
                        port.counts["out"] += len(data)
                        write(data)
                    transport.write = counted
                    super().connection_made(transport)

                def data_received(self, data):
                    port.counts["in"] += len(data)
                    super().data_received(data)

            self.server = await server.serve(
                self.stream, "127.0.0.1", 0, process_request=self.request, create_connection=Counting, compression=None)
            return self.server.sockets[0].getsockname()[1]

        def request(self, connection, request):
            address = urlsplit(request.path)
            if address.path == "/stream" or address.path.startswith("/ws/"):
                return None
            status, body = 404, {"code": -1100, "msg": "Not found"}
            if address.path == "/api/v3/ticker/price":
                self.counts["requests"] += 1
                query = parse_qs(address.query)
                status, body = 200, {"symbol": "BTCUSDT", "price": last}
                if "symbols" in query:
                    body = [body]
            data = json.dumps(body, separators=(",", ":")).encode()
            headers = Headers([("Content-Type", "application/json;charset=UTF-8"), ("Content-Length", str(len(data))), ("Connection", "close")])
            return Response(status, "OK" if status == 200 else "Not Found", headers, data)

        async def stream(self, connection):
            """Keeps a client until it goes. As on the real exchange, names of other streams are accepted, and silent."""
            address = urlsplit(unquote(connection.request.path))
            is_wrapped = address.path == "/stream"
            names = parse_qs(address.query).get("streams", [""])[0] if is_wrapped else address.path.removeprefix("/ws/")
            if STREAM in names.split("/"):
                self.counts["streams"] += 1
                self.clients.append((connection, is_wrapped))
            try:
                async for _ in connection:
                    pass
            except ConnectionClosed:
                pass
            finally:
                self.clients = [client for client in self.clients if client[0] is not connection]

    async def play():
        nonlocal last
        # A moment from now, so that the first ones are in time.
        start, wall = time.monotonic() + 0.2, time.time() + 0.2
        first = trades[0].sent

        def now(moment):
            return round(wall * 1000 + (moment - first) / arguments.pace)
        for number, trade in enumerate(trades):
            due = start + (trade.received - origin) / arguments.pace
            delay = due - time.monotonic()
            if delay > 0:
                await asyncio.sleep(delay)
            elif number % 50 == 0:
                # What clients say is read during bursts, too.
                await asyncio.sleep(0)
            data = json.dumps(
                {"e": "aggTrade", "E": now(trade.sent), "s": "BTCUSDT", "a": 3_200_000_000 + number, "p": trade.price,
                 "q": str(trade.quantity), "f": trade.first, "l": trade.last, "T": now(trade.time), "m": trade.is_maker, "M": True},
                separators=(",", ":"))
            wrapped = f'{{"stream":"{STREAM}","data":{data}}}'
            begun, ends = time.monotonic(), {}
            last = trade.price
            for port in ports:
                for connection, is_wrapped in list(port.clients):
                    try:
                        await connection.send(wrapped if is_wrapped else data)
                        ends[str(port.place) if is_wrapped else "plain"] = time.monotonic()
                    except ConnectionClosed:
                        continue
            log.append(json.dumps([begun, trade.price, ends]))
        # The last one is to be seen, too.
        await asyncio.sleep(1)
        Path(arguments.log).write_text("\n".join(log) + "\n")

    ports = [Port(place) for place in range(arguments.ports)]
    print("ports", *[await port.open() for port in ports], flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line == "go\n":
            before = [dict(port.counts) for port in ports]
            await play()
            print(json.dumps([{name: port.counts[name] - old[name] for name in old} for port, old in zip(ports, before)]), flush=True)
        elif line == "counts\n":
            print(json.dumps([port.counts for port in ports]), flush=True)


# --- The client ------------------------------------------------------------------------------------------------------

async def listen(arguments):
    from websockets.asyncio.client import connect
    log = []

    async def run():
        async with connect(arguments.url, compression=None) as connection:
            print("open", flush=True)
            async for message in connection:
                at = time.monotonic()
                log.append(json.dumps([at, json.loads(message)["p"]]))
    task = asyncio.create_task(run())
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    task.cancel()
    Path(arguments.log).write_text("".join(line + "\n" for line in log))


def main():
    parser = argparse.ArgumentParser()
    modes = parser.add_subparsers(required=True)
    server = modes.add_parser("serve")
    server.add_argument("--pace", type=float, default=1)
    server.add_argument("--from", dest="begin", type=float, default=0)
    server.add_argument("--seconds", type=float)
    server.add_argument("--ports", type=int, default=1)
    server.add_argument("--log", required=True)
    server.add_argument("recordings", nargs="+")
    server.set_defaults(run=serve)
    client = modes.add_parser("listen")
    client.add_argument("--log", required=True)
    client.add_argument("url")
    client.set_defaults(run=listen)
    arguments = parser.parse_args()
    asyncio.run(arguments.run(arguments))


if __name__ == "__main__":
    main()
