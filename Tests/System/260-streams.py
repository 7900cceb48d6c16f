#!/usr/bin/env python3
"""The exchanges' WebSocket streams: their faults in practice, and the prices that the daemon shows meanwhile.

Most scenarios wait for deadlines, so they run at the same time. KILLS: the number of streams that are ended or spoilt at random moments, 20
by default.
"""

import os
import ssl
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403
import replay  # noqa: E402
from wallclock import WallClock  # noqa: E402

PRICE = "io.btcpriced.Price"
FOUR = ("binance", "coinbase", "bitstamp", "kraken")
# A shown price was that of the last trade within this many seconds: 1.75 s of a stream's validity, and a second for a slow machine.
LIMIT = 2.75
# Kraken's price is not requested again within the 2 s of its cache.
KRAKEN_LIMIT = 4.5
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

    def __init__(self, *arguments, prices=None, secure=False):
        course = ["--seed", "7"]
        if prices:
            with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
                file.write("close\n" + "".join(f"{price}\n" for price in prices))
            atexit.register(os.unlink, file.name)
            course = ["--replay", file.name]
        self.simulator = Simulator(*course, *arguments, secure=secure)
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
    """A daemon on a market, and the states that its watchers receive."""

    def __init__(self, market, sources, *arguments, streams=None, policy="always", environment=None, place=None):
        self.market, self.place = market, place or Place()
        arguments = [*(["--streams", policy] if policy else []), *arguments]
        if market.simulator.authority:
            arguments += ["--tls-ca-file", market.simulator.authority]
        self.born = time.monotonic()
        self.daemon = Daemon(
            self.place, market.simulator.urls, *arguments, sources=sources, streams=sources if streams is None else streams,
            environment=environment, level="debug")
        self.watches = []
        self.ticks = self.watched()
        self.begun = wait_until(
            lambda: next((at for at, state in list(self.ticks.seen) if state.get("freshness") == "fresh"), None), seconds=30, every=0.05,
            what=lambda: f"a fresh price; {self.daemon.lines[-3:]}")

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
        """Waits until the prices of these sources come by streams."""
        wait_until(
            lambda: all(self.way(venue) == "stream" for venue in venues), seconds=seconds, every=0.1,
            what=lambda: f"the streams of {venues}, with {self.market.streams()}; {self.ends()}")

    def again(self, venue, seconds):
        """Waits for the second attempt at a stream. Returns the seconds since the start of the daemon."""
        wait_until(lambda: self.market.attempts(venue)[0] >= 2, seconds=seconds, every=0.05,
                   what=lambda: f"another connection to {venue}; {self.market.streams()[venue]}, {self.ends()}")
        return time.monotonic() - self.born

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


# --- The longest scenarios first -------------------------------------------------------------------------------------

@beside("four streams for 95 s: the price is the last trade's, pings get pongs with their payload, and a request every 10 to 15 s")
def _(scene):
    market = scene.market()
    node = scene.node(market, FOUR)
    node.streaming(*FOUR)
    before, begun = market.requests(), time.monotonic()
    # Binance closes with 1008 if its ping of the first 20 s gets no pong within a minute.
    after(begun, 95)
    seconds = time.monotonic() - begun
    counts, requests = market.streams(), {venue: count - before[venue] for venue, count in market.requests().items() if venue in FOUR}
    for venue in FOUR:
        equal([counts[venue][name] for name in ("open", "opened", "refused")], [1, 1, 0], venue)
        assert seconds / 15 - 2 <= requests[venue] <= seconds / 10 + 2, f"requests within {seconds:.0f} s: {requests}"
    equal({node.way(venue) for venue in FOUR}, {"stream"})
    # At Binance the address subscribes. Bitstamp gets a heartbeat request every 15 s.
    assert counts["binance"]["received"] == 0 and counts["coinbase"]["received"] == 1 and counts["kraken"]["received"] <= 2, counts
    assert seconds / 15 - 1 <= counts["bitstamp"]["received"] <= seconds / 15 + 3, counts
    assert within(market.simulator.limits()), market.simulator.limits()
    return f"{node.check()}; requests in {seconds:.0f} s: {requests}"


@beside("a subscription without a first price: after 10 s, at Bitstamp after 60 s, another connection is opened and works")
def _(scene):
    market = scene.market()
    market.fault(
        binance="request 1 silent", coinbase="request 1 no-data", kraken="request 1 ack-empty", bitstamp="request 1 ack-empty")
    nodes = {venue: scene.node(market, (venue,)) for venue in FOUR}
    equal({nodes[venue].way(venue) for venue in FOUR}, {"poll"})
    times = {}
    for venue in ("binance", "coinbase", "kraken"):
        times[venue] = nodes[venue].again(venue, 20)
    for venue in times:
        nodes[venue].streaming(venue)
    # The next trade there may be a minute away.
    times["bitstamp"] = nodes["bitstamp"].again("bitstamp", 75)
    nodes["bitstamp"].streaming("bitstamp")
    # Measured after the other streams were open, so the first ones' times are too long, not too short.
    assert all(seconds >= (60 if venue == "bitstamp" else 10) for venue, seconds in times.items()), times
    time.sleep(2)
    equal(market.attempts(*FOUR), [2, 2, 2, 2])
    checked = [nodes[venue].check(KRAKEN_LIMIT if venue == "kraken" else LIMIT) for venue in FOUR]
    return f"{', '.join(f'{venue} {seconds:.1f} s' for venue, seconds in times.items())}; {'; '.join(checked)}"


