#!/usr/bin/env python3
"""btcctl current: texts, JSON, exit statuses, and the search for the socket."""

import os

from lib.btcpriced import *

FIELDS = ["version", *interface_fields("State"), "ageMs", "ageIsEstimate"]


@scenario("current in all its forms")
def _():
    place, simulator, daemon = running()
    for form in ([], ["--refresh"], ["--no-cache"]):
        result = btcctl(place, "current", *form)
        equal((result.status, result.err), (0, ""), form)
        assert " - $" in result.out and result.out.count("\n") == 1, result
        state = btcctl(place, "current", "--json", *form).json
        equal(list(state), FIELDS)
        equal((state["version"], state["freshness"]), (1, "fresh"))
        # The second source confirms the very first price.
        assert state["confirmation"] in ("single", "confirmed"), state
        equal(list(state["quote"]), interface_fields("Quote"))
        assert 0 <= state["ageMs"] < 2500 and state["ageIsEstimate"] is False, state
    daemon.stop()


@scenario("a refresh requests the exchange, a plain call does not")
def _():
    place, simulator, daemon = running()
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait()
    # A slow tick, so that only the callers' requests are counted.
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "3600000")
    fresh(place)
    before = simulator.requests()["binance"]
    for _ in range(5):
        btcctl(place, "current")
    equal(simulator.requests()["binance"], before, "requests after plain calls")
    old = btcctl(place, "current", "--json").json["quote"]
    # For a second, what the last requests brought is what a refresh gets.
    time.sleep(1.1)
    new = btcctl(place, "current", "--refresh", "--json").json["quote"]
    equal(simulator.requests()["binance"], before + 1, "requests after a refresh")
    assert new["timestamp"] > old["timestamp"]
    equal(btcctl(place, "current", "--json").json["quote"], new, "what a refresh brought is what is held")
    daemon.stop()


@scenario("--max-age is obeyed")
def _():
    place, simulator, daemon = running()
    equal(btcctl(place, "current", "--max-age", "5").status, 0)
    daemon.stop()
    daemon = Daemon(place)
    time.sleep(0.3)
    result = btcctl(place, "current", "--max-age", "0.2")
    equal((result.status, result.out), (75, ""))
    assert result.err.startswith("btcctl: The price is "), result
    result = btcctl(place, "current", "--max-age", "0.2", "--json")
    equal((result.status, result.json["error"], result.json["exitStatus"], result.err), (75, "tooOld", 75, ""))
    equal(btcctl(place, "current", "--max-age", "3600").status, 0)
    # As after a reboot: the runtime directory is empty, and the age comes only from the wall clock.
    daemon.stop()
    os.unlink(f"{place.runtime}/last-quote.json")
    daemon = Daemon(place)
    state = btcctl(place, "current", "--json").json
    equal((state["ageIsEstimate"], state["observedBoottime"]), (True, None))
    equal(state["ageMs"], None)
    # For any limit, because the age is not known.
    for verb in (["current"], ["convert", "1btc"]):
        result = btcctl(place, *verb, "--max-age", "1d")
        equal((result.status, result.out), (75, ""), verb)
        assert "The age of the price is not known" in result.err, result
    assert "of unknown age" in btcctl(place, "status").out
    daemon.stop()


@scenario("a daemon without a reply within 5 s counts as unreachable")
def _():
    place, simulator, daemon = running()
    suspend(daemon.process)
    begun = time.monotonic()
    result = btcctl(place, "current")
    seconds = time.monotonic() - begun
    daemon.process.send_signal(signal.SIGCONT)
    equal(result.status, 69)
    assert 4.5 < seconds < 8, seconds
    daemon.stop()
    return f"after {seconds:.1f} s"


@scenario("the version and the help are printed")
def _():
    for words, text in ((["--version"], f"btcctl {FULL_VERSION}\n"), (["--help"], "Usage: btcctl"), (["help", "current"], "--max-age")):
        result = Result(subprocess.run([str(BINARIES / "btcctl"), *words], capture_output=True, text=True))
        equal(result.status, 0, words)
        assert text in result.out, result


@scenario("the socket is searched for in the designed order")
def _():
    place, simulator, daemon = running()
    named = {"BTC_PRICED_SOCKET": place.socket}
    equal(btcctl(None, "current", environment=named).status, 0, "named by the environment")
    # A given path has precedence over the user's own daemon, and is the only one that is tried.
    home = tempfile.mkdtemp(prefix="btc-priced-home-")
    os.mkdir(f"{home}/btc-priced")
    own = {"XDG_RUNTIME_DIR": home}
    os.symlink(place.socket, f"{home}/btc-priced/{SOCKET_NAME}")
    equal(btcctl(None, "current", environment=own).status, 0, "the user's own")
    result = btcctl(None, "current", environment={**own, "BTC_PRICED_SOCKET": "/none"})
    equal(result.status, 69)
    assert "/none" in result.err and home not in result.err, result
    # After a refused connection the client tries the next path: here the system's, which does not exist.
    daemon.stop()
    os.unlink(f"{home}/btc-priced/{SOCKET_NAME}")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{home}/btc-priced/{SOCKET_NAME}")
    result = btcctl(None, "current", environment=own)
    shutil.rmtree(home)
    if not os.path.exists("/run/btc-priced"):
        equal(result.status, 69)
        assert "Connection refused" in result.err and "/run/btc-priced/io.btcpriced.Price" in result.err, result


