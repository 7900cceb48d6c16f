#!/usr/bin/env python3
"""A new configuration for a running daemon, by SIGHUP."""

import os
import pty

from lib.btcpriced import *
from lib.proxies import NAME, Proxy
from lib.rates import RateServer


class Configured(Logged):
    """A daemon with a configuration file and without a terminal, like a service."""

    def __init__(self, text="", is_fresh=True, **options):
        self.place, self.simulator = Place(), Simulator(**options)
        self.path = f"{self.place.state}/config.toml"
        self.write(text)
        # The addresses are in the file, so that a reload can change them.
        super().__init__(
            [BINARIES / "btc-priced", "--config", self.path, "--state-directory", self.place.state, "--runtime-directory",
             self.place.runtime], start_new_session=True)
        if is_fresh:
            fresh(self.place)

    def write(self, text):
        addresses = "".join(
            f'source.{venue}.url = "{self.simulator.urls[venue]}"\n' for venue in ("binance", "coinbase", "bitstamp")
            if f"source.{venue}.url" not in text)
        sources = "" if "sources =" in text else 'sources = ["binance", "coinbase"]\n'
        Path(self.path).write_text(sources + addresses + text)

    def reload(self, text):
        """Reloads with a new file. Returns the line that the daemon logs."""
        self.write(text)
        before = len(self.lines)
        self.process.send_signal(signal.SIGHUP)
        return wait_until(
            lambda: next((line for line in self.lines[before:] if "configuration" in line), None), what="its word")

    def status(self):
        return btcctl(self.place, "status", "--json").json["status"]

    def stop(self):
        self.process.terminate()
        equal(self.process.wait(timeout=10), 0)


@scenario("sources, interval, idle time and level change while the daemon ticks, and no watcher misses a tick")
def _():
    daemon = Configured()
    watch = Watch(daemon.place, "--json")
    wait_until(lambda: len(watch.lines) > 1, what="lines")
    said = daemon.reload('sources = ["bitstamp", "binance"]\ntick.interval-ms = 300\ntick.pause-when-idle = 77\nlog.level = "debug"\n')
    assert said.endswith("was reloaded: sources, tick.interval-ms, tick.pause-when-idle, log.level."), said
    wait_until(lambda: watch.states[-1]["quote"]["source"] == "bitstamp", what="the new source")
    equal(daemon.status()["ticks"]["intervalMs"], 300)
    wait_until(lambda: any(" began " in line for line in daemon.lines), what="a line of the new level")
    names = [s["name"] for s in btcctl(daemon.place, "sources", "--json").json["sources"]]
    equal(names, ["bitstamp", "binance"])
    equal(daemon.reload("").rpartition(": ")[2], "sources, tick.interval-ms, tick.pause-when-idle, log.level.")
    assert "no key has changed" in daemon.reload("")
    wait_until(lambda: watch.states[-1]["quote"]["source"] == "binance", what="the old source")
    ticks = [state["tick"] for state in watch.states]
    each_tick(ticks, late=2)
    equal({state["freshness"] for state in watch.states[1:]}, {"fresh"})
    daemon.stop()
    return f"{len(ticks)} ticks over three reloads"