@beside("a stream that is 5 % off or has 8200 is never shown while others contradict it, and is used again afterwards")
def _(scene):
    market = scene.market()
    node = scene.node(market, FOUR)
    node.streaming(*FOUR)
    live = node.live()
    # Each market is known, because the observer has requested it.
    wait_until(lambda: all(source["requests"] for source in node.sources().values()), seconds=90, every=0.5, what="a request to each")
    lies = {"binance": ("always price x1.05", 6), "coinbase": ("always price x0.95", 4), "kraken": ("always price 8200", 4)}
    for venue, (lie, seconds) in lies.items():
        market.fault(**{venue: lie})
        time.sleep(seconds)
    market.fault()
    wait_until(lambda: node.ticks.seen[-1][1]["quote"]["source"] == "binance", seconds=90, every=0.2, what="Binance's return")
    for wick in ("time 0ms-250ms price x0.5", "time 0ms-250ms price x1.05", "time 0ms-250ms price x0.95"):
        market.fault(binance=wick)
        time.sleep(3)
    checked = f"{node.check()}; of changes {node.check(shown=live)}"
    assert any("implausible" in line for line in node.daemon.lines), node.daemon.lines
    sources = {state["quote"]["source"] for _, state in node.ticks.seen if state["freshness"] == "fresh"}
    return f"{checked}; shown from {sorted(sources)}"


@beside("streams open when a client watches changes, and close 30 s after it has left")
def _(scene):
    market = scene.market()
    node = scene.node(market, ("binance", "coinbase"), policy=None)
    time.sleep(3)
    equal(market.attempts("binance", "coinbase"), [0, 0], "without such a client")
    equal(node.way("binance"), "poll")
    live = node.live()
    wait_until(lambda: market.open("binance", "coinbase") == [1, 1], every=0.05, what="the streams")
    node.streaming("binance", "coinbase")
    listed = {source["name"]: source["way"] for source in btcctl(node.place, "sources", "--json").json["sources"]}
    equal(listed, {"binance": "stream", "coinbase": "stream"})
    wait_until(lambda: len(live.seen) > len({state["tick"] for _, state in live.seen}) + 5, what="changes between the ticks")
    requests = market.requests()["binance"]
    checked = node.check(shown=live)
    live.stop()
    left = time.monotonic()
    after(left, 26)
    equal(market.open("binance", "coinbase"), [1, 1], "shortly before")
    asked = market.requests()["binance"] - requests
    assert asked <= 5, f"{asked} requests to Binance while its stream proved the price"
    wait_until(lambda: market.open("binance", "coinbase") == [0, 0], every=0.05, what="the end of the streams")
    took = time.monotonic() - left
    assert 28 <= took <= 36, f"closed after {took:.1f} s"
    requests = market.requests()["binance"]
    wait_until(lambda: market.requests()["binance"] >= requests + 3, what="a request at each tick")
    equal(node.way("binance"), "poll")
    node.live()
    wait_until(lambda: market.open("binance", "coinbase") == [1, 1], every=0.05, what="the streams again")
    equal([market.streams()[venue]["opened"] for venue in ("binance", "coinbase")], [2, 2])
    return f"closed {took:.1f} s after the client; {node.check()}; of changes {checked}"


@beside("a growing lag, and one of 5 s: prices late by more than 2 s are not shown, the connection is replaced, and then the stream waits")
def _(scene):
    market = scene.market()
    nodes = {venue: scene.node(market, (venue, "bitstamp"), streams=(venue,)) for venue in ("binance", "coinbase")}
    lives = {venue: node.live() for venue, node in nodes.items()}
    for venue, node in nodes.items():
        node.streaming(venue)
    # The least lag is known.
    time.sleep(4)
    begun = time.monotonic()
    market.fault(binance="always lag 5s", coinbase="always lag +400ms")
    after(begun, 40)
    attempts = market.attempts("binance", "coinbase")
    assert all(2 <= count <= 6 for count in attempts), market.streams()
    after(begun, 46)
    equal(market.attempts("binance", "coinbase"), attempts, "it rests, because another connection does not help")
    equal({node.way(venue) for venue, node in nodes.items()}, {"poll"})
    figures = [f"{venue} {node.check(LIMIT + 0.5)}, of changes {node.check(LIMIT + 0.5, shown=lives[venue])}, {node.ends()}"
               for venue, node in nodes.items()]
    return f"{attempts} connections; {'; '.join(figures)}"


@beside("prices of streams that are late by 8 s from their first message on do not count, until they are not late")
def _(scene):
    market = scene.market()
    venues = ("binance", "bitstamp")
    market.fault(**{venue: "always lag 8s" for venue in venues})
    nodes = {venue: scene.node(market, (venue,)) for venue in venues}
    lives = {venue: node.live() for venue, node in nodes.items()}
    time.sleep(20)
    late = {venue: node.check(LIMIT + 0.5) for venue, node in nodes.items()}
    requests = {venue: market.requests()[venue] for venue in venues}
    assert min(requests.values()) >= 8, requests
    market.fault()
    for venue, node in nodes.items():
        node.streaming(venue)
    since = time.monotonic() + 2
    time.sleep(5)
    return f"requests {requests}; " + "; ".join(
        f"{venue} {late[venue]}, then {node.check(since=since)}, of changes {node.check(LIMIT + 0.5, shown=lives[venue])}"
        for venue, node in nodes.items())


