#!/usr/bin/env python3
"""The ways to an exchange: distance, proxies, IPv6, name servers, a second address, cooldowns across a restart."""

import ctypes
import datetime
import http.server
import os
import socketserver
import struct

from lib.btcpriced import *
from lib.proxies import ADDRESS, NAME, Proxy
from lib.wallclock import WallClock
from lib.secure import ANOTHER_HOST, Exchange
from lib.certificates import SIMULATOR


def state(place):
    return btcctl(place, "current", "--json").json


# --- Time ------------------------------------------------------------------------------------------------------------

@scenario("at 100 ms round trip the first tick succeeds although the primary hangs and the fallback's connection is cold")
def _():
    simulator = Simulator("--round-trip", "100", secure=True, faults="binance always dark")
    # A machine that is busy with other tests may take more than the second that a tick has.
    for attempt in range(3):
        place = Place()
        # Not the very first price, which waits for a second source.
        known_price(place, "68900", source="coinbase")
        daemon = Daemon(place, simulator.urls, "--tls-ca-file", simulator.authority)
        first = wait_until(lambda: (s := state(place))["tick"] >= 1 and s, what="the first tick")
        if first["freshness"] == "fresh" or attempt == 2:
            break
        daemon.stop()
    equal((first["freshness"], first["quote"]["source"]), ("fresh", "coinbase"))
    for tick in range(2, 6):
        found = wait_until(lambda: (s := state(place))["tick"] >= tick and s, what=f"tick {tick}")
        equal(found["freshness"], "fresh", f"tick {tick}")
    daemon.stop()


@scenario("exchanges that respond in time only on an open connection, and requested at once, have prices, and confirm them")
def _():
    # The connection and the first response need 1.1 s, two responses as long, and the tick has one second.
    place, simulator = Place(), Simulator("--round-trip", "550")
    daemon = Daemon(place, simulator.urls)
    state = settled(place)
    equal(state["confirmation"], "confirmed")
    daemon.stop()
    return f"confirmed at tick {state['tick']}"


@scenario("with the primary in cooldown the fallback has the whole budget")
def _():
    # With the second of the standard, a busy machine would have only a tenth of it for all the rest.
    simulator, place = Simulator(faults="binance always refuse\ncoinbase always delay 3000ms"), Place()
    known_price(place, "68900", source="coinbase")
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "4000", "--tick-budget-ms", "4000")
    for tick in range(1, 4):
        found = wait_until(lambda: (s := state(place))["tick"] >= tick and s, what=f"tick {tick}")
        equal((found["freshness"], found["quote"]["source"], found["failure"]), ("fresh", "coinbase", None), f"tick {tick}")
    daemon.stop()
    return "3 ticks of 4 s, each with a response after 3 s"


@scenario("a certificate that becomes valid is accepted without a restart")
def _():
    simulator, place = Simulator(secure=True), Place()
    simulator.certificates("not-yet-valid", SIMULATOR, begins=3)
    simulator.faults("binance always certificate not-yet-valid")
    daemon = Daemon(place, simulator.urls, "--tls-ca-file", simulator.authority, sources=["binance"])
    wait_until(lambda: daemon.said("its certificate is not valid now"), what="the refusal")
    equal(state(place)["freshness"], "none")
    fresh(place)
    daemon.stop()


@scenario("a daemon on a machine that boots with a wrong clock recovers when the clock is set")
def _():
    clock = WallClock(set_to=datetime.datetime(1971, 6, 1, 12, tzinfo=datetime.UTC).timestamp())
    simulator, place = Simulator(secure=True), Place()
    daemon = Daemon(
        place, simulator.urls, "--tls-ca-file", simulator.authority, sources=["binance"], environment=clock.environment)
    wait_until(
        lambda: daemon.said("its certificate is not valid now"),
        what=lambda: f"the reason; {daemon.lines}")
    equal(state(place)["freshness"], "none")
    # The clock is set.
    clock.shift(0)
    found = fresh(place)
    assert abs(found["quote"]["timestamp"] / 1000 - time.time()) < 5, found
    assert found["ageMs"] < 2500, found
    # The clock is set back again: the price stays fresh, with the right age.
    clock.shift(-3600)
    tick = found["tick"]
    later = wait_until(lambda: (s := state(place))["tick"] > tick + 2 and s, what="further ticks")
    equal((later["freshness"], later["ageIsEstimate"]), ("fresh", False))
    assert later["ageMs"] < 2500, later
    assert abs(later["quote"]["timestamp"] / 1000 - (time.time() - 3600)) < 5, later
    daemon.stop()


# --- Proxies ---------------------------------------------------------------------------------------------------------

