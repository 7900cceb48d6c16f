#!/usr/bin/env python3
"""Absurd numbers from outside: the daemon survives, the price stays right, clients read every reply, and everything recovers."""

import base64
import email.utils
import hashlib
import http.server
import os
import sqlite3
import zlib

from lib.brokers import *
from lib.gateway import Gateway

PRICE = "68901.23"
# All cases of state files, or a random choice.
FILES = int(os.environ.get("FILES", "40"))
NUMBERS = ["0", "-1", "1e-9", "0.000000004", "1e10", "1e11", "1e28", "1e30", "1e128", str(2**63 - 1), str(2**64), "NaN", '""', "null", "[]"]
TIMES = ["0", "-1", str(2**63 - 1), "null"]


def absurd(message, names=None):
    """The texts of a JSON message in which each number, or each member of these names, is replaced by each absurd value in turn. A number
    that was a string stays one."""
    def places(value, path):
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, member in members:
            is_number = isinstance(member, int | float) and not isinstance(member, bool) or isinstance(member, str) and re.fullmatch(r"-?[\d.]+", member)
            if name in names if names else is_number:
                yield [*path, name], isinstance(member, str)
            yield from places(member, [*path, name])
    now = time.time()
    values = NUMBERS + ["9" * 5000, "4102444800", "4102444800000", str(int(now)), str(int(now * 1000))]
    for path, is_text in list(places(message, [])):
        copy = json.loads(json.dumps(message))
        parent = copy
        for name in path[:-1]:
            parent = parent[name]
        parent[path[-1]] = "<absurd>"
        text = json.dumps(copy, separators=(",", ":"))
        for value in values:
            yield path, value, text.replace('"<absurd>"', f'"{value}"' if is_text and value[0] not in '"n[' else value)


def rows(value, time_of_row):
    """Bitstamp's candle, with the value in one of the four prices or in all of them."""
    good = {"open": '"68900"', "high": '"68950"', "low": '"68850"', "close": '"68910"'}
    for names in (["open"], ["high"], ["low"], ["close"], list(good)):
        fields = {**good, **dict.fromkeys(names, value)}
        yield f'{{"timestamp":"{time_of_row}",' + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}"


def body(row):
    return f'{{"data":{{"pair":"BTC/USD","ohlc":[{row}]}}}}'


@scenario("an exchange's candle with any absurd number does not end the daemon, and makes no reply unreadable")
def _():
    # The backfill requests days, hours and minutes some seconds after the start, so each case is a start. Several run at a time.
    minute, midnight = int(time.time()) // 60 * 60 - 600, int(time.time()) // 86_400 * 86_400 - 86_400

    def both(value):
        return [f"{old},{new}" for old, new in zip(rows(value, midnight), rows(value, minute))]
    cases = [(value, row) for value in NUMBERS for row in both(value if value[0] in '"n[' else f'"{value}"')]
    cases += [(value, next(rows('"68900"', value))) for value in TIMES]

    def run(case):
        value, row = case
        simulator = replaying(PRICE)
        simulator.faults(f"bitstamp candles always status 200 body {body(row)}\n")
        place = Place()
        daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "3600000", sources=["bitstamp"], backfill=True)
        fresh(place)
        # One request for the price, and one for each step. A refused candle is not requested again at once.
        begun = time.monotonic()
        wait_until(lambda: number(simulator.limits()["bitstamp"], r"total (\d+)") >= 4 or time.monotonic() > begun + 8
                   or daemon.process.poll() is not None, seconds=60, what="the backfill", every=0.1)
        time.sleep(1)
        equal(daemon.process.poll(), None, (value, daemon.lines))
        state = btcctl(place, "current", "--json")
        equal(state.status, 0, (value, state))
        for arguments in (["history", "--since", "1h", "--step", "1m"], ["status"], ["at", "now"]):
            # 69 if the response does not match the interface.
            result = btcctl(place, *arguments)
            assert result.status in (0, 1, 75), (value, arguments, result)
        day = state.json["day"]
        assert day is None or all(60_000 < Decimal(day[name]) < 80_000 for name in ("open", "high", "low")), (value, day)
        # Stored or not, a restart reads the file again.
        daemon.stop()
        daemon = Daemon(place, simulator.urls, sources=["bitstamp"])
        equal(fresh(place)["quote"]["value"], PRICE)
        daemon.stop()
        simulator.stop()
    with ThreadPoolExecutor(max_workers=16) as pool:
        list(pool.map(run, cases))
    return f"{len(cases)} candles"


