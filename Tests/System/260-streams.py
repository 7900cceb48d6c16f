#!/usr/bin/env python3
"""The exchanges' WebSocket streams: what a client that watches changes gets of them, and their faults.

Most scenarios wait for deadlines, so they run at the same time. KILLS: the number of streams that are ended or spoilt at random moments, 20
by default.
"""

import os
import ssl

from lib.btcpriced import *
from lib import replay

PRICE = "io.btcpriced.Price"
FOUR = ("binance", "coinbase", "bitstamp", "kraken")
# A shown price was that of the last trade within this many seconds: a tick, and a second for a slow machine.
LIMIT = 2.0
# Kraken's price is not requested again within the 2 s of its cache.
KRAKEN_LIMIT = 4.5
# With a stream: it is read once in watch.min-interval-ms, and published once in that time, 100 ms each, and half a second.
LIVE_LIMIT = 0.7
# Each trade has another price, and no tick sees a move of 0.2 %.
RISING = [f"{68_900 + index / 100:.2f}" for index in range(20_000)]
KILLS = int(os.environ.get("KILLS", "20"))
RECORDINGS = ("data/hftbacktest_binance_spot_btcusdt_20240808.gz", "data/hftbacktest_binance_spot_btcusdt_20240809.gz")


# --- Shown prices compared with trades -------------------------------------------------------------------------------

class Pulse:
    """The longest time for which this machine makes a thread wait. Times measured here may be late by as much."""

    def __init__(self):
        self.waits = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        before = time.monotonic()
        while True:
            time.sleep(0.02)
            now = time.monotonic()
            if now - before > 0.05:
                self.waits.append((now, now - before))
            before = now

    def worst(self, since, until):
        return max((wait for at, wait in list(self.waits) if since <= at <= until + 1), default=0.0)


pulse = Pulse()


class Tape:
    """Every trade of a simulated market, from a stream without faults: Binance's in yen, at 150 per dollar there. While it
    listens, the market trades, and requests show the last trade."""

    def __init__(self, simulator):
        self.course = replay.Course()
        self.has_ended = False
        address = urllib.parse.urlsplit(simulator.urls["binance"])
        wire = socket.create_connection((address.hostname, address.port))
        context = ssl.create_default_context(cafile=simulator.authority) if simulator.authority else None
        self.socket = context.wrap_socket(wire, server_hostname=address.hostname) if context else wire
        self.socket.sendall(
            b"GET /ws/btcjpy@aggTrade HTTP/1.1\r\nHost: market\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n")
        self.file = self.socket.makefile("rb")
        assert b" 101 " in self.file.readline(), "the tape's stream was refused"
        while self.file.readline() != b"\r\n":
            pass
        # Times of trades are by the wall clock, times of shown prices by the monotonic one.
        self.ahead = time.time() - time.monotonic()
        # The first trade of the market.
        url = simulator.urls["binance"] + "/api/v3/ticker/price?symbol=BTCJPY"
        with urllib.request.urlopen(url, timeout=5, context=context) as response:
            self.course.add(time.monotonic(), Decimal(json.load(response)["price"]) / 150)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        try:
            while head := self.file.read(2):
                opcode, length = head[0] & 0x0F, head[1]
                if length > 125:
                    length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
                payload = self.file.read(length)
                if opcode == 9:
                    self.socket.sendall(bytes([0x8A, 0x80 | len(payload), 0, 0, 0, 0]) + payload)
                elif opcode == 1:
                    trade = json.loads(payload)
                    self.course.add(trade["T"] / 1000 - self.ahead, Decimal(trade["p"]) / 150)
        except OSError:
            pass
        self.has_ended = True


def rule(venue, text):
    """A rule for the streams of a venue: Binance's in dollars only, because the tape has the one in yen."""
    return f"{venue}{' BTC/USDT' if venue == 'binance' else ''} stream {text}\n"


class Market:
    """A simulator that always trades, and its tape."""

    def __init__(self, *arguments, prices=RISING, secure=False):
        with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
            file.write("close\n" + "".join(f"{price}\n" for price in prices))
        atexit.register(os.unlink, file.name)
        self.simulator = Simulator("--replay", file.name, *arguments, secure=secure)
        self.tape = Tape(self.simulator)

    def fault(self, **rules):
        """Sets a rule such as `always cut` for the streams of each of these venues. None: no faults."""
        self.simulator.faults("".join(rule(venue, text) for venue, text in rules.items()))

    def streams(self):
        """The counts of the streams, without the tape's."""
        counts = self.simulator.streams()
        counts["binance"]["open"] -= 1
        counts["binance"]["opened"] -= 1
        return counts

    def open(self, *venues):
        counts = self.streams()
        return [counts[venue]["open"] for venue in venues]

    def attempts(self, *venues):
        """The number of requests for a stream at each venue."""
        counts = self.streams()
        return [counts[venue]["opened"] + counts[venue]["refused"] for venue in venues]

    def requests(self):
        counts = self.simulator.requests()
        counts["binance"] -= 1
        return counts