@scenario("the words of the command line: attached values, a sign for a currency, a time limit, few words and few lines")
def _():
    simulator, place = Simulator("--seed", "1"), Place()
    daemon = Daemon(place, simulator.urls, "--currencies", "USD,EUR", "--currency-EUR-interval-ms", "1000", sources=("coinbase", "kraken"))
    wait_until(lambda: btcctl(place, "current", "-cEUR", "--json").json["freshness"] == "fresh", what="euros")
    assert "€" in btcctl(place, "current", environment={"BTCCTL_CURRENCY": "€"}).out
    equal(btcctl(place, "current", environment={"BTCCTL_CURRENCY": "€€"}).status, 64)
    equal(btcctl(place, "current", "-c€", "--format", r"{currency}\t{symbol}\n.").out, "EUR\t€\n.\n")
    refused = btcctl(place, "current", "--format", "- {price}")
    equal((refused.status, "--format='- {price}'" in refused.err), (64, True), refused)
    assert btcctl(place, "current", "--format=- {price}").out.startswith("- $")
    equal(btcctl(place, "help", "watch").out, btcctl(None, "watch", "--help").out)
    watched = btcctl(place, "watch", "-n", "3")
    equal((watched.status, len(watched.out.splitlines())), (0, 3), watched)
    seconds = [re.fullmatch(r"\w{3} \d+, \d\d:\d\d:(\d\d) - \$.*", line)[1] for line in watched.out.splitlines()]
    assert seconds[0] != seconds[2], watched
    equal(btcctl(place, "watch", "--count", "0").status, 64)
    # A price that is not printed does not count.
    refused = spawn([BINARIES / "btcctl", "watch", "-n1", "--max-uncertainty", "0.0001%", "--socket", place.socket], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(2.5)
    equal(refused.poll(), None)
    refused.terminate()
    equal(refused.stdout.read(), b"")
    simulator.faults("* always refuse\n")
    wait_until(lambda: btcctl(place, "current", "--json").json["freshness"] == "stale", what="stale")
    loud, quiet = (btcctl(place, "current", *words) for words in ((), ("--quiet",)))
    assert loud.err.startswith("Failed to update value. Displaying last updated value from "), loud
    equal((quiet.out, quiet.err, quiet.status), (loud.out, "", 0))
    simulator.faults("")
    suspend(daemon.process)
    begun = time.monotonic()
    late = btcctl(place, "current", "--timeout", "300ms", "-q")
    daemon.process.send_signal(signal.SIGCONT)
    assert late.status == 69 and "no answer" in late.err and time.monotonic() - begun < 4, late
    equal(btcctl(place, "current", "--timeout", "0").status, 64)
    for command in (["btcctl", "--help"], ["btc-priced", "--print-default-config"], ["btc-priced", "--version"], ["btc-price-fleet", "--help"]):
        with open("/dev/full", "w") as full:
            written = subprocess.run([BINARIES / command[0], *command[1:]], stdout=full, stderr=subprocess.PIPE, text=True, timeout=20)
        equal((written.returncode, "cannot write: No space left on device" in written.stderr), (74, True), written)
    daemon.stop()


@scenario("a chart of any span, and of one that is over")
def _():
    place = Place()
    daemon = Daemon(place, Simulator("--seed", "1").urls, backfill=True)
    wait_until(lambda: any("USD were filled" in line and "minutes from" in line for line in daemon.lines), seconds=90, what=lambda: f"the history; {daemon.lines}")
    chart = lambda *words: btcctl(place, "chart", "--utc", *words)
    for words, title in ((["--span", "3d"], "  3d "), (["--span", "90m"], "  90m "), (["--since", "20h"], "  since "), (["--span", "2d", "--until", "1d"], "  2d to ")):
        drawn = chart(*words)
        equal(drawn.status, 0, drawn)
        assert title in drawn.out.splitlines()[0], drawn
    over = chart("--since", "3d", "--until", "2d").out.splitlines()[0]
    # It has no price of now.
    assert re.match(r"BTC/USD  \w{3} \d+, \d\d:\d\d to \w{3} \d+, \d\d:\d\d [+-]", over), over
    for words in (["--span", "soon"], ["--span", "30s"], ["--since", "1d", "--span", "1d"], ["--until", "1d", "--watch"], ["--since", "1d", "--until", "2d"]):
        equal(chart(*words).status, 64, words)
    daemon.stop()


main()