@scenario("a peer with any absurd interval is refused, and does not end the daemon", beside=True)
def _():
    simulator = replaying(PRICE)
    first = Daemon(Place(), simulator.urls)
    fresh(first.place)
    helper = Varlink(first.place.socket)
    state = helper.call("io.btcpriced.Price.GetPrice")["parameters"]["state"]
    status = helper.call("io.btcpriced.Price.GetStatus")
    helper.close()
    intervals = [0, -1, 1, 99, 3_600_001, 2**48, 4 * 10**18, 9 * 10**18, 2**63 - 1, 2**64, 1.5, None, "1000"]

    def run(case):
        interval, is_euro = case
        fake = Place()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(fake.socket)
        listener.listen()
        euro = {**state, "currency": "EUR"}
        answers = {"GetStatus": {"parameters": {"status": {**status["parameters"]["status"], "state": euro if is_euro else state, "ticks": {
                       **status["parameters"]["status"]["ticks"], "intervalMs": 1000 if is_euro else interval}}}},
                   "ListCurrencies": {"parameters": {"currencies": [
                       {"currency": "USD", "state": state, "intervalMs": interval, "sources": ["binance"]}]}},
                   "WatchPrice": {"parameters": {"state": state}, "continues": True}}

        def serve(client):
            rest = b""
            try:
                while part := client.recv(65536):
                    rest += part
                    while b"\0" in rest:
                        call, rest = rest.split(b"\0", 1)
                        client.sendall(json.dumps(answers[json.loads(call)["method"].rsplit(".", 1)[1]]).encode() + b"\0")
            except OSError:
                pass

        def accept():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(client,), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        daemon = Daemon(Place(), simulator.urls, sources=["kraken", "coinbase"], peers={"fake": fake})
        wait_until(lambda: any(s["name"] == "fake" and s["lastFailure"] for s in btcctl(daemon.place, "sources", "--json").json["sources"]),
                   seconds=60, what=lambda: f"the refusal of {interval}", every=0.1)
        equal(daemon.process.poll(), None, (interval, daemon.lines))
        seen = fresh(daemon.place)
        equal((seen["quote"]["via"], seen["quote"]["value"]), (None, PRICE), interval)
        daemon.stop()
        listener.close()
    with ThreadPoolExecutor(max_workers=6) as pool:
        list(pool.map(run, [(interval, is_euro) for interval in intervals for is_euro in (False, True)]))
    first.stop()
    simulator.stop()
    return f"{2 * len(intervals)} peers"


@scenario("a row of the history with any absurd number does not affect the price in btcctl or the gateway", beside=True)
def _():
    place, simulator = Place(), replaying(PRICE)
    minute = int(time.time()) // 60 * 60 - 600
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    daemon.stop()
    file = f"{place.state}/history.sqlite3"
    values = [0, -1, 1, 2**63 - 1, -2**63, "", None, "NaN", 1.5, b"\xff"]
    columns = ["open", "high", "low", "close", "ticks", "fresh", "covered", "doubtful"]
    with sqlite3.connect(file) as database:
        for index, (column, value) in enumerate((column, value) for column in columns for value in values):
            row = {"start": minute - 60 * index, "currency": "USD", "open": 6890000000000, "high": 6895000000000, "low": 6885000000000,
                   "close": 6891000000000, "ticks": 60, "fresh": 60, "origin": "own", column: value}
            try:
                database.execute(f"INSERT OR REPLACE INTO minute ({','.join(row)}) VALUES ({','.join('?' * len(row))})", list(row.values()))
            except sqlite3.IntegrityError:
                pass
        count = database.execute("SELECT count(*) FROM minute").fetchone()[0]
    database.close()
    daemon = Daemon(place, simulator.urls)
    state = fresh(place)
    gateway = Gateway(place.socket)
    equal(gateway.get("/v1/price").json["price"], PRICE)
    day = state["day"]
    assert day is None or all(60_000 < Decimal(day[name]) < 80_000 for name in ("open", "high", "low")), day
    for arguments in (["history", "--since", "3h", "--step", "1m"], ["history", "--since", "3h", "--step", "1h"],
                      ["history", "--since", "3d", "--step", "1d"], ["chart"], ["status"]):
        equal(btcctl(place, *arguments).status, 0, (arguments, btcctl(place, *arguments)))
    equal(gateway.get("/v1/history?since=3h&step=1m").status, 200)
    gateway.stop()
    daemon.stop()
    simulator.stop()
    return f"{count} rows"