class Shown(Watch):
    """btcctl watch --json: the shown states and their times."""

    def __init__(self, place, *arguments):
        self.seen = []
        super().__init__(place, "--json", *arguments)

    def _line(self, line):
        at = time.monotonic()
        self.seen.append((at, json.loads(line)))


class Node:
    """A daemon on a market, and the states that its watchers receive. `live`: also a client that watches changes, so streams open."""

    def __init__(self, market, sources, *arguments, streams=None, place=None, live=True):
        self.market, self.place = market, place or Place()
        arguments = [*arguments]
        if market.simulator.authority:
            arguments += ["--tls-ca-file", market.simulator.authority]
        self.born = time.monotonic()
        self.daemon = Daemon(
            self.place, market.simulator.urls, *arguments, sources=sources, streams=sources if streams is None else streams,
            level="debug")
        self.watches = []
        self.ticks = self.watched()
        self.begun = wait_until(
            lambda: next((at for at, state in list(self.ticks.seen) if state.get("freshness") == "fresh"), None), seconds=30, every=0.05,
            what=lambda: f"a fresh price; {self.daemon.lines[-3:]}")
        self.changes = self.live() if live else None

    def watched(self, *arguments):
        """One more watcher."""
        self.watches.append(Shown(self.place, *arguments))
        return self.watches[-1]

    def live(self):
        """One more watcher, which also receives the changes between the ticks."""
        return self.watched("--live")

    def sources(self):
        connection = Varlink(self.place.socket)
        try:
            return {source["name"]: source for source in connection.call(f"{PRICE}.ListSources")["parameters"]["sources"]}
        finally:
            connection.close()

    def way(self, venue):
        return self.sources()[venue]["way"]

    def streaming(self, *venues, seconds=60):
        """Waits until the streams of these sources bring prices."""
        wait_until(
            lambda: all(self.way(venue) == "stream" for venue in venues), seconds=seconds, every=0.1,
            what=lambda: f"the streams of {venues}, with {self.market.streams()}; {self.ends()}")

    def ends(self):
        """The journal's lines about the ends of streams."""
        return [line.split(": ", 1)[-1] for line in self.daemon.lines if "stream of" in line.lower()]

    def is_refused(self, venue, reason=""):
        return self.daemon.said(f"The stream of {venue} can't be used: {reason}")

    def files(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    def check(self, limit=LIMIT, shown=None, since=0.0):
        """Checks that every state was fresh, no tick was lost, and each price was the last one within the last `limit` seconds."""
        time.sleep(0.1)
        seen = [(at, state) for at, state in list((shown or self.ticks).seen) if at >= max(since, self.begun)]
        # On a busy machine the tape is read later than the state. A market that has stopped trading has no later trade.
        begun = time.monotonic()
        while seen and self.market.tape.course.times[-1] < seen[-1][0] and time.monotonic() < begun + 3:
            time.sleep(0.02)
        assert len(seen) > 1, "nothing was shown"
        equal([state for _, state in seen if state.get("freshness") != "fresh"], [], "states that are not fresh")
        ticks = [state["tick"] for _, state in seen]
        if shown is None:
            equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "a state of each tick")
        assert not self.market.tape.has_ended, "the tape has ended"
        worst = 0.0
        for at, state in seen:
            age = self.market.tape.course.age(Decimal(state["quote"]["value"]), at)
            assert age is not None, f"nobody has traded at the price of {state}"
            allowed = limit + pulse.worst(at - limit - 2, at)
            assert age <= allowed, f"a price that was not the last one for {age:.2f} s, of {allowed:.2f} s: {state}"
            worst = max(worst, age)
        return f"{len(seen)} states, the oldest price {worst:.2f} s"

    def check_both(self, limit=LIMIT):
        """Checks the ticks and the changes."""
        return f"{self.check(limit)}, of changes {self.check(limit, shown=self.changes)}"

    def stop(self):
        for watch in self.watches:
            if watch.process.poll() is None:
                watch.stop()
        if self.daemon.process.poll() is None:
            status, seconds = self.daemon.stop()
            equal(status, 0, "exit status")
            assert seconds < 10, f"the daemon took {seconds:.1f} s to stop"

    def kill(self):
        for process in (self.daemon.process, *(watch.process for watch in self.watches)):
            if process.poll() is None:
                process.kill()
                process.wait()