for kind in ("http", "socks5"):
    for secure in (False, True):
        def define(kind, secure):
            @scenario(f"through a proxy that speaks {kind} to an exchange that speaks {'HTTPS' if secure else 'HTTP'}")
            def _():
                simulator, place, proxy = Simulator(secure=secure), Place(), Proxy(kind)
                # The proxy resolves the name. For plain HTTP it is an address.
                host = NAME if secure else ADDRESS
                url = simulator.urls["binance"].replace("127.0.0.1", host)
                arguments = ["--tls-ca-file", simulator.authority] if secure else []
                daemon = Daemon(place, {"binance": url}, "--proxy-url", proxy.url, *arguments, sources=["binance"])
                equal(fresh(place)["quote"]["source"], "binance")
                equal({target.rsplit(":", 1)[0] for target in proxy.targets}, {host})
                proxy.stop()
                daemon.stop()
        define(kind, secure)


@scenario("an exchange on this machine is not requested through a proxy, which would connect to its own machine", beside=True)
def _():
    for kind in ("http", "socks5"):
        for host in ("127.0.0.1", "localhost"):
            simulator, place, proxy = Simulator(), Place(), Proxy(kind)
            url = simulator.urls["binance"].replace("127.0.0.1", host)
            daemon = Daemon(place, {"binance": url}, "--proxy-url", proxy.url, sources=["binance"])
            equal((fresh(place)["quote"]["source"], proxy.targets), ("binance", []))
            proxy.stop()
            daemon.stop()


@scenario("an absent proxy, one that refuses, and one that wants a password is reported as the cause")
def _():
    simulator = Simulator(secure=True)
    refused, demanded = "the proxy refused the connection", "the proxy wants a user name and a password"
    cases = [
        (unused_url(), "the proxy: Connection refused"), (Proxy("refusing").url, refused), (Proxy("lingering").url, refused),
        (Proxy("demanding").url, demanded), (Proxy("socks5_demanding").url, demanded),
        (Proxy("socks5_refusing").url, f"{refused}: connection refused"),
        (Proxy("endless").url, f"{refused}: its response "), (Proxy("garbage").url, f"{refused}: its response is not valid"),
    ]
    urls = {"binance": simulator.urls["binance"].replace("127.0.0.1", NAME)}
    for url, reason in cases:
        place, expected = Place(), f"binance gave no price: not reached: {reason}"
        daemon = Daemon(place, urls, "--proxy-url", url, "--tls-ca-file", simulator.authority, sources=["binance"])
        wait_until(lambda: daemon.said(expected), what=lambda: f"{expected!r} in {daemon.lines}")
        daemon.stop()


@scenario("through a proxy an exchange at an address needs a certificate for its own address, not for the proxy's")
def _():
    for kind in ("http", "socks5"):
        for name, refused in ((ADDRESS, None), ("127.0.0.2", ANOTHER_HOST)):
            exchange, place, proxy = Exchange(name), Place(), Proxy(kind, "127.0.0.2")
            daemon = Daemon(place, {"binance": exchange.url.replace("127.0.0.1", ADDRESS)}, "--proxy-url", proxy.url, "--tls-ca-file", exchange.authority, sources=["binance"])
            exchange.expect(place, daemon, refused)
            daemon.stop()


# --- Addresses and names ---------------------------------------------------------------------------------------------

@scenario("an exchange at an IPv6 address")
def _():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        raise Skip(f"no IPv6 on loopback: {error}")
    for secure in (False, True):
        simulator, place = Simulator("--host", "::1", secure=secure), Place()
        assert simulator.urls["binance"].split("//")[1].startswith("[::1]:"), simulator.urls
        arguments = ["--tls-ca-file", simulator.authority] if secure else []
        daemon = Daemon(place, simulator.urls, *arguments)
        equal(fresh(place)["quote"]["source"], "binance")
        daemon.stop()


@scenario("a name with a dead IPv6 address and a working IPv4 address")
def _():
    simulator, place = Simulator(secure=True), Place()
    url = simulator.urls["binance"].replace("127.0.0.1", "localhost")
    daemon = Daemon(place, {"binance": url}, "--tls-ca-file", simulator.authority, sources=["binance"])
    fresh(place)
    daemon.stop()