def tickers(venue, price, moment):
    """The venue's ticker with this price; None for the venue's own. The moment is in milliseconds, or a text as it is."""
    price = f'"{PRICE}"' if price is None else price
    seconds = int(time.time()) if moment is None else moment
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) if moment is None else moment
    return {
        "binance": f'{{"symbol":"BTCUSDT","price":{price}}}',
        "coinbase": f'{{"trade_id":{int(time.time() * 10)},"price":{price},"time":"{iso}"}}',
        "bitstamp": f'{{"last":{price},"timestamp":"{seconds}"}}',
        "kraken": f'{{"error":[],"result":{{"XXBTZUSD":{{"c":[{price},"0.1"]}}}}}}',
    }[venue]


@scenario("a ticker with any absurd number or time is never shown and does not end the daemon, and the source is used again afterwards")
def _():
    venues = ["binance", "coinbase", "bitstamp", "kraken"]
    wrong = ["2100-01-01T00:00:00Z", "1970-01-01T00:00:00Z", str(int(time.time()) * 1000), str(int(time.time() * 1e9))]

    def run(venue):
        simulator, place = replaying(PRICE), Place()
        others = [name for name in venues if name != venue]
        daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "200", *LOOKS_OFTEN, sources=[venue, *others])
        settled(place)
        cases = [(value if value[0] in '"n[' else f'"{value}"', None) for value in NUMBERS] + [("9" * 60_000, None)]
        if venue in ("coinbase", "bitstamp"):
            cases += [(None, text) for text in TIMES + wrong]
        for price, moment in cases:
            simulator.faults(f"{venue} always status 200 body {tickers(venue, price, moment)}\n")
            btcctl(place, "retry", venue)
            wait_until(lambda: simulator.requests()[venue] > 0, what=lambda: f"a request to {venue} for {price} {moment}", every=0.05)
            for _ in range(3):
                state = btcctl(place, "current", "--json")
                equal(state.status, 0, (venue, price, moment, state))
                equal(state.json["quote"]["value"], PRICE, (venue, price, moment))
            equal(daemon.process.poll(), None, (venue, price, moment))
        simulator.faults("")
        btcctl(place, "retry", venue)
        wait_until(lambda: fresh(place)["quote"]["source"] in (venue, "binance" if venue == "kraken" else venue, others[0]), what="a recovery")
        wait_until(lambda: next(s for s in btcctl(place, "sources", "--json").json["sources"] if s["name"] == venue)["use"] in ("current", "ready", "slow"),
                   # Trade numbers that begin again count after a minute.
                   seconds=120,
                   what=lambda: btcctl(place, "sources").out)
        daemon.stop()
        simulator.stop()
        return len(cases)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return f"{sum(pool.map(run, venues))} tickers"