def spoilt(primary, kills, generator):
    """Ends, stalls, delays, silences or spoils streams at random moments."""
    faults = {
        # The venues, and the time in milliseconds. At the others, heartbeats prove that a price is the newest; see their scenario.
        "cut": (FOUR, 300, 1500), "half-close": (FOUR, 300, 1500), "close 1001 going away": (FOUR, 300, 1500), "close 1012": (FOUR, 300, 1500),
        "leaving": (FOUR, 1000, 4000), "mute": (FOUR, 1000, 9000), "lag 5s": (FOUR, 2000, 9000), "silent": (("binance",), 1000, 9000),
        "no-data": (("coinbase",), 1000, 9000), "garbage": (("binance", "coinbase"), 1000, 9000), "price x1.05": (FOUR, 500, 5000),
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
            checked = node.check()
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


# --- How a stream ends -----------------------------------------------------------------------------------------------

@beside("close codes: another attempt at once and then at growing intervals, after 5 s, after 30 s, after 30 to 60 s, or not for 10 min")
def _(scene):
    # The code, the minimum number of attempts within 25 s, and the minimum time between attempts; none if it grows from half a second.
    tables = [
        {"binance": ("1008 Too many requests", 1, 30), "coinbase": ("1011", 2, 5), "kraken": ("1013 try again later", 1, 30),
         "bitstamp": ("1002", 1, 300)},
        {"binance": ("1003", 1, 300), "coinbase": ("1007", 1, 300), "kraken": ("1009", 1, 300), "bitstamp": ("1010", 1, 300)},
        {"binance": ("1000", 4, None), "coinbase": ("1001 going away", 4, None), "kraken": ("1012", 4, None), "bitstamp": ("4000", 4, None)},
    ]
    refused = ("1002", "1003", "1007", "1009", "1010")
    return attempts_at(scene, tables, lambda code: f"close {code}", 25, lambda code: "" if code in refused else None)


def attempts_at(scene, tables, fault, seconds, refusal):
    """Counts the attempts at streams that always have a fault, with a market and a daemon for each table."""
    markets = []
    for table in tables:
        markets.append(scene.market())
        markets[-1].fault(**{venue: f"always {fault(what)}" for venue, (what, _, _) in table.items()})
    nodes = [scene.node(market, FOUR) for market in markets]
    after(time.monotonic(), seconds)
    found = {}
    for market, node, table in zip(markets, nodes, tables):
        lasted = time.monotonic() - node.born
        for venue, (what, least, pause) in table.items():
            (attempts,) = market.attempts(venue)
            most = 1 + lasted // pause if pause else 9
            assert least <= attempts <= most, f"{attempts} attempts at {venue}, with {what}, within {lasted:.1f} s; {node.ends()}"
            found[what] = attempts
            reason = refusal(what)
            equal(node.is_refused(venue, reason or ""), reason is not None, f"whether an operator is told of {what}: {node.ends()}")
        # The requests continue, whatever the stream's response.
        equal(node.ticks.seen[-1][1]["quote"]["source"], "binance")
        assert market.requests()["binance"] >= seconds * 0.7, market.requests()
    return f"attempts within {seconds} s: {found}; {'; '.join(node.check() for node in nodes)}"


@beside("a response with another status than 101: waits of 10 min for a refusal, as requested for a limit, 5 s for a server error")
def _(scene):
    tables = [
        {"binance": ("403", 1, 300), "coinbase": ("404", 1, 300), "kraken": ("451", 1, 300), "bitstamp": ("401", 1, 300)},
        {"binance": ("429 retry-after 6", 3, 6), "coinbase": ("429", 1, 30), "kraken": ("500 retry-after 9", 2, 9), "bitstamp": ("503", 2, 5)},
        # A date is exact only to the second.
        {"binance": ("418 retry-after 100", 1, 100), "coinbase": ("429 retry-after-date 7", 2, 6), "kraken": ("502", 2, 5),
         "bitstamp": ("418", 1, 30)},
    ]
    refused = ("401", "403", "404", "451")
    return attempts_at(scene, tables, lambda status: f"status {status}", 15, lambda status: f"HTTP {status}" if status in refused else None)


@beside("Kraken's stream is refused with 429: its requests wait too, and no other exchange's")
def _(scene):
    market = scene.market()
    market.fault(kraken="always status 429 retry-after 20", binance="always status 429 retry-after 20")
    node = scene.node(market, ("binance", "coinbase", "kraken"))
    wait_until(lambda: market.attempts("kraken") == [1], every=0.05, what="the refusal")
    wait_until(lambda: node.sources()["kraken"]["letter"] == "L", every=0.05, what=lambda: f"the cooldown: {node.sources()['kraken']}")
    before, begun = market.requests(), time.monotonic()
    after(begun, 15)
    requests = {venue: count - before[venue] for venue, count in market.requests().items()}
    equal(requests["kraken"], 0, "requests to Kraken")
    assert requests["binance"] >= 12, f"Binance's limit is not that of its stream: {requests}"
    equal(market.attempts("kraken", "binance"), [1, 1])
    return f"{node.check()}; requests in 15 s: {requests}"


@beside("several daemons share an address, and the exchange serves one stream for it: the other daemon waits, and sends requests")
def _(scene):
    market = scene.market()
    market.fault(coinbase="always second-refused", bitstamp="always second-refused")
    first = scene.node(market, ("coinbase", "bitstamp"))
    first.streaming("coinbase", "bitstamp")
    second = scene.node(market, ("coinbase", "bitstamp"))
    time.sleep(12)
    counts = market.streams()
    for venue in ("coinbase", "bitstamp"):
        equal([counts[venue][name] for name in ("open", "opened", "refused")], [1, 1, 1], venue)
    equal((first.way("coinbase"), second.way("coinbase")), ("stream", "poll"))
    return f"{first.check()}; the other one {second.check()}"


@beside("no response, no status 101, or a wrong accept: a deadline of 5 s, and after the fourth time a wait of 10 min")
def _(scene):
    dark = scene.market()
    dark.fault(**{venue: "request 1 dark" for venue in FOUR})
    begun = time.monotonic()
    hung = scene.node(dark, FOUR)
    # The responses of a captive portal, a proxy or a wrong server.
    market = scene.market()
    market.fault(
        binance="always bad-accept", coinbase="always redirect", kraken="always status 200 body <html>Log in</html>", bitstamp="always reset")
    node = scene.node(market, FOUR)
    hung.streaming(*FOUR, seconds=15)
    took = time.monotonic() - begun
    assert took >= 5, f"the deadline came after {took:.1f} s"
    equal(dark.attempts(*FOUR), [2, 2, 2, 2])
    after(begun, 14)
    attempts = dict(zip(FOUR, market.attempts(*FOUR)))
    assert all(3 <= attempts[venue] <= 4 for venue in ("binance", "coinbase", "kraken")), (attempts, node.ends())
    assert 4 <= attempts["bitstamp"] <= 8, attempts
    after(begun, 20)
    equal(market.attempts("binance", "coinbase", "kraken"), [attempts[venue] for venue in ("binance", "coinbase", "kraken")])
    return f"streams {took:.1f} s after the start; attempts {attempts}; {hung.check()}; {node.check()}"


@beside("a refused subscription is not tried again for 10 min; one without an acknowledgement is tried again after 10 s")
def _(scene):
    refusing = scene.market()
    refusing.fault(coinbase="always refuse-subscription", kraken="always refuse-subscription", bitstamp="always refuse-subscription")
    empty = scene.market()
    empty.fault(coinbase="always ack-empty", kraken="request 1 no-ack", bitstamp="request 1 no-ack")
    nodes = [scene.node(market, FOUR) for market in (refusing, empty)]
    # Kraken sends heartbeats only after a subscription.
    times = {venue: nodes[1].again(venue, 15) for venue in ("kraken", "bitstamp")}
    assert times["kraken"] >= 5 and times["bitstamp"] >= 10, times
    after(nodes[1].born, 16)
    equal(refusing.attempts("coinbase", "kraken", "bitstamp"), [1, 1, 1], "after the refusal")
    equal(empty.attempts("coinbase", "kraken", "bitstamp"), [1, 2, 2], "after an acknowledgement of nothing, and without one")
    equal(refusing.open("coinbase", "kraken", "bitstamp"), [0, 0, 0])
    assert all(nodes[0].is_refused(venue) for venue in ("coinbase", "kraken", "bitstamp")), nodes[0].ends()
    assert nodes[1].is_refused("coinbase"), nodes[1].ends()
    nodes[1].streaming("kraken", "bitstamp")
    return f"{', '.join(f'{venue} {seconds:.1f} s' for venue, seconds in times.items())}; {'; '.join(node.check() for node in nodes)}"


@beside("exchanges that are absent for 12 s, and streams that are cut repeatedly: attempts never end, and always with a pause")
def _(scene):
    gone, cut = scene.market(), scene.market()
    node, other = scene.node(gone, ("coinbase", "bitstamp", "kraken", "binance")), scene.node(cut, FOUR)
    node.streaming(*FOUR)
    other.streaming(*FOUR)
    begun = time.monotonic()
    # All at the same moment: a fault of this machine's network is not a reason for waits at the exchanges.
    gone.simulator.faults("".join(f"{venue} time 0s-12s refuse\n" for venue in FOUR if venue != "binance"))
    cut.fault(**{venue: "time 0s-10s cut" for venue in FOUR})
    after(begun, 10)
    attempts = cut.attempts(*FOUR)
    # The first attempt is from before. The next ones follow within 0.5 s, 1, 2, 4 and 8 s.
    assert all(4 <= count <= 7 for count in attempts), (attempts, other.ends())
    other.streaming(*FOUR, seconds=40)
    back = time.monotonic() - begun
    wait_until(lambda: gone.open(*FOUR) == [1, 1, 1, 1], seconds=50, every=0.1, what=lambda: f"all streams; {gone.streams()}")
    returned = time.monotonic() - begun
    assert other.sources()["binance"]["restsUntil"] is None, other.sources()["binance"]
    return (f"back {returned - 12:.1f} s after the exchanges; {attempts} attempts while cut for 10 s, all back {back - 10:.1f} s later; "
            f"{node.check()}; {other.check()}")


@beside("a daemon that its supervisor restarts repeatedly opens at most ten streams in five minutes")
def _(scene):
    market = scene.market()
    place = Place()
    for _ in range(13):
        before = market.attempts("binance")
        daemon = Daemon(place, market.simulator.urls, "--streams", "always", sources=("binance",), streams=("binance",))
        begun = time.monotonic()
        while market.attempts("binance") == before and time.monotonic() < begun + 1.5:
            time.sleep(0.05)
        fresh(place)
        equal(daemon.stop()[0], 0)
    (attempts,) = market.attempts("binance")
    assert attempts <= 10, f"{attempts} connections"
    return f"{attempts} connections in 13 runs"


@beside("Binance, Bitstamp and Kraken announce their end: the next connection is open before the first is closed, and no request is needed")
def _(scene):
    market, busy = scene.market(), scene.market()
    node, other = scene.node(market, FOUR), scene.node(busy, ("bitstamp", "coinbase"))
    node.streaming(*FOUR)
    other.streaming("bitstamp")
    # The connection lasts some seconds.
    time.sleep(8)
    requests, begun = market.requests(), time.monotonic()
    market.fault(**{venue: "always leaving" for venue in FOUR})
    # This venue refuses the second connection.
    busy.simulator.faults("bitstamp stream request 1- second-refused\nbitstamp stream always leaving\n")
    ways, three = set(), ("binance", "bitstamp", "kraken")
    wait_until(lambda: [market.streams()[venue]["opened"] for venue in three] == [2, 2, 2], seconds=4, every=0.02,
               what=lambda: f"the second connections before the end; {market.streams()}")
    took = time.monotonic() - begun
    while time.monotonic() < begun + 8:
        ways |= {node.way("binance")}
        time.sleep(0.1)
    equal(ways, {"stream"}, "the way of Binance's price")
    counts = market.streams()
    for venue in FOUR:
        equal([counts[venue][name] for name in ("open", "opened", "refused")], [1, 2, 0], venue)
    asked = market.requests()["binance"] - requests["binance"]
    assert asked <= 2, f"{asked} requests to Binance within 8 s"
    equal([busy.streams()["bitstamp"][name] for name in ("opened", "refused")], [1, 1], "where the second one is refused")
    equal(busy.open("bitstamp"), [0])
    after(begun, 12)
    return f"opened {took:.2f} s after the announcement, {asked} requests to Binance; {node.check()}; refused: {other.check()}"


# --- Silence ---------------------------------------------------------------------------------------------------------

@beside("Binance's stream is open and sends only pings: requests in the same tick, and another connection")
def _(scene):
    market, still = scene.market(), scene.market(prices=["68900"])
    node = scene.node(market, ("binance", "coinbase"), streams=("binance",))
    # While the price stands still, no request shows that the stream is dead.
    other = scene.node(still, ("binance",))
    live = node.live()
    node.streaming("binance")
    other.streaming("binance")
    time.sleep(2)
    requests, begun = market.requests()["binance"], time.monotonic()
    for each in (market, still):
        each.fault(binance="always silent")
    wait_until(lambda: market.attempts("binance")[0] >= 2, every=0.05, what="another connection")
    took = time.monotonic() - begun
    assert market.requests()["binance"] > requests, "what shows that it is silent is a request"
    after(begun, 12)
    equal(still.attempts("binance"), [1], "before the deadline of 15 s")
    wait_until(lambda: still.attempts("binance") == [2], seconds=12, every=0.05, what="another connection after 15 s")
    stood = time.monotonic() - begun
    equal(node.way("binance"), "poll")
    assert market.requests()["binance"] - requests >= stood - 6, market.requests()
    for each in (market, still):
        each.fault()
    node.streaming("binance", seconds=30)
    return (f"another connection {took:.1f} s after the silence began, {stood:.1f} s where the price stands still; {node.check()}; of changes "
            f"{node.check(shown=live)}; {other.check()}")


@beside("heartbeats without prices are detected: Coinbase's by the number of a newer trade at once, the others by the request every 10 to 15 s")
def _(scene):
    market, numbered = scene.market(), scene.market()
    # Coinbase's heartbeats have the number of the trade before the silence, which only a request can disprove.
    nodes = {venue: scene.node(market, (venue,)) for venue in ("coinbase", "kraken", "bitstamp")}
    honest = scene.node(numbered, ("coinbase",))
    for venue, node in nodes.items():
        node.streaming(venue)
    honest.streaming("coinbase")
    time.sleep(3)
    begun = time.monotonic()
    market.fault(coinbase="always silent", kraken="always silent", bitstamp="always silent")
    numbered.fault(coinbase="always no-data")
    wait_until(lambda: market.attempts("bitstamp")[0] >= 2, every=0.05, what="Bitstamp's second connection")
    times = {"bitstamp": time.monotonic() - begun}
    wait_until(lambda: numbered.attempts("coinbase")[0] >= 2, every=0.05, what="the second connection after newer numbers")
    times["coinbase, newer numbers"] = time.monotonic() - begun
    for venue in ("coinbase", "kraken"):
        wait_until(lambda: market.attempts(venue)[0] >= 2, seconds=30, every=0.05, what=f"the second connection of {venue}")
        times[venue] = time.monotonic() - begun
    found = time.monotonic()
    time.sleep(6)
    shown = [f"{name}, newer numbers {honest.check()}" if name == "coinbase" else f"bitstamp {nodes['bitstamp'].check()}"
             for name in ("coinbase", "bitstamp")]
    for venue in ("coinbase", "kraken"):
        # 15 s to the request, and 2 s for the stream to catch up.
        nodes[venue].check(15 + 2 + LIMIT)
        shown.append(f"{venue} since then {nodes[venue].check(KRAKEN_LIMIT if venue == 'kraken' else LIMIT, since=found + 1)}")
    return f"{', '.join(f'{venue} {seconds:.1f} s' for venue, seconds in times.items())}; {'; '.join(shown)}"


@beside("streams that send nothing more, not even pongs: Coinbase's and Kraken's end after 5 s, Bitstamp's after its heartbeat")
def _(scene):
    market = scene.market()
    node = scene.node(market, FOUR)
    node.streaming(*FOUR)
    time.sleep(4)
    begun = time.monotonic()
    market.fault(**{venue: "always mute" for venue in FOUR})
    times = {}
    # The limits, plus five seconds for a slow machine.
    bounds = {"coinbase": 5.5, "kraken": 5.5, "binance": 15.5, "bitstamp": 25.5}
    while len(times) < len(bounds):
        for venue, count in zip(FOUR, market.attempts(*FOUR)):
            if count >= 2:
                times.setdefault(venue, time.monotonic() - begun)
        late = [venue for venue, bound in bounds.items() if venue not in times and time.monotonic() - begun > bound + 5]
        assert not late, f"{late} are still used; {market.streams()}; {node.ends()}"
        time.sleep(0.05)
    market.fault()
    node.streaming(*FOUR, seconds=40)
    return f"{', '.join(f'{venue} {seconds:.1f} s' for venue, seconds in times.items())}; {node.check()}"


@beside("2,000 pings a second, with prices and without: the deadlines hold, and the daemon has time for its clients")
def _(scene):
    market = scene.market()
    # The market stands still after 8 s. The rule for streams that open from now on does not affect the market.
    market.simulator.faults("binance BTC/USDT stream request 1- ping-flood\nbinance stream time 8s- maintenance\n")
    begun = time.monotonic()
    node = scene.node(market, ("binance",))
    node.streaming("binance")
    used, since = processor(node.daemon.process), time.monotonic()
    after(begun, 20)
    used = (processor(node.daemon.process) - used) / (time.monotonic() - since)
    equal(market.attempts("binance"), [1], "before the deadline")
    wait_until(lambda: market.attempts("binance")[0] >= 2, every=0.05, what="another connection")
    took = time.monotonic() - begun - 8
    # A close while pings still need pongs.
    market.simulator.faults("binance BTC/USDT stream time 0s-3s ping-flood\nbinance BTC/USDT stream time 3s-4s cut\n")
    time.sleep(4)
    market.fault()
    node.streaming("binance", seconds=40)
    return f"another connection {took:.1f} s after the last price; {used * 1000:.0f} ms of processor time a second; {node.check()}"


def processor(process):
    """Seconds of processor time."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@beside("a trade every ten seconds, and a maintenance: if heartbeats prove the price, nothing is requested and nothing is closed")
def _(scene):
    thin, market = scene.market("--trades", "0.1"), scene.market()
    nodes = {venue: scene.node(thin, (venue,)) for venue in ("binance", "coinbase", "kraken")}
    kraken = scene.node(market, ("kraken",))
    for venue in ("coinbase", "kraken"):
        nodes[venue].streaming(venue)
    kraken.streaming("kraken")
    time.sleep(3)
    before, begun = thin.requests(), time.monotonic()
    market.simulator.faults("kraken stream always maintenance\n")
    time.sleep(1)
    stood = time.monotonic()
    requests = market.requests()["kraken"]
    after(begun, 20)
    equal(kraken.way("kraken"), "stream")
    prices = {state["quote"]["value"] for at, state in kraken.ticks.seen if at > stood + 1}
    equal(len(prices), 1, "the prices of a market that stands still")
    asked = market.requests()["kraken"] - requests
    assert asked <= 3, f"{asked} requests to Kraken within 20 s"
    equal(market.streams()["kraken"]["opened"], 1)
    market.fault()
    ended = time.monotonic()
    kraken.streaming("kraken")
    wait_until(lambda: kraken.ticks.seen[-1][1]["quote"]["value"] not in prices, what="the next price")
    after(begun, 30)
    checked = kraken.check(since=ended + 3)
    requests = {venue: thin.requests()[venue] - before[venue] for venue in nodes}
    assert requests["coinbase"] <= 5 and requests["kraken"] <= 5, requests
    assert requests["binance"] >= 15, f"only a trade proves Binance's price: {requests}"
    equal([thin.streams()[venue]["opened"] for venue in nodes], [1, 1, 1])
    figures = [f"{venue} {node.check(KRAKEN_LIMIT if venue == 'kraken' else LIMIT)}" for venue, node in nodes.items()]
    return f"requests in 30 s: {requests}; {'; '.join(figures)}; after the maintenance {checked}"


@beside("a trade while a stream is closed, and none after it is open again: a missing price is not a reason to close it")
def _(scene):
    # Each trade has another price.
    market = scene.market("--trades", "0.1", prices=[68_900 + index for index in range(1000)])
    venues = ("binance", "bitstamp")
    nodes = [scene.node(market, (venue,)) for venue in venues]
    wait_until(lambda: market.open(*venues) == [1, 1], every=0.05, what="the streams")
    course = market.tape.course
    count = len(course.times)
    wait_until(lambda: len(course.times) > count, every=0.05, what="a trade that they show")
    # The streams miss the next trade, in ten seconds: the open ones are cut, and new ones are refused.
    market.simulator.faults("".join(rule(venue, "request 1- status 503") + rule(venue, "always cut") for venue in venues))
    wait_until(lambda: market.open(*venues) == [0, 0], every=0.05, what="the end of the streams")
    count = len(course.times)
    wait_until(lambda: len(course.times) > count, every=0.05, what="a trade that they miss")
    market.fault()
    wait_until(lambda: market.open(*venues) == [1, 1], seconds=30, every=0.05, what="the streams again")
    attempts, count, begun = market.attempts(*venues), len(course.times), time.monotonic()
    # Until the next trade, or until the time when it is due.
    while len(course.times) == count and time.monotonic() < begun + 9:
        equal(market.attempts(*venues), attempts, "connections")
        time.sleep(0.1)
    quiet = time.monotonic() - begun
    wait_until(lambda: len(course.times) > count, every=0.05, what="a trade")
    for venue, node in zip(venues, nodes):
        node.streaming(venue)
    equal(market.attempts(*venues), attempts, "connections")
    return f"{quiet:.1f} s without a trade; {'; '.join(node.check() for node in nodes)}"


# --- Messages --------------------------------------------------------------------------------------------------------

@beside("each exchange alone: the price is that of the last trade, not another number in its messages")
def _(scene):
    market = scene.market()
    nodes = [scene.node(market, (venue,)) for venue in FOUR]
    lives = [node.live() for node in nodes]
    for venue, node in zip(FOUR, nodes):
        node.streaming(venue)
    since = time.monotonic()
    time.sleep(8)
    # Only prices of streams count, so that the bound is that of a message.
    return "; ".join(f"{venue} {node.check(1.1, shown=live, since=since + 1)}" for venue, node, live in zip(FOUR, nodes, lives))


@beside("a byte at a time, in fragments with pings between, with pings of 125 bytes, and the first message right after the 101: all are read")
def _(scene):
    tables = [{"binance": "bytes", "coinbase": "fragments", "kraken": "with-101", "bitstamp": "big-ping"},
              {"binance": "with-101", "coinbase": "with-101", "kraken": "fragments", "bitstamp": "with-101"}]
    markets, nodes = [], []
    for table in tables:
        markets.append(scene.market())
        markets[-1].fault(**{venue: f"always {fault}" for venue, fault in table.items()})
        nodes.append([scene.node(markets[-1], (venue,)) for venue in FOUR])
    for row in nodes:
        for venue, node in zip(FOUR, row):
            node.streaming(venue)
    since = time.monotonic()
    time.sleep(6)
    for market in markets:
        equal([market.streams()[venue]["opened"] for venue in FOUR], [1, 1, 1, 1])
    return "; ".join(node.check(since=since) for row in nodes for node in row)


@beside("masked, reserved, unknown or too long frames, invalid UTF-8, invalid JSON, and prices of pairs without a subscription")
def _(scene):
    broken, strange = scene.market(), scene.market()
    nodes = [scene.node(market, FOUR) for market in (broken, strange)]
    lives = [node.live() for node in nodes]
    for node in nodes:
        node.streaming(*FOUR)
    time.sleep(2)
    begun = time.monotonic()
    broken.fault(binance="always masked", coinbase="always rsv", kraken="always opcode", bitstamp="always bad-utf8")
    strange.fault(binance="always huge 1000000", coinbase="always garbage", kraken="always wrong-pair", bitstamp="always wrong-pair")
    after(begun, 14)
    attempts = broken.attempts(*FOUR)
    assert all(2 <= count <= 5 for count in attempts), (attempts, nodes[0].ends())
    counts = strange.streams()
    assert counts["binance"]["opened"] >= 2 and counts["coinbase"]["opened"] >= 2, counts
    equal([counts[venue]["opened"] for venue in ("kraken", "bitstamp")], [1, 1], "what is unknown is left aside")
    equal((nodes[1].way("kraken"), nodes[1].way("bitstamp")), ("stream", "stream"))
    return f"{attempts} connections in 14 s; " + "; ".join(
        f"{node.check()}, of changes {node.check(shown=live)}" for node, live in zip(nodes, lives))


@beside("repeated trades and an old first message: the price does not go back, and an old one does not count")
def _(scene):
    repeating, old = scene.market("--trades", "0.5"), scene.market("--trades", "0.2")
    repeating.fault(**{venue: "always repeat" for venue in FOUR})
    # The requests fail, because a response with the same price would prove it.
    old.simulator.faults("".join(
        f"{venue} always status 500\n{rule(venue, 'always snapshot-age 107s')}" for venue in ("coinbase", "kraken")))
    nodes = [scene.node(repeating, (venue,)) for venue in FOUR]
    lives = [node.live() for node in nodes]
    late = {venue: scene.node(old, (venue, "binance"), streams=(venue,)) for venue in ("coinbase", "kraken")}
    begun = max(node.born for node in late.values())

    def has_traded():
        return old.tape.course.times[-1] > begun
    # Until the next trade, the streams have only the old one.
    looks = 0
    while not has_traded():
        for venue, node in late.items():
            if node.way(venue) == "stream":
                time.sleep(0.3)
                assert has_traded(), "a price that is old counts"
            looks += 1
        time.sleep(0.05)
    for venue, node in late.items():
        node.streaming(venue, seconds=30)
    time.sleep(8)
    figures = []
    for venue, node, live in zip(FOUR, nodes, lives):
        node.streaming(venue)
        limit = KRAKEN_LIMIT if venue == "kraken" else LIMIT
        figures.append(f"{venue} {node.check(limit)}, of changes {node.check(limit, shown=live)}")
    return f"looked {looks} times; " + "; ".join(figures)


@beside("a daemon whose wall clock is an hour slow uses the streams; one whose clock is fast can't exclude a lag, and sends requests")
def _(scene):
    market = scene.market()
    slow, fast = (
        scene.node(market, ("binance",), environment=WallClock(time.time() + hours * 3600).environment) for hours in (-1, 1))
    slow.streaming("binance")
    since, before = time.monotonic(), market.requests()["binance"]
    time.sleep(5)
    requests = market.requests()["binance"] - before
    # An equal price in a response proves the stream's, so the next tick may need no request.
    assert requests >= 2, f"{requests} requests"
    figures = [f"{requests} requests in 5 s"]
    for node in (slow, fast):
        figures.append(node.check(since=since))
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - node.ticks.seen[-1][1]["observedBoottime"] / 1000
        assert -0.01 <= age < 3 + pulse.worst(time.monotonic() - 3, time.monotonic()), age
    equal(slow.way("binance"), "stream")
    return "; ".join(figures)


@beside("a daemon that was stopped for 4.5 s reads the queued messages, and shows none of them")
def _(scene):
    market = scene.market("--trades", "100")
    node = scene.node(market, ("binance", "coinbase"), streams=("binance",))
    live = node.live()
    node.streaming("binance")
    time.sleep(4)
    figures = []
    for _ in range(2):
        suspend(node.daemon.process)
        # A watcher waits for 5 s before it reports that the daemon is silent.
        time.sleep(4.5)
        resumed = time.monotonic()
        node.daemon.process.send_signal(signal.SIGCONT)
        time.sleep(5)
        # States that were on their way to the clients at the stop may arrive now.
        figures.append(f"{node.check(shown=node.ticks, since=resumed + 0.2)}, of changes {node.check(shown=live, since=resumed + 0.2)}")
    node.streaming("binance")
    return "; ".join(figures)


@beside("over TLS: the streams work, and an end without a close frame is detected")
def _(scene):
    market = scene.market(secure=True)
    node = scene.node(market, FOUR)
    node.streaming(*FOUR)
    time.sleep(4)
    market.fault(binance="time 0ms-400ms cut", coinbase="time 0ms-400ms cut", kraken="time 0ms-400ms cut",
                 bitstamp="time 0ms-400ms cut")
    wait_until(lambda: all(count >= 2 for count in market.attempts(*FOUR)), every=0.05,
               what=lambda: f"other connections; {market.streams()}")
    node.streaming(*FOUR)
    return f"{node.check()}; {node.ends()}"


# --- Opening of streams, and changes ---------------------------------------------------------------------------------

@beside("streams = never, always and auto, without an address, while paused, and while no client wants a price")
def _(scene):
    market, idle = scene.market(), scene.market()
    never = scene.node(market, ("binance",), policy="never")
    fast = scene.node(market, ("coinbase",), "--tick-interval-ms", "500", policy="auto")
    always = scene.node(market, ("bitstamp",), policy="always")
    elsewhere = scene.node(market, ("kraken",), policy="always", streams=())
    lives = [never.live(), elsewhere.live()]
    place = Place()
    resting = Daemon(
        place, idle.simulator.urls, "--streams", "always", "--tick-pause-when-idle", "2", sources=("binance",), streams=("binance",))
    fast.streaming("coinbase")
    always.streaming("bitstamp")
    wait_until(lambda: idle.attempts("binance") == [1], what="a stream of its own accord", every=0.05)
    wait_until(lambda: idle.open("binance") == [0], every=0.05, what="its end while no client wants a price")
    btcctl(place, "current")
    wait_until(lambda: idle.open("binance") == [1], every=0.05, what="its return")
    resting.stop()
    equal(btcctl(always.place, "pause").status, 0)
    wait_until(lambda: market.open("bitstamp") == [0], every=0.05, what="its end while paused")
    equal(btcctl(always.place, "resume").status, 0)
    always.streaming("bitstamp")
    equal(market.attempts("binance", "kraken"), [0, 0], "streams that were not wanted")
    for live in lives:
        ticks = [state["tick"] for _, state in live.seen]
        # The present state, and then one state per tick.
        assert len(ticks) <= len(set(ticks)) + 1, ticks
    equal({never.way("binance"), elsewhere.way("kraken")}, {"poll"})
    connection = Varlink(fast.place.socket)
    connection.send({"method": f"{PRICE}.WatchPrice", "parameters": {"updates": "sometimes"}, "more": True})
    reply = connection.receive()
    equal((reply["error"], reply["parameters"]["parameter"]), ("org.varlink.service.InvalidParameter", "updates"))
    for updates in (None, "ticks", "changes"):
        connection.send({"method": f"{PRICE}.WatchPrice", "parameters": {"updates": updates}, "more": True})
        state = connection.receive()["parameters"]["state"]
        equal(state["freshness"], "fresh")
        connection.close()
        connection = Varlink(fast.place.socket)
    connection.close()
    return f"{never.check()}; {fast.check()}; {elsewhere.check(KRAKEN_LIMIT)}"


@beside("changes: at most one state in watch.min-interval-ms, and the last trade's price arrives within that time")
def _(scene):
    market = scene.market("--trades", "40")
    # Ticks so rare that they do not affect the result.
    nodes = {each: scene.node(market, ("binance",), "--tick-interval-ms", "10000", "--watch-min-interval-ms", str(each), policy="auto")
             for each in (100, 500)}
    lives = {each: node.live() for each, node in nodes.items()}
    for node in nodes.values():
        node.streaming("binance")
    figures, worst = [], {each: 0.0 for each in nodes}
    since = time.monotonic()
    for _ in range(3):
        time.sleep(4)
        # Trading has stopped.
        market.simulator.faults("binance stream always maintenance\n")
        time.sleep(0.4)
        course = market.tape.course
        price, place = course.prices[-1], len(course.prices) - 1
        while place and course.prices[place - 1] == price:
            place -= 1
        traded = course.times[place]
        for each, live in lives.items():
            shown = wait_until(
                lambda: next((at for at, state in list(live.seen) if at >= traded and Decimal(state["quote"]["value"]) == price), None),
                seconds=5, what=lambda: f"{price}, the last one; {live.seen[-1]}")
            delay = shown - traded
            worst[each] = max(worst[each], delay)
            allowed = each / 1000 + 1 + pulse.worst(traded - 1, shown)
            assert delay <= allowed, f"{price} came after {delay:.3f} s, with {each} ms"
        # Trading continues before a source counts as dead.
        market.fault()
        time.sleep(0.5)
    for each, live in lives.items():
        seen = [(at, state["tick"]) for at, state in live.seen if at >= since]
        seconds = seen[-1][0] - seen[0][0]
        for first in range(len(seen)):
            for last in range(first + 1, len(seen), 7):
                # States of ticks arrive in addition. States that were delayed on the way to this process arrive together.
                span = seen[last][0] - seen[first][0] + 1 + pulse.worst(seen[first][0] - 1, seen[last][0])
                ticks = seen[last][1] - seen[first][1]
                assert last - first <= span * 1000 / each + ticks + 1, f"{last - first + 1} states in {span:.2f} s with {each} ms"
        assert len(seen) <= seconds * 1000 / each + seen[-1][1] - seen[0][1] + 3, f"{len(seen)} states in {seconds:.1f} s"
        assert len(seen) >= seconds * 1000 / each / 3, f"only {len(seen)} states in {seconds:.1f} s with {each} ms"
        figures.append(f"{each} ms: {len(seen)} states in {seconds:.1f} s, the last price after at most {worst[each] * 1000:.0f} ms, "
                       f"{nodes[each].check(each / 1000 + 1, shown=live, since=since)}")
    return "; ".join(figures)


@beside("735 trades in one millisecond and one write, each a cent cheaper: at most two changes, and then the last of them")
def _(scene):
    market = scene.market("--trades", "1")
    node = scene.node(market, ("binance",))
    live = node.live()
    node.streaming("binance")
    since = time.monotonic()
    market.simulator.faults("binance stream always burst 735\n")
    time.sleep(10)
    market.simulator.faults("binance stream always maintenance\n")
    time.sleep(1.5)
    course = market.tape.course
    begins = [at for at in sorted(set(course.times)) if at > since]
    counts = {at: 0 for at in begins}
    seen = [(at, state["quote"]["value"]) for at, state in live.seen]
    for (_, before), (at, price) in zip(seen, seen[1:]):
        if price != before and begins[0] <= at:
            counts[max(begin for begin in begins if begin <= at)] += 1
    assert len(counts) >= 8 and sum(counts.values()) >= len(counts), counts
    # A price of a burst may be shown after the start of the next one, if this process had to wait for it.
    assert sum(counts.values()) <= 2 * len(counts) + 1, counts
    equal(Decimal(seen[-1][1]), course.prices[-1], "the last price")
    return f"{len(counts)} bursts, {sum(counts.values())} changes; {node.check(shown=live)}"


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
    assert counts[0]["streams"] == 0 and counts[0]["requests"] <= seconds / 10 + 2, f"one stream from the beginning to the end: {counts}"
    equal(daemon.stop()[0], 0)
    live.stop()
    player.stop()
    return (f"{len(messages)} messages in {seconds:.0f} s, {len(changes)} changes, none older than {worst * 1000:.0f} ms; {len(burst)} messages in "
            f"{(ends - begins) * 1000:.0f} ms: shown {of_burst}; {counts[0]['requests']} requests")


main()