@scenario("--reload returns when the configuration is in use, also two at once; it fails if it is refused, and says what it can't know", beside=True)
def _():
    daemon, other = Configured(), Place()

    def request(*options, pid=daemon.process.pid):
        return spawn([BINARIES / "btc-priced", "--config", daemon.path, "--runtime-directory", daemon.place.runtime, *options, "--reload", str(pid)],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def told(process):
        output, error = process.communicate(timeout=40)
        return process.returncode, output, error.strip()

    for number in range(20):
        wanted = ("USD", "EUR") if number % 2 else ("USD",)
        daemon.write(f"currencies = {json.dumps(wanted)}\n")
        processes = [request() for _ in range(2 if number % 3 == 0 else 1)]
        for process in processes:
            equal(told(process), (0, "", ""))
            known = btcctl(daemon.place, "current", "-c", "EUR", "--json").json
            equal(known.get("error") != "usage", len(wanted) == 2, f"reload {number}: {known}")
    # A number may be another process's by now.
    stranger = subprocess.Popen(["sleep", "60"])
    nowhere = ("--socket-path", f"{other.runtime}/nowhere")
    status, _, error = told(request(*nowhere, pid=stranger.pid))
    assert status == 1 and f"process {stranger.pid} is not signalled: it is 'sleep'" in error, (status, error)
    equal(stranger.poll(), None)
    stranger.kill()
    stranger.wait()
    reloads = daemon.status()["reloads"]
    assert reloads["done"] == reloads["begun"] >= 20 and reloads["failure"] is None, reloads
    # The check finds it before the daemon is signalled.
    daemon.write("tick.interval-ms = 1\n")
    status, _, error = told(request())
    assert status == 78 and "tick.interval-ms = 1" in error, (status, error)
    equal(daemon.status()["reloads"], reloads)
    # What only the daemon finds: the check reads another file.
    valid = f"{daemon.place.state}/valid.toml"
    Path(valid).write_text("")
    status, _, error = told(request("--config", valid))
    assert status == 78 and "the new configuration is refused, and the old one stays: " in error and "tick.interval-ms = 1" in error, (status, error)
    assert "tick.interval-ms" in daemon.status()["reloads"]["failure"], daemon.status()
    assert "the last reload was refused: " in " ".join(btcctl(daemon.place, "status").out.split()), btcctl(daemon.place, "status").out
    daemon.write("")
    equal(told(request()), (0, "", ""))
    # Where the daemon answers is not known.
    before = daemon.status()["reloads"]["done"]
    status, _, error = told(request("--runtime-directory", other.runtime))
    assert status == 0 and "was signalled, but can't be asked whether it has reloaded: " in error, (status, error)
    wait_until(lambda: daemon.status()["reloads"]["done"] == before + 1, what="the reload")
    status, _, error = told(request(pid=0x7FFFFFF0))
    assert status == 1 and f"is not signalled: process {daemon.process.pid} answers at " in error, (status, error)
    status, _, error = told(request("--runtime-directory", other.runtime, pid=0x7FFFFFF0))
    assert status == 1 and "is not signalled: No such process" in error, (status, error)
    equal(told(request(pid=0))[0], 64)
    daemon.stop()


@scenario("changed limits on clients apply after the reload")
def _():
    daemon = Configured()
    slow, watch = Varlink(daemon.place.socket), Watch(daemon.place, "--json")
    wait_until(lambda: len(watch.lines) > 1, what="lines")
    daemon.reload("clients.connections = 4\nclients.queued-mib = 8\nclients.timeout-s = 1\n")
    slow.send(b"{")
    slow.socket.settimeout(5)
    equal(slow.socket.recv(1), b"", "the one that does not complete its call is closed")
    # Three are for each user, and eight are the reserve of the daemon's own.
    connections = [Varlink(daemon.place.socket) for _ in range(10)]
    for connection in connections:
        connection.call("io.btcpriced.Price.GetPrice")
    refusal = Varlink(daemon.place.socket).receive()
    equal(refusal, {"error": "io.btcpriced.Price.TooManyConnections", "parameters": {"limit": "connectionsPerUser", "most": 3}})
    for connection in connections:
        connection.close()
    # The daemon may see the next one before these ends.
    wait_until(lambda: btcctl(daemon.place, "status").status == 0, what="a free connection")
    limits = {limit["name"]: limit for limit in daemon.status()["clients"]["limits"]}
    equal((limits["connectionsPerUser"]["most"], limits["connectionsPerUser"]["hits"] >= 1), (3, True))
    equal(limits["queuedBytes"]["most"], 8 << 20)
    equal((limits["messageTimeoutMs"]["most"], limits["messageTimeoutMs"]["hits"]), (1000, 1))
    daemon.stop()


@scenario("a reload does not shorten the cooldown of a source")
def _():
    daemon = Configured(faults="binance always status 429 retry-after 60 body {}")
    wait_until(lambda: daemon.simulator.requests()["binance"] == 1, what="the refusal")
    for text in ("tick.interval-ms = 500\n", 'sources = ["coinbase", "binance"]\n', ""):
        daemon.reload(text)
    time.sleep(1.5)
    equal(daemon.simulator.requests()["binance"], 1)
    equal([s["use"] for s in btcctl(daemon.place, "sources", "--json").json["sources"]], ["limited", "current"])
    # Nor does the removal of the source for some time.
    daemon.reload('sources = ["coinbase"]\n')
    time.sleep(1.2)
    daemon.reload("")
    time.sleep(1.2)
    equal(daemon.simulator.requests()["binance"], 1)
    daemon.stop()


@scenario("an invalid value is refused with its place and the allowed range, and the old configuration stays")
def _():
    daemon = Configured()
    for text, complaint in (
        ("tick.interval-ms = 5\n", "config.toml, line 5: tick.interval-ms = 5: must be a whole number from 100 to 3600000"),
        ("tick.intervall = 5\n", "config.toml, line 5: unknown key tick.intervall"),
        ("[tick\n", "config.toml"),
        ('source."" = 1\n', "config.toml, line 5: unknown key source."),
        ('tls.ca-file = "/nowhere/ca.pem"\n', "tls.ca-file: /nowhere/ca.pem: No such file or directory"),
        ('tls.ca-file = "/etc/passwd"\n', "tls.ca-file: /etc/passwd holds no certificates that can be read"),
    ):
        said = daemon.reload(text)
        assert "error: The new configuration is refused, and the old one stays: " in said and complaint in said, said
        # What the unit runs before the signal.
        done = subprocess.run([BINARIES / "btc-priced", "--check-config", "--config", daemon.path], capture_output=True, text=True)
        equal(done.returncode, 78)
        assert complaint in done.stderr, done.stderr
    os.unlink(daemon.path)
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "cannot read" in daemon.lines[-1] or "No such file" in daemon.lines[-1], what=lambda: daemon.lines[-1])
    fresh(daemon.place)
    equal(daemon.status()["ticks"]["intervalMs"], 1000)
    daemon.write("tick.interval-ms = 700\n")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: daemon.status()["ticks"]["intervalMs"] == 700, what="the new interval")
    daemon.stop()