class AbsurdStream:
    """A WebSocket server that sends given messages to all its clients."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.clients = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        key = re.search(rb"(?i)sec-websocket-key: *(\S+)", head)[1]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        self.clients.append(client)
        while client.recv(4096):
            pass

    def send(self, text):
        data = text.encode()
        length = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2)
        for client in list(self.clients):
            try:
                client.sendall(b"\x81" + length + data)
            except OSError:
                self.clients.remove(client)


def trade(venue, number):
    """A stream's message about a trade at this moment."""
    now = time.time_ns() // 1_000_000
    iso = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000)) + f".{now % 1000:03}000Z"
    return {
        "binance": {"stream": "btcusdt@aggTrade", "data": {
            "e": "aggTrade", "E": now + 1, "s": "BTCUSDT", "a": number, "p": PRICE, "q": "0.00068", "f": number, "l": number, "T": now, "m": True}},
        "coinbase": {"type": "ticker", "sequence": number, "product_id": "BTC-USD", "price": PRICE, "open_24h": "68000", "best_bid": "68901",
                     "best_ask": "68902", "side": "sell", "time": iso, "trade_id": number, "last_size": "0.1"},
        "kraken": {"channel": "ticker", "type": "update", "data": [
            {"symbol": "BTC/USD", "bid": 68901, "ask": 68902, "last": float(PRICE), "volume": 3156, "vwap": 68900, "trades": number, "timestamp": iso}]},
        "bitstamp": {"data": {"id": number, "timestamp": str(now // 1000), "amount": 0.1, "price": float(PRICE), "price_str": PRICE, "type": 0,
                              "microtimestamp": str(now * 1000)}, "channel": "live_trades_btcusd", "event": "trade"},
    }[venue]


@scenario("a stream's message with any absurd number is never shown and does not end the daemon, and the stream counts again afterwards", beside=True)
def _():
    # ISO times are read by name.
    times = {"coinbase": ["time"], "kraken": ["timestamp"]}

    def run(venue):
        stream, simulator, place = AbsurdStream(), replaying(PRICE), Place()
        daemon = Daemon(place, simulator.urls, f"--source-{venue}-stream-url", stream.url, "--tick-interval-ms", "250", sources=[venue])
        # Streams are open while somebody watches changes.
        live = Watch(place, "--live", "--json")
        numbers = iter(range(10**9, 2 * 10**9))

        def way():
            stream.send(json.dumps(trade(venue, next(numbers))))
            return btcctl(place, "sources", "--json").json["sources"][0]["way"]
        wait_until(lambda: way() == "stream", what=f"the stream of {venue}", every=0.1)
        count = 0
        for path, value, text in [*absurd(trade(venue, next(numbers))), *absurd(trade(venue, 0), times.get(venue, ["?"]))]:
            # The other times in the message are current, so that only this number can be the error.
            stream.send(json.dumps(trade(venue, next(numbers))))
            stream.send(text)
            count += 1
            if count % 10 == 0:
                state = btcctl(place, "current", "--json")
                equal((state.status, state.json["quote"]["value"]), (0, PRICE), (venue, path, value))
                equal(daemon.process.poll(), None, (venue, path, value, daemon.lines))
        wait_until(lambda: way() == "stream", seconds=60, what=lambda: f"the stream of {venue} after it; {daemon.lines[-5:]}", every=0.1)
        equal(fresh(place)["quote"]["value"], PRICE)
        equal({state["quote"]["value"] for state in live.states if state.get("quote")}, {PRICE}, venue)
        live.stop()
        daemon.stop()
        simulator.stop()
        return count
    with ThreadPoolExecutor(max_workers=4) as pool:
        return f"{sum(pool.map(run, ['binance', 'coinbase', 'bitstamp', 'kraken']))} messages"


@scenario("a broker's message with any absurd number does not end the follower, and the price returns afterwards", beside=True)
def _():
    certificates = Certificates()
    broker, simulator, leader = Broker(certificates), replaying(PRICE), Place()
    daemon = Daemon(leader, simulator.urls)
    fresh(leader)
    fleet = publisher(broker, certificates, "alpha", leader)
    follower = Follower(broker, certificates, ["alpha"])
    place = Place()
    host = Daemon(place, None, sources=(), peers={"alpha": follower.place("alpha")})
    fresh(place)
    certificate, key = certificates("alpha")
    message = subprocess.run(
        ["mosquitto_sub", "-h", broker.address, "-p", str(broker.port), "--cafile", certificates.authority, "--cert", certificate, "--key", key,
         "-t", "btcpriced/v1/alpha/quote/BTC-USD", "-C", "1", "-i", "look"], capture_output=True, text=True, timeout=30)
    if message.returncode or not message.stdout:
        raise AssertionError(f"no message: {message}")
    fleet.stop()
    # A publisher and a daemon after a restart, with otherwise current messages. A message from a daemon with an absurd clock is
    # dated by that clock for two minutes.
    cases = list(absurd({**json.loads(message.stdout), "instance": "another", "bootId": "another", "sequence": 777_777, "publishedAt": 888_888}))
    client = subprocess.Popen(
        ["mosquitto_pub", "-h", broker.address, "-p", str(broker.port), "--cafile", certificates.authority, "--cert", certificate, "--key", key,
         "-t", "btcpriced/v1/alpha/quote/BTC-USD", "-i", "absurd", "-l"], stdin=subprocess.PIPE, text=True)
    for index, (path, value, text) in enumerate(cases):
        text = text.replace('"sequence":777777', f'"sequence":{index + 1}')
        client.stdin.write(text.replace('"publishedAt":888888', f'"publishedAt":{time.time_ns() // 1_000_000}') + "\n")
        client.stdin.flush()
        # Before the next message arrives.
        time.sleep(0.01)
        if index % 10 == 9:
            state = btcctl(place, "current", "--json")
            equal((state.status, state.json["quote"]["value"]), (0, PRICE), (path, value, state))
            equal((follower.process.poll(), host.process.poll()), (None, None), (path, value, follower.lines, host.lines))
    client.stdin.close()
    equal(client.wait(timeout=60), 0)
    fleet = publisher(broker, certificates, "alpha", leader)
    wait_until(lambda: btcctl(place, "current", "--json").json["freshness"] == "fresh", seconds=60,
               what=lambda: f"a fresh price; {btcctl(place, 'sources').out}", every=0.1)
    stop(host, fleet, follower, daemon, broker, simulator)
    return f"{len(cases)} messages"


@scenario("a state file with any absurd number does not end the daemon, and the price is right or marked as old", beside=True)
def _():
    simulator, generator = replaying(PRICE), seeded()
    first = Daemon(Place(), simulator.urls, sources=["coinbase", "bitstamp"])
    settled(first.place)
    first.stop()
    kept = Path(first.place.state, "last-quote.json").read_text()
    cases = [case for case in absurd({name: value for name, value in json.loads(kept).items() if name != "checksum"})]

    def run(case):
        path, value, text = case
        # As the daemon writes the file: the checksum is first, and covers the text with zeros in its place.
        text = '{\n  "checksum" : "00000000",\n  ' + text[1:] + "\n"
        text = text.replace("00000000", f"{zlib.crc32(text.encode()):08x}", 1)
        place = Place()
        Path(place.state, "last-quote.json").write_text(text)
        # Without an exchange, only the data of the file is available.
        daemon = Daemon(place, None, sources=["coinbase", "bitstamp"])
        state = btcctl(place, "current", "--json")
        equal(state.status, 0 if state.json["quote"] else 1, (path, value, state, daemon.lines))
        assert state.json["freshness"] != "fresh", (path, value, state)
        assert state.json["quote"] is None or state.json["quote"]["value"] == PRICE, (path, value, state)
        equal(btcctl(place, "status").status, 0, (path, value))
        daemon.stop()
        daemon = Daemon(place, simulator.urls, sources=["coinbase", "bitstamp"])
        equal(fresh(place)["quote"]["value"], PRICE, (path, value))
        equal(daemon.stop()[0], 0, (path, value, daemon.lines))
    chosen = cases if FILES >= len(cases) else generator.sample(cases, FILES)
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(run, chosen))
    simulator.stop()
    return f"{len(chosen)} of {len(cases)} files"