class NameServer(threading.Thread):
    """A test name server: knows one name, denies others, does not respond for names that begin with `silent`, and loses the first query
    for `lossy`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.lost = set()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.start()

    def run(self):
        while True:
            query, sender = self.socket.recvfrom(4096)
            names, place = [], 12
            while query[place]:
                names.append(query[place + 1:place + 1 + query[place]].decode())
                place += query[place] + 1
            question = query[12:place + 5]
            kind = struct.unpack(">H", query[place + 1:place + 3])[0]
            if names[0].startswith("silent"):
                continue
            if names[0] == "lossy" and kind not in self.lost:
                self.lost.add(kind)
                continue
            is_known = names[0] in ("exchange", "lossy")
            answer = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x01\x00\x04\x7f\x00\x00\x01" if is_known and kind == 1 else b""
            flags = 0x8180 if is_known else 0x8183
            head = query[:2] + struct.pack(">HHHHH", flags, 1, 1 if answer else 0, 0, 0)
            self.socket.sendto(head + question + answer, sender)


def in_a_network_of_our_own():
    """Enters a new network with only loopback, and uses the test name server."""
    if os.geteuid() != 0:
        raise Skip("network namespaces are root's")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x40000000 | 0x00020000) != 0:  # CLONE_NEWNET, CLONE_NEWNS
        raise Skip(f"no network namespace here: {os.strerror(ctypes.get_errno())}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        import fcntl
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(control, 0x8914, request)  # SIOCSIFFLAGS
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("nameserver 127.0.0.1\n")
    os.chmod(file.name, 0o644)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "--bind", file.name, os.path.realpath("/etc/resolv.conf")], check=True)


def in_a_child(function):
    """Runs a scenario in a separate process, whose network it may change. Returns its result."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        word = "failed: unknown"
        try:
            in_a_network_of_our_own()
            word = f"ok {function() or ''}"
        except Skip as reason:
            word = f"skip {reason}"
        except BaseException:
            word = f"failed: {traceback.format_exc()}"
        finally:
            os.write(writer, word.encode()[:60_000])
            end_children()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        word = pipe.read()
    os.waitpid(child, 0)
    if word.startswith("skip "):
        raise Skip(word[5:])
    assert word.startswith("ok "), word
    return word[3:] or None


@scenario("an unknown name and one without a response of the name server delay no other source")
def _():
    def names():
        NameServer()
        simulator, place = Simulator(), Place()
        port = simulator.urls["coinbase"].rsplit(":", 1)[1]
        urls = {
            "binance": "http://silent.test:1", "bitstamp": "http://gone.test:1",
            "coinbase": f"http://exchange.test:{port}"}
        daemon = Daemon(place, urls, sources=("binance", "bitstamp", "coinbase"))
        # In the first tick it is not known yet that the name server does not respond for one of them.
        wait_until(lambda: state(place)["freshness"] == "fresh", what=lambda: f"a price; {daemon.lines}")
        begun = state(place)["tick"]
        threads = lambda: len(os.listdir(f"/proc/{daemon.process.pid}/task"))
        before = None
        stale = 0
        for tick in range(begun + 1, begun + 11):
            found = wait_until(lambda: (s := state(place))["tick"] >= tick and s, what=f"tick {tick}")
            stale += found["freshness"] != "fresh"
            before = before or threads()
        equal(stale, 0, "stale ticks")
        wait_until(lambda: daemon.said("bitstamp gave no price: not reached: gone.test cannot be resolved"), what=lambda: f"{daemon.lines}")
        daemon.says("binance gave no price")
        assert threads() <= before + 2, f"threads pile up: {before}, {threads()}"
        daemon.stop()
        return f"10 ticks fresh, {before} threads"

    def all_silent():
        NameServer()
        place = Place()
        daemon = Daemon(
            place, {"binance": "http://silent-a.test:1", "coinbase": "http://silent-b.test:1"})
        # The state says only that no exchange can be reached, if both lookups are pending.
        failure = lambda: btcctl(place, "sources", "--json").json["sources"][0]["lastFailure"] or {}
        wait_until(
            lambda: failure().get("reason") == "not reached: no name server responds for silent-a.test",
            what=lambda: f"the reason; {failure()}")
        status, seconds = daemon.stop()
        equal(status, 0)
        assert seconds < 5, f"it took {seconds} s to stop"
    figures = in_a_child(names)
    in_a_child(all_silent)
    return figures


# --- Kept connections ------------------------------------------------------------------------------------------------