@scenario("changes of directories and the socket's path are reported to take effect at the next start")
def _():
    daemon = Configured()
    daemon.reload(f'socket.path = "{daemon.place.runtime}/other"\n')
    wait_until(lambda: "Takes effect at the next start only: socket.path." in daemon.lines[-1], what=lambda: daemon.lines)
    assert not os.path.exists(f"{daemon.place.runtime}/other")
    said = daemon.reload("")
    assert said.endswith("The configuration was reloaded: socket.path."), said
    assert "no key has changed" in daemon.reload('currency.usdt = "refuse"\n')
    assert any('config.toml, line 5: currency.usdt = "refuse" has gone' in line for line in daemon.lines), daemon.lines
    equal(sum("Takes effect at the next start only" in line for line in daemon.lines), 1, "set back, nothing is left for the next start")
    fresh(daemon.place)
    daemon.stop()


@scenario("a reload names the description of an exchange that has changed")
def _():
    description = '[exchange.mine]\nurl = "https://api.mine.example/t"\nprice = "/last"\nmarkets = {{ EUR = {{}} }}\nlimits = ["{}"]\n'
    daemon = Configured(description.format("10/1s"))
    said = daemon.reload(description.format("1/10s"))
    assert said.endswith("The configuration was reloaded: exchange.mine."), said
    assert "no key has changed" in daemon.reload(description.format("1/10s"))
    daemon.stop()


