#!/usr/bin/env python3
"""A daemon whose source is another daemon: it follows that daemon, and validates its prices as those of an exchange."""

import os

from lib.btcpriced import *

INTERVAL = 1


def leader(simulator, *arguments, **options):
    """A daemon that requests its prices from a simulator."""
    place = Place()
    return Daemon(place, simulator.urls, *arguments, sources=options.pop("sources", ("binance", "coinbase")), **options)


def follower(peer, *arguments, **options):
    """A daemon without a network whose only source is a peer."""
    if os.geteuid() != 0:
        raise Skip("a network namespace of its own needs root")
    return Daemon(Place(), None, *arguments, sources=(), peers={"alpha": peer.place}, prefix=("unshare", "--net"), **options)


def following(seed, **options):
    """A simulator, a daemon that requests its prices from it, and one that follows that daemon."""
    simulator = Simulator("--seed", seed)
    first = leader(simulator, **options)
    fresh(first.place)
    second = follower(first)
    fresh(second.place)
    return simulator, first, second


def state(place):
    return btcctl(place, "current", "--json").json


def sources(place):
    return {source["name"]: source for source in json.loads(btcctl(place, "sources", "--json").out)["sources"]}


def until_stale(watch, since):
    """The seconds from a moment to the first line that says that the price is stale."""
    seen = wait_until(
        lambda: next((at for at, s in zip(watch.times, watch.states) if at > since and s["freshness"] == "stale"), None),
        what="a stale price")
    return seen - since


@scenario("a daemon with one peer and no network follows it, becomes stale soon after its death, and recovers", beside=True)
def follows():
    simulator = Simulator("--seed", "1")
    first = leader(simulator)
    theirs = fresh(first.place)
    second = follower(first)
    begun = time.monotonic()
    ours = fresh(second.place)
    took = time.monotonic() - begun
    equal((ours["quote"]["via"], ours["quote"]["source"], ours["quote"]["market"]),
          ("alpha", theirs["quote"]["source"], theirs["quote"]["market"]))
    equal(theirs["quote"]["via"], None)

    # The same prices, and never a lower age than the peer's.
    known, followed = {}, 0
    for _ in range(40):
        there, here = state(first.place), state(second.place)
        known.setdefault(there["quote"]["value"], there["observedBoottime"])
        if here["quote"]["value"] in known:
            assert here["observedBoottime"] >= known[here["quote"]["value"]] - 5, (here, known)
            followed += 1
        time.sleep(0.1)
    assert followed > 20, followed

    watch = Watch(second.place, "--json")
    wait_until(lambda: watch.states, what="a line")
    since = time.monotonic()
    first.kill()
    killed = until_stale(watch, since)
    assert killed <= 3 * INTERVAL, killed
    shown = btcctl(second.place, "current")
    assert "Failed to update value. Displaying last updated value from" in shown.out + shown.err, shown
    reason = state(second.place)["failure"]
    assert "alpha: not reached: " in reason, reason

    first = Daemon(first.place, simulator.urls)
    since = time.monotonic()
    fresh(first.place)
    fresh(second.place)
    back = time.monotonic() - since

    since = time.monotonic()
    suspend(first.process)
    hung = until_stale(watch, since)
    assert hung <= 3 * INTERVAL + 0.5, hung
    first.process.send_signal(signal.SIGCONT)
    fresh(second.place)
    stop(second, first, simulator)
    return (f"fresh {took:.2f} s after its start; stale {killed:.2f} s after the peer was killed and {hung:.2f} s after it "
            f"hung; back {back:.2f} s after the peer's restart")