class Scene:
    """The markets and daemons of one scenario. They end with it, and print their output if it fails."""

    def __init__(self):
        self.markets, self.nodes = [], []

    def market(self, *arguments, **options):
        self.markets.append(Market(*arguments, **options))
        return self.markets[-1]

    def node(self, *arguments, **options):
        self.nodes.append(Node(*arguments, **options))
        return self.nodes[-1]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if error is None:
            for node in self.nodes:
                node.stop()
        else:
            for market in self.markets:
                error.add_note(f"streams: {market.streams()}")
            for node in self.nodes:
                lines = [line for line in node.daemon.lines if " began " not in line]
                error.add_note("the daemon's last lines:\n    " + "\n    ".join(lines[-15:]))
                node.kill()
        for market in self.markets:
            market.simulator.stop()


def beside(name):
    """Defines a function with a scene as a scenario that runs at the same time as the others of its kind."""
    def note(function):
        def run():
            with Scene() as scene:
                return function(scene)
        return scenario(name, beside=True)(run)
    return note


def after(begun, seconds):
    """Waits until `seconds` after `begun`."""
    time.sleep(max(0, begun + seconds - time.monotonic()))


# --- What streams are for --------------------------------------------------------------------------------------------

@beside("four streams for 95 s: pings get pongs with their payload, each tick requests, and as much as without a watcher")
def _(scene):
    market, other = scene.market(), scene.market()
    node, polled = scene.node(market, FOUR), scene.node(other, FOUR, live=False)
    node.streaming(*FOUR)
    before, begun = [each.requests() for each in (market, other)], time.monotonic()
    # Binance closes with 1008 if its ping of the first 20 s gets no pong within a minute.
    after(begun, 95)
    seconds = time.monotonic() - begun
    requests, without = ({venue: each.requests()[venue] - old[venue] for venue in FOUR} for each, old in zip((market, other), before))
    assert seconds * 0.9 - 2 <= requests["binance"] <= seconds * 1.1 + 2, f"requests within {seconds:.0f} s: {requests}"
    assert sum(requests.values()) <= sum(without.values()) * 1.1 + 3, f"{requests} with a watcher, {without} without"
    counts = market.streams()
    for venue in FOUR:
        equal([counts[venue][name] for name in ("open", "opened", "refused")], [1, 1, 0], venue)
    equal(other.attempts(*FOUR), [0, 0, 0, 0], "streams that nobody watches")
    equal({node.way(venue) for venue in FOUR}, {"stream"})
    equal({polled.way(venue) for venue in FOUR}, {"poll"})
    # At Binance the address subscribes. Bitstamp gets a heartbeat request every 15 s.
    assert counts["binance"]["received"] == 0 and counts["coinbase"]["received"] == 1 and counts["kraken"]["received"] == 1, counts
    assert seconds / 15 - 1 <= counts["bitstamp"]["received"] <= seconds / 15 + 3, counts
    assert within(market.simulator.limits()), market.simulator.limits()
    return f"{node.check_both()}; {requests}, without {without}"


@beside("streams open when a client watches changes, and close 30 s after it has left")
def _(scene):
    market = scene.market()
    node = scene.node(market, ("binance", "coinbase"), live=False)
    time.sleep(3)
    equal(market.attempts("binance", "coinbase"), [0, 0], "without such a client")
    equal(node.way("binance"), "poll")
    live = node.live()
    node.streaming("binance", "coinbase")
    listed = {source["name"]: source["way"] for source in btcctl(node.place, "sources", "--json").json["sources"]}
    equal(listed, {"binance": "stream", "coinbase": "stream"})
    wait_until(lambda: len(live.seen) > len({state["tick"] for _, state in live.seen}) + 5, what="changes between the ticks")
    checked = node.check(shown=live)
    live.stop()
    left = time.monotonic()
    after(left, 26)
    equal(market.open("binance", "coinbase"), [1, 1], "shortly before")
    wait_until(lambda: market.open("binance", "coinbase") == [0, 0], every=0.05, what="the end of the streams")
    took = time.monotonic() - left
    assert 28 <= took <= 36, f"closed after {took:.1f} s"
    wait_until(lambda: node.way("binance") == "poll", what="the way of its price", every=0.1)
    node.live()
    wait_until(lambda: market.open("binance", "coinbase") == [1, 1], every=0.05, what="the streams again")
    equal([market.streams()[venue]["opened"] for venue in ("binance", "coinbase")], [2, 2])
    return f"closed {took:.1f} s after the client; {node.check()}; of changes {checked}"


