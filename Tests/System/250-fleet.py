#!/usr/bin/env python3
"""The fleet: publishers, a real broker with the configuration of docs/fleet.md, and followers."""

import asyncio
import os
import sys

from lib.brokers import *
from lib import mqtt

QUOTE = "btcpriced/v1/{}/quote/BTC-USD"


class Leader:
    """A machine that requests prices and publishes them."""

    def __init__(self, site, name, simulator, *arguments, sources=("binance", "coinbase"), **options):
        self.place = Place()
        self.daemon = Daemon(self.place, simulator.urls, sources=sources)
        settled(self.place)
        self.fleet = publisher(site.broker, site.certificates, name, self.place, *arguments, **options)
        self.fleet.says("Connected to the broker")

    def kill(self):
        self.fleet.kill()
        self.daemon.kill()

    def stop(self):
        self.fleet.stop()
        self.daemon.stop()


class Host:
    """A machine that follows, whose daemon has no network."""

    def __init__(self, site, publishers, *arguments, broker=None, name="host", prefix=()):
        if os.geteuid() != 0:
            raise Skip("a network namespace of its own needs root")
        self.fleet = Follower(broker or site.broker, site.certificates, publishers, name=name, prefix=prefix)
        self.fleet.says("Connected to the broker")
        self.place = Place()
        peers = {publisher: self.fleet.place(publisher) for publisher in publishers}
        self.daemon = Daemon(self.place, None, *arguments, sources=(), peers=peers, prefix=("unshare", "--net"))

    def state(self):
        return btcctl(self.place, "current", "--json").json

    def sources(self):
        return {source["name"]: source for source in json.loads(btcctl(self.place, "sources", "--json").out)["sources"]}

    def failure(self, publisher):
        return (self.sources()[publisher]["lastFailure"] or {}).get("reason", "")

    def stop(self):
        self.fleet.stop()
        self.daemon.stop()


class Site:
    """A broker with its authority."""

    def __init__(self):
        self.certificates = Certificates()
        self.broker = Broker(self.certificates)

    def heard(self, *topics, seconds=2.0, name="ear"):
        """The messages to an independent client: (topic, payload, whether it was retained, seconds after CONNACK)."""
        found = []

        async def run():
            one = mqtt.Subscriber(
                self.broker.address, self.broker.port, mqtt.context(self.certificates.authority, *self.certificates(name)), name, topics,
                lambda topic, payload, kept: found.append((topic, payload, kept, time.monotonic() - one.accepted)))
            try:
                await asyncio.wait_for(one.run(), seconds)
            except TimeoutError:
                pass
        asyncio.run(run())
        return found

    def publish(self, identity, topic, payload, *arguments):
        """Publishes under the name in a certificate, with mosquitto's own client."""
        certificate, key = identity
        return subprocess.run(
            ["mosquitto_pub", "-h", self.broker.address, "-p", str(self.broker.port), "--cafile", self.certificates.authority, "--cert",
             certificate, "--key", key, "-t", topic, "-m", payload, "-i", f"pub-{random.random()}", *arguments],
            capture_output=True, text=True, timeout=20)

    def stop(self):
        self.broker.stop()