@scenario("a reload during a pause keeps the pause, and reloads in a loop do not stop the ticks")
def _():
    daemon = Configured()
    btcctl(daemon.place, "pause")
    daemon.reload("tick.interval-ms = 300\n")
    equal(daemon.status()["ticking"], "paused")
    btcctl(daemon.place, "resume")
    tick = fresh(daemon.place)["tick"]
    for number in range(40):
        daemon.write(f"tick.interval-ms = {300 + number % 3}\n")
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.02)
    wait_until(lambda: fresh(daemon.place)["tick"] > tick + 5, what="further ticks")
    wait_until(lambda: len(os.listdir(f"/proc/{daemon.process.pid}/task")) < 15, what="few threads")
    daemon.stop()


@scenario("a daemon with a terminal ends when the terminal closes")
def _():
    place = Place()
    child, terminal = pty.fork()
    if child == 0:
        os.execv(BINARIES / "btc-priced", [
            "btc-priced", "--state-directory", place.state, "--runtime-directory", place.runtime, "--sources", "coinbase",
            "--source-coinbase-url", unused_url()])
    wait_until(lambda: can_connect(place.socket), what="the socket")
    os.close(terminal)
    wait_until(lambda: os.waitpid(child, os.WNOHANG)[0] == child, what="its end")
    assert not os.path.exists(place.socket)


# --- The effect of every key -----------------------------------------------------------------------------------------

# The hour in which these take effect is injected in HistoryStoreTests.
IN_UNIT_TESTS = {"history.keep-minutes", "history.write-every-s"}
TESTED = {"clients.connections", "clients.queued-mib", "clients.timeout-s"} | IN_UNIT_TESTS
EUROS = 'reference-rates = []\ncurrencies = ["USD", "EUR"]\ncurrency.EUR.sources = ["{}"]\ncurrency.EUR.interval-ms = {}\n'
ALONE = 'sources = ["binance"]\n'


def kind(key):
    """The keys of all sources are the same, and those of all currencies."""
    return re.sub(r"^(source|currency)\.(?!usdt$)[\w-]+\.", r"\1.*.", key)


def effect(key, before, after, what, needs=dict, **options):
    """A scenario: the condition does not hold before the reload, and then it does. `needs` makes what the condition and both texts use."""
    TESTED.add(kind(key))

    def note(condition):
        @scenario(f"a reload that changes {key} has an effect: {what}", beside=True)
        def _():
            given = needs()
            daemon = Configured(before.format(**given), is_fresh=False, **options)
            wait_until(lambda: can_connect(daemon.place.socket), what="the socket")
            wait_until(lambda: state_in(daemon.place, "USD")["tick"] > 0, what="a tick")
            assert not condition(daemon, **given), "it holds before the reload"
            said = daemon.reload(after.format(**given))
            assert said.endswith(f"was reloaded: {key}."), said
            wait_until(lambda: condition(daemon, **given), what=what)
            daemon.stop()
        return condition
    return note


def shows(key, before, after, member, value, currency="USD", **options):
    """The effect is in the state."""
    @effect(key, before, after, f"{member} is {value}", **options)
    def _(daemon, **_):
        found = state_in(daemon.place, currency)
        for name in member.split("."):
            found = (found or {}).get(name)
        return found == value


def peers():
    """Two daemons with different prices."""
    first, second = Place(), Place()
    for place, price in ((first, "68900"), (second, "68950")):
        Daemon(place, replaying(price).urls, sources=["binance"])
        fresh(place)
    return {"first": first.socket, "second": second.socket}


def live(daemon):
    """A client that watches changes."""
    if not hasattr(daemon, "changes"):
        daemon.changes = Watch(daemon.place, "--live", "--json")
    return daemon.changes


def trading():
    """A market that trades while its stream is open."""
    market = replaying(*(f"{68_900 + index / 100:.2f}" for index in range(20_000)))
    return {"market": market, "url": market.urls["binance"], "stream": market.urls["binance"].replace("http", "ws", 1)}


def secure():
    market = Simulator(secure=True)
    return {"url": market.urls["binance"], "authority": market.authority}