@beside("each exchange alone: the price is that of the last trade, not another number in its messages")
def _(scene):
    market = scene.market()
    nodes = [scene.node(market, (venue,)) for venue in FOUR]
    for venue, node in zip(FOUR, nodes):
        node.streaming(venue)
    since = time.monotonic() + 0.5
    time.sleep(8)
    return "; ".join(
        f"{venue} {node.check(KRAKEN_LIMIT if venue == 'kraken' else LIVE_LIMIT, shown=node.changes, since=since)}"
        for venue, node in zip(FOUR, nodes))


@beside("changes: at most one state in watch.min-interval-ms, and the last trade's price arrives within about that time")
def _(scene):
    market = scene.market("--trades", "40")
    # Ticks so rare that they do not affect the result.
    nodes = {each: scene.node(market, ("binance",), "--tick-interval-ms", "10000", "--watch-min-interval-ms", str(each))
             for each in (100, 500)}
    for node in nodes.values():
        node.streaming("binance")
    figures, worst, since = [], {each: 0.0 for each in nodes}, time.monotonic()
    for _ in range(3):
        time.sleep(4)
        # Trading has stopped.
        market.simulator.faults("binance stream always maintenance\n")
        time.sleep(0.4)
        price, traded = market.tape.course.prices[-1], market.tape.course.times[-1]
        for each, node in nodes.items():
            shown = wait_until(
                lambda: next((at for at, state in list(node.changes.seen) if Decimal(state["quote"]["value"]) == price), None),
                seconds=5, what=lambda: f"{price}, the last one; {node.changes.seen[-1]}")
            worst[each] = max(worst[each], shown - traded)
            allowed = 2 * each / 1000 + 0.5 + pulse.worst(traded - 1, shown)
            assert shown - traded <= allowed, f"{price} came after {shown - traded:.3f} s, with {each} ms"
        market.fault()
        time.sleep(0.5)
    for each, node in nodes.items():
        seen = [(at, state["tick"]) for at, state in node.changes.seen if at >= since]
        seconds = seen[-1][0] - seen[0][0]
        # States of ticks arrive in addition.
        most = seconds * 1000 / each + seen[-1][1] - seen[0][1] + 3
        assert seconds * 1000 / each / 3 <= len(seen) <= most, f"{len(seen)} states in {seconds:.1f} s with {each} ms"
        figures.append(f"{each} ms: {len(seen)} states in {seconds:.1f} s, the last price after at most {worst[each] * 1000:.0f} ms, "
                       f"{node.check(each / 500 + 0.5, shown=node.changes, since=since)}")
    return "; ".join(figures)


@beside("20,000 messages a second, each a cent cheaper: the stream survives them, the ticks are in time, and the last price is shown")
def _(scene):
    market = scene.market("--trades", "1")
    node = scene.node(market, ("binance",))
    node.streaming("binance")
    processes = (market.simulator.process, node.daemon.process, node.changes.process)
    since, without, before = time.monotonic(), delayed(*processes), market.streams()["binance"]["messages"]
    market.simulator.faults("binance stream always burst 20000\n")
    time.sleep(5)
    # 60,000 to the daemon, as many to the tape, and a burst that only one of them has. On a busy machine the tape is read much later.
    sent = lambda: market.streams()["binance"]["messages"] - before
    wait_until(lambda: sent() >= 140_000, every=0.1, what=lambda: f"140,000 messages, of which there are {sent()}")
    market.simulator.faults("binance stream always maintenance\n")
    ended = time.monotonic()
    time.sleep(3)
    with urllib.request.urlopen(market.simulator.urls["binance"] + "/api/v3/ticker/price?symbol=BTCUSDT", timeout=30) as response:
        last = Decimal(json.load(response)["price"])
    # Not counting the time for which the machine had no processor for them.
    while Decimal(node.changes.seen[-1][1]["quote"]["value"]) != last and (
            time.monotonic() < ended + 3 + delayed(*processes) - without):
        time.sleep(0.05)
    equal(market.attempts("binance"), [1], node.ends())
    equal(Decimal(node.changes.seen[-1][1]["quote"]["value"]), last, "the last price")
    ticks = [state["tick"] for _, state in node.ticks.seen]
    equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "a state of each tick")
    assert len([at for at, _ in node.ticks.seen if at >= since]) >= 7, node.ticks.seen
    return f"{sent()} messages, {len(node.changes.seen)} changes"