class Host(socketserver.ThreadingTCPServer):
    """A server at an address on loopback that responds as Binance does, each time with this price and status."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, address, price):
        self.price, self.status, self.refused = price, 200, 0
        host = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                host.refused += host.status != 200
                body = b'{"symbol":"BTCUSDT","price":"%s"}' % host.price
                self.send_response(host.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        super().__init__(address, Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@scenario("an exchange that has moved is found, although its old server still responds with 503 on the kept connection")
def _():
    if os.geteuid() != 0:
        raise Skip("a mount namespace needs root")
    port, place = free_port("127.0.0.2"), Place()
    old, new = Host(("127.0.0.2", port), b"68900"), Host(("127.0.0.3", port), b"68910")
    hosts = Path(place.state, "hosts")

    def point(address):
        # In place: the mount is of this file.
        with open(hosts, "r+" if hosts.exists() else "w") as file:
            file.write(f"{address} exchange.test\n")
    point("127.0.0.2")
    hosts.chmod(0o644)
    daemon = Daemon(
        place, {"binance": f"http://exchange.test:{port}"}, sources=("binance",),
        prefix=["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts])
    equal(fresh(place)["quote"]["value"], "68900")
    point("127.0.0.3")
    old.status = 503
    begun = time.monotonic()
    wait_until(lambda: (s := state(place))["freshness"] == "fresh" and s["quote"]["value"] == "68910", what=lambda: f"the new server; {state(place)}")
    took = time.monotonic() - begun
    assert old.refused <= 2, f"{old.refused} requests to the old server"
    daemon.stop()
    for host in (old, new):
        host.shutdown()
        host.server_close()
    return f"after {took:.1f} s and {old.refused} refused requests"


@scenario("a request that is read on a kept connection before it is closed counts, and no limit is exceeded")
def _():
    # Every second request is the second one on its connection.
    closes = "".join(f"{venue} request {count} close\n" for venue in ("kraken", "coinbase") for count in range(2, 100, 2))
    simulator = Simulator("--seed", "1", faults=closes)
    daemons = {venue: Daemon(Place(), simulator.urls, sources=(venue,)) for venue in ("kraken", "coinbase")}
    wait_until(lambda: simulator.requests()["kraken"] >= 5, what="five requests")
    assert within(simulator.limits()), simulator.limits()
    for venue, daemon in daemons.items():
        btcctl(daemon.place, "pause")

        def counted():
            return btcctl(daemon.place, "sources", "--json").json["sources"][0]["requests"]
        wait_until(lambda: counted() == simulator.requests()[venue], what=lambda: f"{simulator.requests()[venue]} requests, not {counted()},")
        assert state(daemon.place)["quote"], venue
        daemon.stop()
    return "; ".join(f"{venue} {simulator.limits()[venue]}" for venue in daemons)


# --- Cooldowns and limits --------------------------------------------------------------------------------------------

@scenario("a lost packet to a name server costs a source a second, not five")
def _():
    def lossy():
        server = NameServer()
        simulator, place = Simulator(), Place()
        port = simulator.urls["binance"].rsplit(":", 1)[1]
        begun = time.monotonic()
        daemon = Daemon(place, {"binance": f"http://lossy.test:{port}"}, sources=("binance",))
        wait_until(lambda: state(place)["freshness"] == "fresh", what=lambda: f"a price; {daemon.lines}")
        seconds = time.monotonic() - begun
        equal(server.lost, {1, 28}, "lost questions")
        # The resolver's default time-out is five seconds. The bound is not a measure of speed.
        assert seconds < 4.5, f"{seconds:.1f} s"
        daemon.stop()
        return f"{seconds:.1f} s"
    return in_a_child(lossy)


@scenario("if the first address refuses this region, the second one is requested from the next tick on")
def _():
    first = Simulator(faults='binance always status 451 body {"code":0,"msg":"restricted location"}')
    second, place = Simulator(), Place()
    daemon = Daemon(
        place, first.urls, "--source-binance-second-url", second.urls["binance"], sources=("binance", "coinbase"))
    wait_until(lambda: state(place)["tick"] >= 4, what="four ticks")
    equal(state(place)["quote"]["source"], "binance")
    equal(first.requests()["binance"], 1, "requests to the first address")
    assert second.requests()["binance"] >= 3
    daemon.says(f"HTTP 451, not served in this region; {second.urls['binance']} is used from now on")
    daemon.stop()


@scenario("sources that can't be requested at every tick are reported and come last")
def _():
    simulator, place = Simulator("--seed", "1"), Place()
    daemon = Daemon(place, simulator.urls, sources=("kraken", "bitstamp"))
    wait_until(lambda: state(place)["tick"] >= 3, what="three ticks")
    equal(state(place)["quote"]["source"], "bitstamp")
    daemon.says("kraken can't be requested at every tick within its limit, only once in 1900 ms")
    daemon.stop()
    # With slow enough ticks the source is the primary, as configured.
    slow = Daemon(place, simulator.urls, "--tick-interval-ms", "2000", sources=("kraken", "bitstamp"))
    # A tick that comes late on a busy machine may leave less than Kraken's pace to the next one, whose price is another source's.
    wait_until(lambda: state(place)["tick"] >= 2 and state(place)["quote"]["source"] == "kraken", what="a second tick of the primary")
    slow.stop()
    assert within(simulator.limits()), simulator.limits()


main()