def proxied():
    """An exchange whose name only the proxy knows."""
    market = Simulator()
    return {"url": market.urls["binance"].replace("127.0.0.1", NAME), "proxy": Proxy("http").url}


shows("sources", ALONE, 'sources = ["bitstamp"]\n', "quote.source", "bitstamp")
shows("currency.EUR.sources", EUROS.format("coinbase", 1000), EUROS.format("bitstamp", 1000), "quote.source", "bitstamp", "EUR")
shows("mode", "quorum = 2\n", 'quorum = 2\nmode = "median"\n', "quote.source", "median")
shows("quorum", 'mode = "median"\nquorum = 2\n', 'mode = "median"\nquorum = 1\n', "freshness", "fresh", faults="coinbase always status 503")
shows("source.binance.timeout-ms", "", "source.binance.timeout-ms = 50\n", "quote.source", "coinbase", faults="binance always delay 300ms")
shows("tick.budget-ms", ALONE + "source.binance.timeout-ms = 9000\n", ALONE + "source.binance.timeout-ms = 9000\ntick.budget-ms = 9000\n",
      "freshness", "fresh", faults="binance always delay 1500ms")
shows("source.binance.url", ALONE + f'source.binance.url = "{unused_url()}"\n', ALONE + 'source.binance.url = "{url}"\n', "freshness", "fresh",
      needs=trading)
shows("source.alpha.socket", 'sources = ["alpha"]\nsource.alpha.socket = "{first}"\n', 'sources = ["alpha"]\nsource.alpha.socket = "{second}"\n',
      "quote.value", "68950", needs=peers)
shows("proxy.url", ALONE + 'source.binance.url = "{url}"\n', ALONE + 'source.binance.url = "{url}"\nproxy.url = "{proxy}"\n', "freshness", "fresh",
      needs=proxied)
shows("tls.ca-file", ALONE + 'source.binance.url = "{url}"\n', ALONE + 'source.binance.url = "{url}"\ntls.ca-file = "{authority}"\n',
      "freshness", "fresh", needs=secure)


@effect("currencies", 'reference-rates = []\ncurrency.EUR.sources = ["coinbase"]\n', 'reference-rates = []\ncurrency.EUR.sources = ["coinbase"]\ncurrencies = ["USD", "EUR"]\n', "it has a price in the new one")
def _(daemon):
    reply = Varlink(daemon.place.socket).call("io.btcpriced.Price.GetPrice", currency="EUR")
    return "error" not in reply and reply["parameters"]["state"]["freshness"] == "fresh"


@effect("tick.interval-ms", "tick.interval-ms = 60000\n", "tick.interval-ms = 200\n", "more ticks")
def _(daemon):
    return state_in(daemon.place, "USD")["tick"] > 5


@effect("currency.EUR.interval-ms", EUROS.format("coinbase", 3_600_000), EUROS.format("coinbase", 1000), "more ticks")
def _(daemon):
    return state_in(daemon.place, "EUR")["tick"] > 3


@effect("source.binance.hedge-ms", "source.binance.hedge-ms = 60000\n", "source.binance.hedge-ms = 10\n", "the next source is requested too",
        faults="binance always delay 300ms")
def _(daemon):
    return daemon.simulator.requests()["coinbase"] > 4


@effect("tick.pause-when-idle", "", "tick.pause-when-idle = 1\n", "the ticks pause")
def _(daemon):
    return daemon.status()["ticking"] == "idle"


@effect("log.level", "", 'log.level = "debug"\n', "lines of that level")
def _(daemon):
    return daemon.said(" began ")


@effect("currency.usdt", 'sources = ["binance", "coinbase", "kraken"]\n',
        'sources = ["binance", "coinbase", "kraken"]\ncurrency.usdt = "convert"\n', "the price is converted")
def _(daemon):
    return state_in(daemon.place, "USD")["conversion"] is not None


@effect("source.binance.second-url", ALONE, ALONE + 'source.binance.second-url = "{url}"\n', "it is used", needs=trading,
        faults='binance always status 451 body {"code":0}')