@beside("the streams show a fall of 0.7 % first, and the requests that they start confirm it: nobody waits for the tick")
def _(scene):
    market = scene.market(prices=["68900"])
    node = scene.node(market, ("coinbase", "bitstamp", "kraken"), "--tick-interval-ms", "10000")
    node.streaming("coinbase", "bitstamp", "kraken")
    tick = node.ticks.seen[-1][1]["tick"]
    wait_until(lambda: node.ticks.seen[-1][1]["tick"] > tick, what="the next tick", seconds=15, every=0.05)
    tick, begun = node.ticks.seen[-1][1]["tick"], time.monotonic()
    time.sleep(1)
    requests = market.requests()["coinbase"]
    fell = time.monotonic()
    market.simulator.faults("* always price 68400\n")
    shown = wait_until(
        lambda: next((at for at, state in list(node.changes.seen) if Decimal(state["quote"]["value"]) == 68400), None),
        seconds=15, every=0.02, what=lambda: f"the fall; {node.changes.seen[-1]}")
    took = shown - fell
    assert took <= 3 + pulse.worst(fell, shown) and shown - begun < 9, f"shown after {took:.2f} s"
    equal(node.changes.seen[-1][1]["tick"], tick, "the tick before the fall")
    assert market.requests()["coinbase"] > requests, "the price that is shown was requested"
    return f"shown after {took:.2f} s"


@beside("a stream that is 1 % off is never shown, starts at most a request a second, and is used again afterwards")
def _(scene):
    market = scene.market()
    node = scene.node(market, FOUR)
    node.streaming(*FOUR)
    # Each market is known, because the observer has requested it.
    wait_until(lambda: all(source["requests"] for source in node.sources().values()), seconds=90, every=0.5, what="a request to each")
    requests, begun = market.requests()["binance"], time.monotonic()
    market.fault(binance="always price x1.01")
    time.sleep(8)
    asked, seconds = market.requests()["binance"] - requests, time.monotonic() - begun
    assert seconds + 2 <= asked <= 2 * seconds + 3, f"{asked} requests in {seconds:.1f} s"
    equal(node.way("binance"), "poll")
    for venue, lie in (("binance", "x0.5"), ("binance", "8200"), ("coinbase", "x0.95"), ("kraken", "8200")):
        market.fault(**{venue: f"always price {lie}"})
        time.sleep(2)
    market.fault()
    node.streaming(*FOUR)
    return f"{asked} requests in {seconds:.1f} s; {node.check_both()}"


@beside("prices of a stream that are older than the last response do not count")
def _(scene):
    market = scene.market()
    node = scene.node(market, ("coinbase",))
    node.streaming("coinbase")
    # A pause of 5 s would end it.
    market.fault(coinbase="always lag 4s")
    time.sleep(12)
    equal(market.attempts("coinbase"), [1])
    equal(node.way("coinbase"), "poll")
    checked = node.check_both()
    market.fault()
    node.streaming("coinbase")
    return checked


# --- Random faults ---------------------------------------------------------------------------------------------------

def spoilt(primary, kills, generator):
    """Ends, stalls, delays, silences or spoils streams at random moments."""
    faults = {
        # The venues, and the time in milliseconds. Only Coinbase's responses show that a price of the stream is late.
        "cut": (FOUR, 300, 1500), "half-close": (FOUR, 300, 1500), "close 1001 going away": (FOUR, 300, 1500), "close 1012": (FOUR, 300, 1500),
        "mute": (FOUR, 1000, 9000), "silent": (FOUR, 1000, 9000), "lag 4s": (("coinbase",), 2000, 9000), "garbage": (FOUR, 1000, 9000),
        "price x1.05": (FOUR, 500, 5000),
    }

    def run(scene):
        market = scene.market()
        node = scene.node(market, (primary, *(venue for venue in FOUR if venue != primary)))
        node.streaming(*FOUR)
        files = node.files()
        # Each market is known.
        wait_until(lambda: all(source["requests"] for source in node.sources().values()), seconds=90, every=0.5, what="a request to each")
        done, hits = [], 0
        for _ in range(kills):
            time.sleep(generator.uniform(0.5, 3))
            counts = market.streams()
            venues = [venue for venue in FOUR if counts[venue]["open"]] or list(FOUR)
            venue = primary if primary in venues and generator.random() < 0.5 else generator.choice(venues)
            fault = generator.choice([name for name, (allowed, *_) in faults.items() if venue in allowed])
            length = generator.randint(*faults[fault][1:])
            done.append(f"{venue} {fault} {length} ms")
            hits += counts[venue]["open"] > 0
            market.fault(**{venue: f"time 0ms-{length}ms {fault}"})
            time.sleep(length / 1000)
        time.sleep(3)
        market.fault()
        try:
            checked = node.check_both()
        except AssertionError as error:
            error.add_note(f"after {done}")
            raise
        wait_until(lambda: node.files() <= files + 6, every=0.5, what=lambda: f"{files} open files and not {node.files()}")
        opened = {venue: counts["opened"] for venue, counts in market.streams().items() if venue in FOUR}
        return f"{hits} of {kills} hit an open stream; {checked}; opened {opened}; open files {files} -> {node.files()}"
    return run