def samples(place, seconds):
    """The states shown in this time, five times a second."""
    seen, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        seen.append(btcctl(place, "current", "--json").json)
        time.sleep(0.2)
    return seen


@scenario("a quorum that more sources have than exchanges causes a warning", beside=True)
def _():
    simulator = replaying(PRICE)
    daemon = Daemon(Place(), simulator.urls, "--mode", "median", "--quorum", "3", sources=["bitstamp", "coinbase", "cryptocompare"])
    daemon.says("quorum is 3, but the sources of USD are of only 2 exchanges (bitstamp, coinbase)")
    daemon.stop()
    simulator.stop()


@scenario("a cache that repeats a response from three hours ago, with its Date and time, is never fresh", beside=True)
def _():
    past = time.time() - 10_800
    body = json.dumps({"trade_id": 7, "price": PRICE, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(past))}).encode()
    binance = json.dumps({"symbol": "BTCUSDT", "price": PRICE}).encode()

    def cached(text, *headers, date=None):
        class Cache(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.wfile.write(b"\r\n".join([
                    b"HTTP/1.1 200 OK", b"Date: " + email.utils.formatdate(date or time.time(), usegmt=True).encode(),
                    b"Content-Length: %d" % len(text), *headers, b"", text]))

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cache)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server
    alone = [("coinbase", cached(body, date=past)), ("coinbase", cached(body, b"Age: 10800", date=past)),
             ("binance", cached(binance, b"Age: 10800")), ("binance", cached(binance, date=past))]

    def run(servers):
        place = Place()
        daemon = Daemon(place, {name: f"http://127.0.0.1:{server.server_port}" for name, server in servers}, sources=[name for name, _ in servers])
        # A clock that stands still is known after some responses, not after some seconds.
        wait_until(lambda: btcctl(place, "current", "--json").json["tick"] >= 6, what="the sixth tick", every=0.2)
        seen = samples(place, 3)
        equal([state for state in seen if state["freshness"] == "fresh"], [], [name for name, _ in servers])
        daemon.stop()
    # The last case: all exchanges behind one cache.
    with ThreadPoolExecutor(max_workers=5) as pool:
        list(pool.map(run, [[one] for one in alone] + [[alone[0], alone[3]]]))
    for _, server in alone:
        server.shutdown()


main()