@scenario("a stale or paused price of a peer is not used, and an unconfirmed one stays unconfirmed", beside=True)
def no_price():
    simulator = replaying("68900")
    # A first price of a single source is unconfirmed.
    first = leader(simulator, sources=["binance"])
    equal(fresh(first.place)["confirmation"], "unconfirmed")
    second = follower(first)
    equal(fresh(second.place)["confirmation"], "unconfirmed")
    first.stop()

    first = Daemon(first.place, simulator.urls, sources=("binance", "coinbase"))
    fresh(second.place)
    equal(btcctl(first.place, "pause").status, 0)
    wait_until(lambda: "alpha: not available: it has no current price: paused" in (state(second.place)["failure"] or ""),
               what="the reason")
    equal(state(second.place)["freshness"], "stale")
    equal(btcctl(first.place, "resume").status, 0)
    fresh(second.place)
    simulator.faults("* always refuse\n")
    wait_until(lambda: "it has no current price: " in (state(second.place)["failure"] or ""), what="the reason")
    stop(second, first, simulator)


@scenario("a peer's price is not passed on to peers, and a daemon is not its own peer", beside=True)
def via():
    simulator, first, second = following("2")
    third = follower(second)
    wait_until(lambda: "its own price comes from another peer" in (state(third.place)["failure"] or ""), what="the reason")
    equal(state(third.place)["freshness"], "none")
    third.stop()

    # A daemon whose own price would confirm itself.
    place = Place()
    alone = Daemon(place, simulator.urls, sources=["binance"], peers={"echo": place})
    fresh(place)
    wait_until(lambda: sources(place)["echo"]["use"] == "refused", what="its own price to be refused")
    assert "it is this daemon itself" in sources(place)["echo"]["lastFailure"]["reason"]
    equal(fresh(place)["confirmation"], "unconfirmed")
    stop(alone, second, first, simulator)


@scenario("a lying peer is contradicted and gets a cooldown, like an exchange", beside=True)
def liar():
    honest, wrong = replaying("68900"), replaying("64000")
    first = leader(wrong)
    fresh(first.place)
    second = Daemon(Place(), honest.urls, sources=("coinbase", "kraken"), peers={"alpha": first.place})
    shown = set()
    wait_until(lambda: sources(second.place)["alpha"]["use"] == "resting", what="the cooldown of the liar")
    for _ in range(30):
        seen = state(second.place)
        if seen["quote"]:
            shown.add(Decimal(seen["quote"]["value"]))
        time.sleep(0.1)
    equal(shown, {Decimal("68900")})
    report = sources(second.place)["alpha"]
    equal(report["lastFailure"]["kind"], "implausible")
    equal((report["url"], report["market"]), (first.place.socket, "BTC/USD"))
    second.says("alpha")
    assert re.search(r"which (coinbase|kraken) .*contradict", report["lastFailure"]["reason"]), report
    stop(second, first, honest, wrong)


@scenario("a peer counts in a median, and the median names it", beside=True)
def median():
    simulator = replaying("68900")
    first = leader(simulator)
    fresh(first.place)
    second = Daemon(Place(), simulator.urls, "--mode", "median", "--quorum", "3", sources=("coinbase", "kraken"),
                    peers={"alpha": first.place})
    seen = fresh(second.place)
    equal(seen["consensus"]["sources"], ["alpha", "coinbase", "kraken"])
    equal((seen["quote"]["source"], seen["quote"]["via"]), ("median", "alpha"))
    first.kill()
    wait_until(lambda: state(second.place)["freshness"] == "stale", what="too few for the quorum")
    stop(second, simulator)