generator = seeded()
for number_of_storm, primary in enumerate(("binance", "coinbase", "bitstamp", "binance")):
    share = KILLS // 4 + (number_of_storm < KILLS % 4)
    beside(f"{number_of_storm + 1}. streams ended, stalled, late, silent and wrong at random moments, {primary} first: each tick has a true price")(
        spoilt(primary, share, random.Random(generator.randrange(1 << 32))))


# --- When a stream is opened again -----------------------------------------------------------------------------------

@beside("ends and refusals: another attempt at growing intervals, after the stated time, or not for 10 min, with a message in the journal")
def _(scene):
    # The fault, the minimum number of attempts within 15 s, and the minimum time between attempts; none if it grows from half a second.
    tables = [
        {"binance": ("close 1011", 2, 5), "coinbase": ("close 1002", 1, 300), "kraken": ("close 1013 try again later", 1, 30),
         "bitstamp": ("close 1000", 3, None)},
        {"binance": ("status 403", 1, 300), "coinbase": ("status 404", 1, 300), "kraken": ("status 451", 1, 300),
         "bitstamp": ("status 503", 2, 5)},
        {"binance": ("status 500 retry-after 9", 2, 9), "coinbase": ("ack-empty", 1, 300), "kraken": ("refuse-subscription", 1, 300),
         "bitstamp": ("refuse-subscription", 1, 300)},
    ]
    markets = []
    for table in tables:
        markets.append(scene.market())
        markets[-1].fault(**{venue: f"always {fault}" for venue, (fault, _, _) in table.items()})
    nodes = [scene.node(market, FOUR) for market in markets]
    time.sleep(15)
    found = {}
    for market, node, table in zip(markets, nodes, tables):
        lasted = time.monotonic() - node.born
        for venue, (fault, least, pause) in table.items():
            (attempts,) = market.attempts(venue)
            most = 1 + lasted // pause if pause else 9
            assert least <= attempts <= most, f"{attempts} attempts at {venue}, with {fault}, within {lasted:.1f} s; {node.ends()}"
            found[f"{venue} {fault}"] = attempts
            equal(node.is_refused(venue), pause == 300, f"whether an operator is told of {fault}: {node.ends()}")
        # The requests continue, whatever the stream's response.
        equal(node.ticks.seen[-1][1]["quote"]["source"], "binance")
        assert market.requests()["binance"] >= 15 * 0.7, market.requests()
    return f"attempts within 15 s: {found}; {'; '.join(node.check() for node in nodes)}"


@beside("a limit of a stream is the exchange's: its requests wait too, also after a restart, and no other exchange's")
def _(scene):
    market = scene.market()
    limited = ("binance", "kraken", "bitstamp")
    market.fault(kraken="always status 429 retry-after 60", binance="always status 418 retry-after 60",
                 bitstamp="always close 1008 Too many requests")
    node = scene.node(market, ("binance", "coinbase", "kraken", "bitstamp"))
    wait_until(lambda: all(node.sources()[venue]["letter"] == "L" for venue in limited), every=0.05,
               what=lambda: f"the cooldowns: {node.sources()}; {node.ends()}")
    # A request may be under way.
    time.sleep(1)

    def rests(seconds):
        before = market.requests()
        time.sleep(seconds)
        requests = {venue: count - before[venue] for venue, count in market.requests().items()}
        equal([requests[venue] for venue in limited], [0, 0, 0], "requests to exchanges with a limit")
        assert requests["coinbase"] >= seconds * 0.7, requests
        return requests
    requests = rests(10)
    equal(market.attempts(*limited), [1, 1, 1])
    checked = node.check()
    node.stop()
    again = scene.node(market, ("binance", "coinbase", "kraken", "bitstamp"), place=node.place, live=False)
    equal([again.sources()[venue]["letter"] for venue in limited], ["L", "L", "L"], "after the restart")
    rests(5)
    return f"{checked}; requests in 10 s: {requests}; after the restart {again.check()}"


