#!/usr/bin/env python3
"""Everything at once, in real time: seven currencies, history, streams, the gateway with event streams, a fleet, and a fault every 20 s.

    MINUTES=60 Tests/System/280-soak.py     make soak MINUTES=60; without MINUTES, one minute

No tick is lost, each line of the log is explained by a fault, and no process grows after the first ten minutes, or the first third."""

import os
import resource
import selectors

from lib.brokers import *
from lib.certificates import Certificates
from lib.gateway import Gateway

MINUTES = float(os.environ.get("MINUTES", "1"))
CURRENCIES = ["USD", "EUR", "GBP", "CHF", "CAD", "AUD", "JPY"]
SOURCES = ["binance", "coinbase", "bitstamp", "kraken"]
# Each lasts 10 s, and 10 s without one follow.
FAULTS = ["binance always status 500", "coinbase always dark", "kraken always delay 2s", "bitstamp always reset",
          "binance always refuse\ncoinbase always status 503", "kraken always status 429 retry-after 5 body {}",
          "bitstamp always price 12", "* always status 500"]
# What the log may say of a fault: of a source, of the price that is taken from another one, and of a currency without any.
EXPLAINED = re.compile(
    r"gave no price|Failed to update value|Stale, last value|Not counted|has prices again|The price is |No price|no price|[Cc]ooldown|limits? us|contradict|confirmed|differs|refused|"
    r"stream|Streams? |candles|history|is not requested|requests again|can't be requested at every tick|not the exchange's own|"
    r"Ready: |Stopped\.|Serving|The rates?|market")


class EventStreams:
    """Many event streams of the gateway, read by one thread; the events of each are counted."""

    def __init__(self, port, count):
        self.events, self.closed, self.selector = [0] * count, 0, selectors.DefaultSelector()
        for number in range(count):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(f"GET /v1/watch?currency={CURRENCIES[number % 7]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            client.setblocking(False)
            self.selector.register(client, selectors.EVENT_READ, number)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            for key, _ in self.selector.select(1):
                data = key.fileobj.recv(65536)
                self.events[key.data] += data.count(b"event: price")
                if not data:
                    self.closed += 1
                    self.selector.unregister(key.fileobj)


class Loop:
    """A command of btcctl, again and again; its exit statuses."""

    def __init__(self, place, *arguments, every=1.0):
        self.statuses, self.done, self.arguments = set(), threading.Event(), arguments

        def run():
            while not self.done.wait(every):
                self.statuses.add(btcctl(place, *arguments, timeout=60).status)
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def stop(self):
        self.done.set()
        self.thread.join()


@scenario(f"{MINUTES:g} min of everything at once: no tick is lost, each line of the log has a fault, and nothing grows")
def _():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # A minute beside other tests, on a machine that may be busy, is no measure of memory or of time.
    isLong = MINUTES >= 10
    place, certificates = Place(), Certificates()
    broker = Broker(certificates)
    simulator = Simulator("--seed", "47", "--trades", "20")
    daemon = Daemon(
        place, simulator.urls, "--currencies", ",".join(CURRENCIES), "--history-write-every-s", "5", sources=SOURCES, streams=SOURCES,
        backfill=True)
    fresh(place)
    gateway = Gateway(place.socket, "--connections", "2200")
    published = publisher(broker, certificates, "alpha", place)
    follower = Follower(broker, certificates, ["alpha"])
    processes = {"the daemon": daemon.process, "the gateway": gateway.process, "the publisher": published.process,
                 "the follower": follower.process}
    streams = EventStreams(gateway.port, 1000 if isLong else 200)
    ticks, live = Watch(place, "--json"), Watch(place, "--json", "--live")
    log = Path(place.state, "exec")
    runs = spawn([BINARIES / "btcctl", "watch", "--exec", f"echo $BTCCTL_VALUE >{log}", "--socket", place.socket], stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL)
    loops = [Loop(place, *words.split(), every=every) for words, every in (
        ("current", 0.5), ("current -c EUR --json", 0.7), ("sources -v", 2), ("status", 2), ("currencies", 3), ("metrics", 2),
        ("history --since 1h --step 1m", 3), ("chart", 4), ("convert 0.05btc", 1), ("at 10m", 3))]
    begun, end = time.monotonic(), time.monotonic() + MINUTES * 60
    settled_at = begun + min(600, MINUTES * 20)
    early, late = {name: [] for name in processes}, {name: [] for name in processes}
    fault = 0
    while time.monotonic() < end:
        since = (time.monotonic() - begun) % 20
        if since < 1 and fault % 2 == 0:
            simulator.faults(FAULTS[fault // 2 % len(FAULTS)])
            fault += 1
        elif since >= 10 and fault % 2 == 1:
            simulator.faults("")
            fault += 1
        for name, process in processes.items():
            equal(process.poll(), None, f"{name} runs; {daemon.lines[-5:]}")
            (early if time.monotonic() < settled_at else late)[name].append(memory(process))
        time.sleep(0.5)
    simulator.faults("")
    fresh(place)
    states = ticks.states
    for loop in loops:
        loop.stop()
        assert loop.statuses <= {0, 1}, f"btcctl {' '.join(loop.arguments)}: {loop.statuses}"
    numbers = [state["tick"] for state in states]
    equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))), "a tick is missing")
    assert len(numbers) >= MINUTES * 60 * (0.99 if isLong else 0.85), f"{len(numbers)} ticks"
    assert len(live.states) > len(states), "more changes than ticks"
    # The dollar has an event each second, the others each few seconds and during their sources' faults none.
    fewest = {currency: min(streams.events[number::7]) for number, currency in enumerate(CURRENCIES)}
    assert streams.closed == 0 and fewest["USD"] > MINUTES * 30 and min(fewest.values()) > MINUTES * 2, (streams.closed, fewest)
    equal(runs.poll(), None)
    assert log.exists()
    odd = [line for line in daemon.lines if not EXPLAINED.search(line)]
    equal(odd, [], "lines that no fault explains")
    figures = []
    for name in processes:
        # The least of a span, because a burst of replies is given back.
        half = len(late[name]) // 2
        grown = min(late[name][half:]) - min(late[name][:half])
        figures.append(f"{name} {min(late[name][half:])} KiB, grown by {grown}")
        assert grown <= (512 if isLong else 4096), f"{name} has grown by {grown} KiB: {late[name][::max(1, len(late[name]) // 40)]}"
    stop(gateway, published, follower, daemon, simulator, broker)
    return f"{len(numbers)} ticks, {len(live.states)} changes, {sum(streams.events)} events, {fault // 2} faults, {len(daemon.lines)} lines; " + \
        "; ".join(figures)


main()