@scenario("a paused follower disconnects its peer, a reload adds and removes a peer, and the stored price has via", beside=True)
def pause_and_reload():
    simulator, first, second = following("3")

    def watchers():
        connection = Varlink(first.place.socket)
        count = connection.call("io.btcpriced.Price.GetStatus")["parameters"]["status"]["clients"]["watchers"]
        connection.close()
        return count
    wait_until(lambda: watchers() == 1, what="the follower to watch")
    equal(btcctl(second.place, "pause").status, 0)
    wait_until(lambda: watchers() == 0, what="the follower to leave")
    equal(btcctl(second.place, "resume").status, 0)
    fresh(second.place)
    second.stop()
    # The peer is not followed any more: the stored price is shown unchanged.
    again = Daemon(second.place, None)
    equal(state(second.place)["quote"]["via"], "alpha")
    again.stop()

    place = Place()
    file = f"{place.state}/config.toml"

    def configure(names, *lines):
        with open(file, "w") as out:
            out.write(f"sources = {json.dumps(names)}\n" + "".join(f"{line}\n" for line in lines))
    url = f'source.kraken.url = "{simulator.urls["kraken"]}"'
    configure(["kraken"], url)
    daemon = spawn([BINARIES / "btc-priced", "--config", file, "--state-directory", place.state, "--runtime-directory",
                    place.runtime], stderr=subprocess.DEVNULL, start_new_session=True)
    fresh(place)
    configure(["alpha", "kraken"], url, f'source.alpha.socket = "{first.place.socket}"')
    daemon.send_signal(signal.SIGHUP)
    wait_until(lambda: fresh(place)["quote"]["via"] == "alpha", what="the price of the peer")
    configure(["kraken"], url)
    daemon.send_signal(signal.SIGHUP)
    wait_until(lambda: fresh(place)["quote"]["via"] is None, what="the exchange's price")
    wait_until(lambda: watchers() == 0, what="the daemon to leave")
    daemon.terminate()
    daemon.wait()
    stop(first, simulator)


@scenario("invalid messages of a peer are refused, and the price is still updated", beside=True)
def nonsense():
    simulator = Simulator("--seed", "4")
    first = leader(simulator)
    fresh(first.place)
    helper = Varlink(first.place.socket)
    good = helper.call("io.btcpriced.Price.GetPrice")["parameters"]["state"]
    known = {method: helper.call(f"io.btcpriced.Price.{method}") for method in ("GetStatus", "ListCurrencies")}
    helper.close()
    replies = []
    fake = Place()

    def serve():
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(fake.socket)
            listener.listen()
            while True:
                client, _ = listener.accept()
                try:
                    while call := client.recv(4096):
                        method = json.loads(call.rstrip(b"\0"))["method"].rpartition(".")[2]
                        reply = json.dumps(known[method]).encode() if method in known else replies[0]
                        client.sendall(reply + b"\0")
                except OSError:
                    pass
                client.close()

    def reply(**changes):
        changed = {**good, "quote": {**good["quote"], **changes.pop("quote", {})}, **changes}
        return json.dumps({"parameters": {"state": changed}, "continues": True}).encode()
    replies.append(reply())
    threading.Thread(target=serve, daemon=True).start()
    wait_until(lambda: os.path.exists(fake.socket), what="the false peer")
    cases = [
        (b"{}", "invalid response"), (b"[" * 100000, "invalid response"), (b"{" + b" " * (1 << 21), "invalid response"),
        (reply(quote={"value": "-5"}), "invalid response"), (reply(quote={"value": "0.5"}), "invalid response"),
        (reply(quote={"currency": "EUR"}), "the price of BTC/USDT in EUR"),
        (reply(quote={"market": "ETH/USD"}), "the price of ETH/USD in USD"),
        (reply(quote={"source": "\x1b[31m"}), "a source with an invalid name"), (reply(quote={"via": "x"}), "comes from another peer"),
        (reply(quote={"timestamp": 1}), "its newest price is"), (b'{"error":"x.y","parameters":{}}', "x.y"),
    ]
    for text, expected in cases:
        replies[0] = text
        daemon = Daemon(Place(), simulator.urls, sources=["kraken", "coinbase"], peers={"fake": fake})
        wait_until(lambda: expected in (sources(daemon.place)["fake"]["lastFailure"] or {}).get("reason", ""),
                   what=lambda: f"{expected}, not {sources(daemon.place)['fake']['lastFailure']}")
        equal(fresh(daemon.place)["quote"]["via"], None)
        daemon.stop()
    stop(first, simulator)
    return f"{len(cases)} cases"


main()