@beside("a shell's loop of watch --live uses one stream; pauses and returns open at most ten in five minutes")
def _(scene):
    market = scene.market()
    node = scene.node(market, ("binance",), live=False)
    for _ in range(13):
        live = node.live()
        wait_until(lambda: live.seen, what="a state", every=0.05)
        live.stop()
    wait_until(lambda: market.attempts("binance") == [1], what="the stream", every=0.05)
    node.live()
    for _ in range(13):
        equal(btcctl(node.place, "pause").status, 0)
        wait_until(lambda: market.open("binance") == [0], every=0.05, what="its end while paused")
        (before,), begun = market.attempts("binance"), time.monotonic()
        equal(btcctl(node.place, "resume").status, 0)
        while market.attempts("binance") == [before] and time.monotonic() < begun + 1.5:
            time.sleep(0.05)
    equal(market.attempts("binance"), [10])
    seen = len(node.ticks.seen)
    wait_until(lambda: any(state.get("freshness") == "fresh" for _, state in node.ticks.seen[seen:]), what="a price without the stream")


@beside("exchanges that are absent for 12 s, and streams over TLS that are cut: all come back")
def _(scene):
    gone, cut = scene.market(), scene.market(secure=True)
    node, other = scene.node(gone, ("coinbase", "bitstamp", "kraken", "binance")), scene.node(cut, FOUR)
    node.streaming(*FOUR)
    other.streaming(*FOUR)
    begun = time.monotonic()
    gone.simulator.faults("".join(f"{venue} time 0s-12s refuse\n" for venue in FOUR if venue != "binance"))
    cut.fault(**{venue: "time 0s-10s cut" for venue in FOUR})
    after(begun, 10)
    attempts = cut.attempts(*FOUR)
    # The first attempt is from before. The next ones follow within 0.5 s, 1, 2, 4 and 8 s.
    assert all(3 <= count <= 7 for count in attempts), (attempts, other.ends())
    wait_until(lambda: gone.open(*FOUR) == cut.open(*FOUR) == [1, 1, 1, 1], seconds=60, every=0.1,
               what=lambda: f"all streams; {gone.streams()}, {cut.streams()}")
    returned = time.monotonic() - begun
    return f"all streams {returned:.1f} s after the ends, {attempts} attempts at those that were cut; {node.check()}; {other.check()}"


@beside("streams = never, without an address, and the value always, which has gone: no stream")
def _(scene):
    market = scene.market()
    never = scene.node(market, ("binance",), "--streams", "never")
    gone = scene.node(market, ("coinbase",), "--streams", "always", live=False)
    elsewhere = scene.node(market, ("kraken",), streams=())
    time.sleep(3)
    equal(market.attempts("binance", "coinbase", "kraken"), [0, 0, 0], "streams that were not wanted")
    assert gone.daemon.said('has gone, and now means "auto"'), gone.daemon.lines
    for node in (never, elsewhere):
        ticks = [state["tick"] for _, state in node.changes.seen]
        # The present state, and then one state per tick.
        assert len(ticks) <= len(set(ticks)) + 1, ticks
    gone.live()
    gone.streaming("coinbase")
    connection = Varlink(gone.place.socket)
    connection.send({"method": f"{PRICE}.WatchPrice", "parameters": {"updates": "sometimes"}, "more": True})
    reply = connection.receive()
    equal((reply["error"], reply["parameters"]["parameter"]), ("org.varlink.service.InvalidParameter", "updates"))
    connection.close()
    return f"{never.check()}; {gone.check()}; {elsewhere.check(KRAKEN_LIMIT)}"


# --- Silence ---------------------------------------------------------------------------------------------------------

@beside("streams that send only pings and heartbeats: the next tick shows the price, and Binance's is opened again after 15 s")
def _(scene):
    market = scene.market()
    nodes = {venue: scene.node(market, (venue,)) for venue in FOUR}
    for venue, node in nodes.items():
        node.streaming(venue)
    begun = time.monotonic()
    market.fault(**{venue: "always silent" for venue in FOUR})
    after(begun, 12)
    equal({venue: node.way(venue) for venue, node in nodes.items()}, {venue: "poll" for venue in FOUR})
    equal(market.attempts(*FOUR), [1, 1, 1, 1], "before the deadline of 15 s")
    wait_until(lambda: market.attempts("binance") == [2], seconds=12, every=0.05, what="another connection after 15 s")
    took = time.monotonic() - begun
    equal(market.attempts("coinbase", "bitstamp", "kraken"), [1, 1, 1], "heartbeats show that the connection is alive")
    shown = [f"{venue} {node.check_both(KRAKEN_LIMIT if venue == 'kraken' else LIMIT)}" for venue, node in nodes.items()]
    market.fault()
    for venue, node in nodes.items():
        node.streaming(venue, seconds=30)
    return f"another connection to Binance after {took:.1f} s; {'; '.join(shown)}"