def _(daemon, market, **_):
    btcctl(daemon.place, "retry", "binance")
    return market.requests()["binance"] > 0


@effect("source.binance.stream-url", ALONE, ALONE + 'source.binance.stream-url = "{stream}"\n', "it is open", needs=trading)
def _(daemon, market, **_):
    live(daemon)
    return market.streams()["binance"]["open"] > 0


STREAM = ALONE + 'source.binance.url = "{url}"\nsource.binance.stream-url = "{stream}"\n'


@effect("streams", STREAM + 'streams = "never"\n', STREAM, "they are open", needs=trading)
def _(daemon, market, **_):
    live(daemon)
    return market.streams()["binance"]["open"] > 0


@effect("watch.min-interval-ms", STREAM + "watch.min-interval-ms = 60000\n", STREAM + "watch.min-interval-ms = 10\n",
        "changes between the ticks", needs=trading)
def _(daemon, **_):
    states = live(daemon).states
    return len(states) > len({state["tick"] for state in states}) + 9


@effect("fleet.fallback", 'sources = ["alpha"]\nsource.alpha.socket = "/nowhere"\n',
        'sources = ["alpha"]\nsource.alpha.socket = "/nowhere"\nfleet.fallback = true\n', "the exchanges are reserves")
def _(daemon):
    return len(btcctl(daemon.place, "sources", "--json").json["sources"]) > 1


@effect("history.backfill", "history.backfill = false\n", "", "the day is filled")
def _(daemon):
    return (state_in(daemon.place, "USD")["day"] or {}).get("backfilled")


OTHERS = ("coinbase", "bitstamp", "kraken")
OBSERVED = f'history.backfill = false\nsources = {json.dumps(["binance", *OTHERS])}\n' + "".join(
    f'source.{name}.url = "{{{name}}}"\n' for name in ("binance", *OTHERS))


@effect("validation.observe-interval-ms", OBSERVED + "validation.observe-interval-ms = 15000\n",
        OBSERVED + "validation.observe-interval-ms = 1000\n", "the others are requested sooner",
        needs=lambda: (lambda market: {"market": market, **market.urls})(Simulator()))
def _(daemon, market, **_):
    if not hasattr(daemon, "before"):
        daemon.before = market.requests()
    return sum(market.requests()[name] - daemon.before[name] for name in OTHERS) > 3


def rates():
    server = RateServer({"USD": "1.1628", "JPY": "174.42"})
    return {"server": server, "tables": server.tables()}


YEN = 'currencies = ["USD", "JPY"]\nreference-rates = ["{}"]\ncurrency.JPY.sources = ["binance"]\ncurrency.JPY.interval-ms = 1000\n'


@effect("reference-rates", YEN.format("ecb") + "{tables}", YEN.format("frankfurter") + "{tables}", "they are requested", needs=rates)
def _(daemon, server, **_):
    return server.requests["frankfurter"] > 0


@effect("currency.JPY.derive", YEN.format("ecb") + "{tables}", YEN.format("ecb") + 'currency.JPY.derive = "always"\n{tables}',
        "the price is derived", needs=rates)
def _(daemon, **_):
    return state_in(daemon.place, "JPY")["derived"] is not None


@scenario("every key that a reload may change is among those whose effect is tested")
def _():
    text = subprocess.run([BINARIES / "btc-priced", "--print-default-config"], capture_output=True, text=True, check=True).stdout
    keys, fixed = set(), set()
    # A description, and the keys that it is about.
    for about, names in re.findall(r"((?:^# .*\n)+)((?:^#[\w.-]+ = .*\n)+)", text, re.MULTILINE):
        of = fixed if "takes effect at the next start" in about.replace("\n# ", " ") else keys
        of.update(map(kind, re.findall(r"(?m)^#([\w.-]+) = ", names)))
    equal(fixed, {"state.directory", "runtime.directory", "socket.path", "history.enabled"})
    # A peer's socket is in no table: its name is the user's.
    equal(keys | {"source.*.socket"}, TESTED)


main()