def memory(process):
    """Resident KiB and open files."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(number(status, r"VmRSS:\s+(\d+)")), len(os.listdir(f"/proc/{process.pid}/fd"))


def endure(seconds):
    """Causes a fault of the broker every 20 s, during the other scenarios."""
    site, simulator, generator = Site(), Simulator("--seed", "5"), seeded()
    leader = Leader(site, "alpha", simulator)
    host = Host(site, ["alpha"])
    fresh(host.place)
    faults, samples = 0, []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        fault = generator.choice(["restart", "kill", "stop"])
        if fault == "stop":
            suspend(site.broker.process)
            time.sleep(generator.uniform(1, 12))
            site.broker.process.send_signal(signal.SIGCONT)
        else:
            site.broker.process.send_signal(signal.SIGTERM if fault == "restart" else signal.SIGKILL)
            site.broker.process.wait()
            time.sleep(generator.uniform(0, 6))
            site.broker.start()
        faults += 1
        # A connection of ten seconds counts as good, so the next attempt is soon.
        wait_until(lambda: host.state()["freshness"] == "fresh", seconds=120, every=0.2, what=f"the price after a {fault}")
        time.sleep(max(11, begun + 20 - time.monotonic()))
        samples.append([memory(fleet.process) for fleet in (leader.fleet, host.fleet)])
    for program, name in enumerate(("publisher", "follower")):
        kib, files = zip(*(sample[program] for sample in samples))
        half = len(kib) // 2
        assert max(kib[half:]) <= max(kib[:half]) * 1.05 + 512, f"the memory of the {name} grows: {kib}"
        assert max(files[half:]) <= max(files[:half]) + 1, f"the {name} leaves files open: {files}"
    requests = simulator.requests()
    stop(host, leader, site, simulator)
    first, last = samples[0], samples[-1]
    return f"{faults} faults; publisher {first[0]} -> {last[0]}, follower {first[1]} -> {last[1]} (KiB, files); {requests}"


@scenario("two publishers and two daemons without a network: a new daemon has a price at once, and a killed publisher is stale in 3 s", beside=True)
def _():
    site = Site()
    simulator = Simulator("--seed", "1")
    leaders = [Leader(site, "alpha", simulator), Leader(site, "beta", simulator, sources=("coinbase", "binance"))]
    hosts = [Host(site, ["alpha", "beta"]) for _ in range(2)]
    for host in hosts:
        # The message of either publisher may be the first one.
        wait_until(lambda: (lambda quote: (quote["via"], quote["source"]) == ("alpha", "binance"))(fresh(host.place)["quote"]),
                   what=lambda: f"alpha's price, not {fresh(host.place)['quote']}")
        assert set(host.sources()) == {"alpha", "beta"}
    # An independent client gets the retained messages.
    heard = site.heard(QUOTE.format("alpha"), QUOTE.format("beta"))
    first = [next(after for topic, _, kept, after in heard if topic == QUOTE.format(name) and kept) for name in ("alpha", "beta")]
    # Independent clients receive the values that btcctl shows.
    shown = subprocess.run(
        ["mosquitto_sub", "-h", site.broker.address, "-p", str(site.broker.port), "--cafile", site.certificates.authority, "--cert",
         f"{site.certificates.folder}/ear.pem", "--key", f"{site.certificates.folder}/ear.key", "-t", "btcpriced/v1/#", "-W", "2", "-F", "%t %p"],
        capture_output=True, text=True).stdout.splitlines()
    by_topic = {}
    for line in shown:
        topic, payload = line.split(" ", 1)
        by_topic.setdefault(topic, []).append(json.loads(payload))
    state = by_topic[QUOTE.format("alpha")][-1]
    ours = btcctl(leaders[0].place, "current", "--json").json
    equal(set(ours) - {"version"} | {"publisher", "bootId", "sequence", "publishedAt", "intervalMs"}, set(state))
    equal(by_topic["btcpriced/v1/alpha/status"][0]["state"], "online")
    assert [s["name"] for s in by_topic["btcpriced/v1/alpha/sources"][0]["sources"]] == ["binance", "coinbase"]
    sequence = [s["sequence"] for s in by_topic[QUOTE.format("alpha")]]
    equal(sequence, list(range(sequence[0], sequence[0] + len(sequence))))
    # The publisher's socket has the same interface.
    socket_of_alpha = hosts[0].fleet.place("alpha")
    equal(fresh(socket_of_alpha)["instance"], "alpha/" + ours["instance"])
    assert "binance" in btcctl(socket_of_alpha, "sources").out
    assert "binance" in btcctl(socket_of_alpha, "sources", "-c", "USD").out
    used = lambda: {s["name"]: (s["use"], s["inVote"]) for s in btcctl(socket_of_alpha, "sources", "--json").json["sources"]}
    wait_until(lambda: used()["binance"][0] == "current" and used()["binance"][1], what="the source in use")
    paused = btcctl(socket_of_alpha, "pause")
    equal((paused.status, paused.err), (69, "btcctl: The program at this socket can't do that: it only follows a publisher.\n"))
    assert re.search(r"^Store +: none$", btcctl(socket_of_alpha, "status").out, re.M)
    assert "or the socket is a publisher's" in btcctl(socket_of_alpha, "history").err
    assert re.search(r'btcpriced_fleet_messages_total\{publisher="alpha",result="ok"\} \d+', btcctl(socket_of_alpha, "metrics").out)
    equal(btcctl(socket_of_alpha, "pause").status != 0, True)

    # A kill, as if its machine were gone. The other publisher is used next, and is the only one then.
    watch = Watch(hosts[0].place, "--json")
    alone = Watch(hosts[0].fleet.place("alpha"), "--json")
    wait_until(lambda: watch.states and alone.states, what="the watches")
    since = time.monotonic()
    leaders[0].kill()
    stale = wait_until(lambda: next((at - since for at, s in zip(alone.times, alone.states) if s["freshness"] == "stale"), None), what="stale")
    assert stale <= 3.3, stale
    equal({source: (use == "current", voted) for source, (use, voted) in used().items()}, {"binance": (False, None), "coinbase": (False, None)})
    wait_until(lambda: hosts[0].state()["quote"]["via"] == "beta" and hosts[0].state()["freshness"] == "fresh", what="the price of beta")
    assert not any(s["freshness"] == "stale" for s in watch.states), "the other publisher takes over at once"
    wait_until(lambda: "alpha is offline" in hosts[0].failure("alpha"), what="the reason")
    since = time.monotonic()
    leaders[1].kill()
    gone = wait_until(lambda: next((at - since for at, s in zip(watch.times, watch.states) if at > since and s["freshness"] == "stale"), None),
                      what="stale")
    assert gone <= 3.3, gone
    for host in hosts:
        wait_until(lambda: host.state()["freshness"] == "stale", what="stale")
    requests = simulator.requests()
    stop(*hosts, simulator)
    return (f"the price {max(first) * 1000:.0f} ms after CONNACK; stale {stale:.2f} s after the publisher's death, the last one's {gone:.2f} s; "
            f"requests of the two publishers {requests}")


@scenario("an independent program that publishes a price 7 % off, with another publisher's instance, is never shown with quorum 2", beside=True)
def _():
    site = Site()
    python = os.environ.get("VARLINK_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import paho.mqtt.client"], capture_output=True).returncode != 0:
        raise Skip("paho is absent")
    simulator = replaying("68900")
    leaders = [Leader(site, name, simulator, sources=[source, "kraken"]) for name, source in (("alpha", "coinbase"), ("beta", "bitstamp"))]
    certificate, key = site.certificates("gamma")
    program = f"""