@beside("streams that send nothing more, not even pongs: each ends at its deadline, and comes back")
def _(scene):
    market = scene.market()
    node = scene.node(market, FOUR)
    node.streaming(*FOUR)
    time.sleep(4)
    begun = time.monotonic()
    market.fault(**{venue: "always mute" for venue in FOUR})
    times, bounds = {}, {"coinbase": 5, "kraken": 5, "binance": 15, "bitstamp": 20}
    while len(times) < len(bounds):
        for venue, count in zip(FOUR, market.attempts(*FOUR)):
            if count >= 2:
                times.setdefault(venue, time.monotonic() - begun)
        # Half a second to the next attempt, and five seconds for a slow machine.
        late = [venue for venue, bound in bounds.items() if venue not in times and time.monotonic() - begun > bound + 5.5]
        assert not late, f"{late} are still used; {market.streams()}; {node.ends()}"
        time.sleep(0.05)
    assert all(seconds >= bounds[venue] - 1.5 for venue, seconds in times.items()), times
    market.fault()
    node.streaming(*FOUR, seconds=60)
    return f"{', '.join(f'{venue} {seconds:.1f} s' for venue, seconds in times.items())}; {node.check_both()}"


# --- Recorded trades -------------------------------------------------------------------------------------------------

@scenario("450 s of Binance's recorded trades at ten times their pace, from an independent server: all prices were traded, a burst is two updates")
def _():
    recordings = [shared(path) for path in RECORDINGS]
    python = os.environ.get("VARLINK_PYTHON", str(ROOT / ".build/venv/bin/python3"))
    if not shutil.which(python) or subprocess.run([python, "-c", "import websockets"], capture_output=True).returncode != 0:
        raise Skip("VARLINK_PYTHON names no Python with the websockets package")
    trades = replay.recorded(recordings)
    burst = replay.largest_burst(trades)
    equal(sum(trade.last - trade.first + 1 for trade in burst), 735, "trades of one millisecond")
    # The burst comes after half of the time.
    begin = burst[0].received - trades[0].received - 225
    player = replay.Player(python, recordings, pace=10, begin=begin, seconds=450)
    place = Place()
    daemon = Daemon(place, {"binance": player.urls[0]}, sources=("binance",), streams=("binance",))
    fresh(place)
    live = Shown(place, "--live")
    wait_until(lambda: live.seen and player.counts()[0]["streams"] == 1, what="a state and the stream", every=0.05)
    begun = time.monotonic()
    counts = player.play()
    messages = player.messages()
    course = replay.Course([(begun - 3600, messages[0][1]), *((at, price) for at, price, _ in messages)])
    seen = [(at, state) for at, state in live.seen if at >= begun]
    equal([state for _, state in seen if state.get("freshness") != "fresh"], [], "states that are not fresh")
    worst = 0.0
    for at, state in seen:
        age = course.age(Decimal(state["quote"]["value"]), at)
        assert age is not None, f"nobody has traded at the price of {state}"
        allowed = 0.1 + 0.5 + pulse.worst(at - 2, at)
        assert age <= allowed, f"a price that was not the last one for {age:.3f} s: {state}"
        worst = max(worst, age)
    equal(Decimal(seen[-1][1]["quote"]["value"]), messages[-1][1], "the last price")
    # The changes to a price of the burst.
    first = next(index for index in range(len(messages))
                 if str(messages[index][1]) == burst[0].price
                 and [str(price) for _, price, _ in messages[index:index + len(burst)]] == [trade.price for trade in burst])
    begins, ends = messages[first][0], messages[first + len(burst) - 1][0]
    prices = {price for _, price, _ in messages[first:first + len(burst)]} - {messages[first - 1][1]}
    changes = [(at, new) for (_, old), (at, new) in zip(seen, seen[1:]) if old["quote"]["value"] != new["quote"]["value"]]
    of_burst = [new["quote"]["value"] for at, new in changes if begins <= at <= ends + 0.6 and Decimal(new["quote"]["value"]) in prices]
    # While the burst's last price is that of the last trade, it may be shown again after others.
    assert len(of_burst) <= 2 + (ends - begins > 0.1) * 10 * (ends - begins), of_burst
    seconds = messages[-1][0] - messages[0][0]
    assert len(changes) >= seconds * 3, f"only {len(changes)} changes in {seconds:.0f} s"
    assert counts[0]["streams"] == 0 and seconds * 0.8 <= counts[0]["requests"] <= seconds * 1.2 + 2, f"one stream, and the ticks: {counts}"
    equal(daemon.stop()[0], 0)
    live.stop()
    player.stop()
    return (f"{len(messages)} messages in {seconds:.0f} s, {len(changes)} changes, none older than {worst * 1000:.0f} ms; {len(burst)} messages in "
            f"{(ends - begins) * 1000:.0f} ms: shown {of_burst}; {counts[0]['requests']} requests")


main()