import json, ssl, sys, time
import paho.mqtt.client as paho
client = paho.Client(paho.CallbackAPIVersion.VERSION2)
client.tls_set({site.certificates.authority!r}, {certificate!r}, {key!r})
client.connect({site.broker.address!r}, {site.broker.port})
client.loop_start()
for sequence in range(1, 1000):
    now = int(time.time() * 1000)
    price = sys.argv[1] if sequence % 2 else sys.argv[2]
    instance = sys.argv[3]
    client.publish("btcpriced/v1/gamma/quote/BTC-USD", json.dumps({{
        "instance": instance, "tick": sequence, "freshness": "fresh", "currency": "USD", "confirmation": "confirmed",
        "observedBoottime": int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000),
        "quote": {{"value": price, "currency": "USD", "timestamp": now, "source": "mine", "market": "BTC/USD"}},
        "publisher": "gamma", "bootId": sys.argv[1], "sequence": sequence, "publishedAt": now}}), retain=True)
    time.sleep(1)
"""

    def stranger(*prices):
        return spawn([python, "-c", program, *prices])
    gamma = stranger("68905", "68903", "gamma's")
    host = Host(site, ["alpha", "beta", "gamma"], "--mode", "median", "--quorum", "2")
    wait_until(lambda: fresh(host.place)["consensus"]["sources"] == ["alpha", "beta", "gamma"], what="all three in the median")
    gamma.kill()
    gamma.wait()
    lie = str(Decimal("68900") * Decimal("0.93"))
    watch = Watch(host.place, "--json")
    gamma = stranger(lie, str(Decimal(lie) - 1), btcctl(leaders[0].place, "current", "--json").json["instance"])
    wait_until(lambda: (host.state()["consensus"] or {}).get("outliers") == ["gamma"], what="the liar to be an outlier")
    time.sleep(5)
    shown = {Decimal(s["quote"]["value"]) for s in watch.states}
    assert shown and all(abs(price / 68900 - 1) < Decimal("0.001") for price in shown), shown
    assert all(s["freshness"] == "fresh" for s in watch.states)
    host.fleet.says("alpha and gamma have the same instance")
    gamma.kill()
    stop(host, *leaders, simulator)
    return f"{len(watch.states)} states, prices {sorted(shown)}"


@scenario("a publisher that floods the broker is ignored for a while, and the other two keep the price", beside=True)
def _():
    site = Site()
    simulator = replaying("68900")
    leaders = [Leader(site, name, simulator, sources=[source, "kraken"]) for name, source in (("alpha", "coinbase"), ("beta", "bitstamp"))]
    host = Host(site, ["alpha", "beta", "gamma"], "--mode", "median", "--quorum", "2")
    fresh(host.place)
    watch = Watch(host.place, "--json")
    certificate, key = site.certificates("gamma")
    # Four times the limit, and not what the processors give: the tests beside this one need them too.
    flood = spawn(
        ["mosquitto_pub", "-h", site.broker.address, "-p", str(site.broker.port), "--cafile", site.certificates.authority, "--cert", certificate,
         "--key", key, "-t", QUOTE.format("gamma"), "-l"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def pour():
        try:
            while True:
                flood.stdin.write((b"{" * 16_000 + b"\n") * 26)
                flood.stdin.flush()
                time.sleep(0.1)
        except BrokenPipeError:
            pass
    threading.Thread(target=pour, daemon=True).start()
    wait_until(lambda: "more than 500 messages or 1024 KiB a second" in host.failure("gamma"), what=lambda: f"gamma's failure: {host.failure('gamma')}")
    time.sleep(5)
    flood.kill()
    equal([s for s in watch.states if s["freshness"] != "fresh"], [])
    counts = dict(re.findall(r'result="(\w+)"\} (\d+)', btcctl(host.fleet.place("gamma"), "metrics").out))
    stop(host, *leaders, simulator)
    return f"messages read and ignored: {counts}"


@scenario("the broker refuses a forged topic, and the follower refuses a replayed recording of an hour", beside=True)
def _():
    site = Site()
    simulator = Simulator("--seed", "3")
    leader = Leader(site, "alpha", simulator)
    host = Host(site, ["alpha"])
    fresh(host.place)
    # Recorded by a client that may subscribe.
    recorded = [payload for _, payload, kept, _ in site.heard(QUOTE.format("alpha"), seconds=5) if not kept]
    assert len(recorded) >= 3, recorded
    forged = json.loads(recorded[-1])
    forged["quote"]["value"], forged["sequence"], forged["publishedAt"] = "1000", forged["sequence"] + 10**6, int(time.time() * 1000) + 5000
    refused = site.publish(site.certificates("mallory"), QUOTE.format("alpha"), json.dumps(forged), "-r")
    time.sleep(1)
    assert not any(b'"1000"' in payload for _, payload, _, _ in site.heard(QUOTE.format("alpha"), seconds=1.5)), "the broker took it"
    for topic in ("btcpriced/v1/beta/quote/BTC-USD", "homeassistant/device/alpha/btcpriced/config", "btcpriced/v1/alpha/status"):
        site.publish(site.certificates("mallory"), topic, "{}", "-r")
        assert b"{}" not in [payload for _, payload, _, _ in site.heard(topic, seconds=0.7)], topic
    # With alpha's own key: the broker accepts it, the follower does not.
    before = {Decimal(json.loads(p)["quote"]["value"]) for p in recorded}
    for payload in recorded:
        site.publish(site.certificates("alpha"), QUOTE.format("alpha"), payload.decode())
    counts = wait_until(lambda: (c := replayed(host)) >= len(recorded) and c, what="the count of replays")
    host.fleet.says("Rejecting messages from alpha: its message is not newer")
    equal(host.state()["freshness"], "fresh")
    # A new follower refuses it once it is too old.
    old = [dict(json.loads(p), publishedAt=json.loads(p)["publishedAt"] - 86_400_000) for p in recorded]
    leader.stop()
    # The retained message of alpha does not count as a price any more.
    time.sleep(4)
    newcomer = Host(site, ["alpha"], name="newcomer")
    for payload in old:
        site.publish(site.certificates("alpha"), QUOTE.format("alpha"), json.dumps(payload))
    wait_until(lambda: replayed(newcomer) >= len(old), what="the replays for the newcomer")
    assert newcomer.state()["freshness"] != "fresh"
    stop(host, newcomer, simulator)
    return f"mosquitto_pub: {refused.returncode}; {counts} of {len(recorded)} replays counted, prices {sorted(before)}"


def replayed(host):
    out = btcctl(host.fleet.place("alpha"), "metrics").out
    found = re.search(r'result="replayed"\} (\d+)', out)
    return int(found[1]) if found else 0


@scenario("a broker that is absent, refuses, or has a wrong certificate: one line in the journal, and the reason in btcctl sources", beside=True)
def _():
    site = Site()
    simulator = Simulator("--seed", "4")
    leader = Leader(site, "alpha", simulator)
    host = Host(site, ["alpha"])
    fresh(host.place)
    site.broker.stop()
    wait_until(lambda: "can't be reached" in host.failure("alpha") and f":{site.broker.port}" in host.failure("alpha"), what="the reason")
    equal(host.state()["freshness"], "stale")
    time.sleep(4)
    lines = [line for line in host.fleet.lines if "warning: The broker" in line]
    equal(len(lines), 1, lines)
    begun = time.monotonic()
    site.broker.start()
    wait_until(lambda: host.state()["freshness"] == "fresh", seconds=120, every=0.1, what="the price after the broker's restart")
    took = time.monotonic() - begun
    # Each line has a different text.
    kinds = [line.split("btc-price-fleet: ", 1)[1].split(" at ")[0] for line in host.fleet.lines]
    equal(kinds.count("Connected to the broker"), 2, host.fleet.lines)
    stop(host, leader, simulator)

    strangers = Certificates("Strangers")
    expired = site.certificates("late", ends=-3600)
    found = {}
    for what, follower, expected in (
            ("an authority that nobody trusts", Follower(site.broker, strangers, ["alpha"], identity=site.certificates("a")),
             "certificate verify failed"),
            ("a client of another authority", Follower(site.broker, site.certificates, ["alpha"], identity=strangers("b")),
             "unknown ca|does not accept this machine's certificate"),
            ("an expired certificate", Follower(site.broker, site.certificates, ["alpha"], identity=expired),
             "certificate|expired"),
            ("another name", Follower(site.broker, site.certificates, ["alpha"], name="elsewhere", url=f"mqtts://localhost:{site.broker.port}"),
             "certificate verify failed"),
            ("nobody", Follower(site.broker, site.certificates, ["alpha"], name="alone", url="mqtts://127.0.0.1:1"), "refuse")):
        wait_until(lambda: any("warning: The broker" in line for line in follower.lines), what=what)
        (line,) = [line for line in follower.lines if "warning: The broker" in line]
        failure = btcctl(follower.place("alpha"), "current", "--json").json["failure"]
        assert re.search(expected, line, re.I) and "can't be reached" in failure, (what, line, failure)
        found[what] = line.split("reached: ")[1]
        follower.stop()
    return f"back {took:.1f} s after the broker; {found}"


@scenario("a broker whose connection takes a second, as over a network", beside=True)
def _():
    site = Site()
    simulator = Simulator("--seed", "8")
    leader = Leader(site, "alpha", simulator)
    # A listener whose queue is full: the system repeats its first packet after a second.
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    dummies = []
    for _ in range(3):
        dummy = socket.socket()
        dummy.setblocking(False)
        dummy.connect_ex(listener.getsockname())
        dummies.append(dummy)
    time.sleep(0.2)
    known = {dummy.getsockname() for dummy in dummies}

    def pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass

    def serve():
        while True:
            client, address = listener.accept()
            if address in known:
                client.close()
                continue
            broker = socket.create_connection((site.broker.address, site.broker.port))
            for pair in ((client, broker), (broker, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()
    begun = time.monotonic()
    follower = Follower(site.broker, site.certificates, ["alpha"], url=f"mqtts://127.0.0.1:{listener.getsockname()[1]}")
    time.sleep(0.3)
    for dummy in dummies:
        dummy.close()
    threading.Thread(target=serve, daemon=True).start()
    wait_until(lambda: follower.said("Connected to the broker"), what=lambda: f"the connection: {follower.lines}")
    took = time.monotonic() - begun
    assert took > 0.5, "the connection was not slow"
    fresh(follower.place("alpha"))
    stop(follower, leader, simulator)
    return f"connected after {took:.1f} s"


@scenario("a stale price is published as such, and a follower does not use it", beside=True)
def _():
    site = Site()
    simulator = replaying("68900")
    leader = Leader(site, "alpha", simulator, sources=["coinbase", "kraken"])
    host = Host(site, ["alpha"])
    fresh(host.place)
    simulator.faults("* always status 500")
    wait_until(lambda: host.state()["freshness"] == "stale", what="stale")
    wait_until(lambda: "HTTP 500" in host.failure("alpha"), what="the publisher's reason")
    payload = json.loads(site.heard(QUOTE.format("alpha"), seconds=1.5)[0][1])
    equal((payload["freshness"], payload["quote"]["value"]), ("stale", "68900"))
    simulator.faults("")
    wait_until(lambda: host.state()["freshness"] == "fresh", seconds=30, what="fresh again")
    # The daemon has ended, the satellite is still running.
    leader.daemon.stop()
    wait_until(lambda: "alpha is offline" in host.failure("alpha"), what="offline")
    leader.fleet.says("The daemon can't be reached")
    stop(host, leader.fleet, simulator)


@scenario("Home Assistant: its discovery message, and a value every ten seconds", beside=True)
def _():
    site = Site()
    simulator = Simulator("--seed", "6")
    leader = Leader(site, "house", simulator, "--home-assistant")
    heard = site.heard("homeassistant/#", "btcpriced/v1/house/home-assistant/#", seconds=24)
    (discovery,) = [json.loads(payload) for topic, payload, _, _ in heard if topic == "homeassistant/device/house/btcpriced/config"]
    sensor = discovery["cmps"]["price_usd"]
    equal((sensor["p"], sensor["unit_of_meas"], sensor["stat_cla"], "dev_cla" in sensor), ("sensor", "USD", "measurement", False))
    equal(discovery["avty"][0]["t"], "btcpriced/v1/house/status")
    values = [(json.loads(payload), after) for topic, payload, _, after in heard if topic == sensor["stat_t"]]
    assert 2 <= len(values) <= 4, heard
    assert all(later - earlier > 9.5 for (_, earlier), (_, later) in zip(values[1:], values[2:])), values
    Decimal(values[-1][0]["value"])
    # Home Assistant starts again: what it needs comes at once, whether the broker has kept it or not.
    begun = threading.Timer(1, lambda: site.publish(site.certificates("homeassistant"), "homeassistant/status", "online"))
    begun.start()
    again = [topic for topic, _, kept, _ in site.heard("homeassistant/#", "btcpriced/v1/house/#", seconds=8) if not kept]
    # Nothing else lets these come again.
    for topic in ("homeassistant/device/house/btcpriced/config", "btcpriced/v1/house/status"):
        equal(again.count(topic), 1, topic)
    site.publish(site.certificates("mallory"), "homeassistant/status", "online")
    leader.stop()
    (status,) = [json.loads(payload) for _, payload, _, _ in site.heard("btcpriced/v1/house/status", seconds=1)]
    equal(status["state"], "offline", "also after a clean stop")
    simulator.stop()
    return f"{len(values)} values in 24 s"


@scenario("a follower of one publisher: its confirmation, what is not from an exchange, and a currency that the publisher drops", beside=True)
def _():
    site = Site()
    simulator = Simulator("--seed", "9")
    place = Place()
    configuration = Path(place.runtime) / "config.toml"
    configuration.write_text('currencies = ["USD", "EUR"]\n')
    daemon = Daemon(place, simulator.urls, "--config", configuration, sources=("binance", "kraken", "coinbase"))
    settled(place)
    publishing = publisher(site.broker, site.certificates, "alpha", place)
    host = Host(site, ["alpha"])
    own = wait_until(lambda: (s := fresh(place))["confirmation"] == "confirmed" and s.get("uncertainty") and s, what="a confirmed price")
    theirs = wait_until(
        lambda: (s := fresh(host.place))["confirmation"] == "confirmed" and s.get("uncertainty") and
        s["uncertainty"]["markets"] == (fresh(place).get("uncertainty") or {}).get("markets") and s, what=lambda: host.state())
    wait_until(lambda: json.loads(btcctl(host.place, "status", "--json").out)["status"]["elsewhere"] == ["alpha"], seconds=30, what="elsewhere")
    assert "Not from the exchanges' own addresses (a simulator, a mirror or a proxy): alpha." in btcctl(host.place, "status").out
    followed = host.fleet.place("alpha")
    wait_until(lambda: btcctl(followed, "current", "-c", "EUR").status == 0, what="euros")
    configuration.write_text('currencies = ["USD"]\n')
    daemon.process.send_signal(signal.SIGHUP)
    gone = wait_until(lambda: (done := btcctl(followed, "current", "-c", "EUR")).status == 64 and done.err, seconds=40, what="the end of the euros")
    assert "The price is not kept in" in gone, gone
    equal([topic for topic, payload, _, _ in site.heard("btcpriced/v1/alpha/quote/+", seconds=1.5) if topic.endswith("EUR")], [])
    # The satellite has ended: no exchange and no network is to blame.
    host.fleet.stop()
    wait_until(lambda: host.state()["freshness"] == "stale", what="stale")
    failure = wait_until(
        lambda: (f := host.state()["failure"]).endswith("is the program running that serves it?") and f, what=lambda: host.state()["failure"])
    assert "alpha: not reached: " in failure, failure
    host.daemon.stop()
    stop(publishing, daemon, simulator)
    return f"{own['uncertainty']} became {theirs['uncertainty']}; {failure}"


@scenario("a name that is not the certificate's is a warning at the start", beside=True)
def _():
    site, place = Site(), Place()
    wrong = publisher(site.broker, site.certificates, "gamma", place, identity=site.certificates("beta"))
    wrong.says("The certificate is beta's, not gamma's")
    right = publisher(site.broker, site.certificates, "beta", place)
    right.says("Connected to the broker")
    assert not right.said("The certificate is"), right.lines
    stop(wrong, right, site)


@scenario("the delay from a publisher's tick to the watchers of a follower", beside=True)
def _():
    site = Site()
    simulator = Simulator("--seed", "7")
    leader = Leader(site, "alpha", simulator)
    host = Host(site, ["alpha"])
    fresh(host.place)
    watches = [Watch(place, "--json") for place in (leader.place, host.fleet.place("alpha"), host.place)]
    time.sleep(20)
    for watch in watches:
        watch.stop()
    result = ways(watches)
    assert len(result[0]) > 15, result
    stop(host, leader, simulator)
    found = result[0]
    return (f"at the follower's socket half {found[len(found) // 2] * 1000:.1f} ms, most {found[-1] * 1000:.1f} ms after the publisher's own watcher; "
            f"its daemon shows it with its next tick")


@scenario("invalid command lines and missing files are refused with a reason", beside=True)
def _():
    def run(*arguments):
        return subprocess.run([BINARIES / "btc-price-fleet", *arguments], capture_output=True, text=True, timeout=20)
    for arguments, status, word in (
            (["publish", "--name", "alpha"], 64, "--broker"), (["publish", "--broker", "http://a", "--name", "alpha"], 64, "is not valid for --broker"),
            (["publish", "--broker", "mqtts://a", "--name", "Al/pha"], 64, "a name has lower-case letters"), (["nothing"], 64, "nothing"),
            (["follow", "--broker", "mqtts://a", "--publishers", "a,../b"], 64, "a name has lower-case letters"),
            (["follow", "--broker", "mqtts://a", "--publishers", ""], 64, "a name has lower-case letters"),
            (["publish", "--broker", "mqtt://a", "--name", "alpha", "--ca-file", "/x"], 64, "--ca-file has no effect with mqtt://"),
            (["follow", "--broker", "mqtts://a", "--password-file", "/x"], 64, "--password-file has no effect without --user"),
            (["follow", "--broker", "mqtts://a", "--ca-file", "/nowhere"], 1, "cannot read /nowhere"),
            (["follow", "--broker", "mqtts://a", "--key", "/dev/null"], 1, "belong together"),
            (["follow", "--broker", "mqtts://a", "--directory", "/nowhere", "--publishers", "alpha"], 1, "/nowhere/alpha"),
            (["follow", "--broker", "mqtts://a", "--user", "joe", "--password-file", "/nowhere"], 1, "cannot read")):
        done = run(*arguments)
        equal(done.returncode, status, (arguments, done.stderr))
        assert word in done.stderr, (arguments, done.stderr)
    assert "publish" in run("--help").stdout


@scenario("faults of the broker every 20 s: memory and open files stay constant", beside=True)
def _():
    return endure(float(os.environ.get("FAULTS_SECONDS", "60")))


main()
