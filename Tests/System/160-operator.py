#!/usr/bin/env python3
"""The operator's commands: status, sources, pause, resume, wait; and the pause of a daemon without clients.

The texts and JSON are in 160-operator.golden. UPDATE_GOLDEN=1 writes them again: read the difference before you commit it."""

import os
import shutil

from lib.btcpriced import *

golden = Golden(__file__)
ALL = ("binance", "cryptocompare", "coinbase", "bitstamp", "kraken")
GROUP = "btc-priced"


def shown(place, *arguments):
    """A command, its output, and its status."""
    done = btcctl(place, *arguments)
    lines = [f"$ btcctl {' '.join(arguments)}"] + done.out.splitlines()
    lines += [f"2> {line}" for line in done.err.splitlines()] + [f"-> {done.status}"]
    return normal("\n".join(lines), place) + "\n"


def uses(place):
    return {source["name"]: source["use"] for source in btcctl(place, "sources", "--json").json["sources"]}


PRICE = "68901.23"


# --- Sources in every state of health --------------------------------------------------------------------------------

LIMITED = '{"status":"error","reason":"exceeded rate limit","code":"400.002"}'
CASES = [
    ("all is well", "", ALL,
     {"binance": "current", "cryptocompare": "noKey", "coinbase": "ready", "bitstamp": "untried", "kraken": "untried"}),
    ("a fallback is looked at, a slow one", "", ("binance", "kraken"), {"binance": "current", "kraken": "slow"}),
    ("a fallback is looked at", "", ("binance", "coinbase"), {"binance": "current", "coinbase": "ready"}),
    ("a fallback gives nothing", "coinbase always status 500", ("binance", "coinbase"),
     {"binance": "current", "coinbase": "failing"}),
    ("refused and limited", f"binance always status 451 body {{}}\nbitstamp always status 400 body {LIMITED}",
     ("binance", "coinbase", "bitstamp"), {"binance": "refused", "coinbase": "current", "bitstamp": "limited"}),
    ("the primary rests", "binance always status 500", ("binance", "coinbase"),
     {"binance": "resting", "coinbase": "current"}),
    ("its rest is over", "binance always status 500", ("binance", "coinbase"),
     {"binance": "probing", "coinbase": "current"}),
    ("the only one can't be asked so often", "", ("kraken",), {"kraken": "current"}),
]


def define(name, faults, sources, wanted):
    @scenario(f"the sources: {name}")
    def _():
        simulator, place = replaying(PRICE, faults=faults), Place()
        if "binance" in sources:
            known_price(place, PRICE)
        # So rarely that the second look at the others is not before a busy machine has shown the first one.
        daemon = Daemon(place, simulator.urls, "--validation-observe-interval-ms", "15000", sources=sources)

        def seen():
            """The output, if the state is the expected one before and after it."""
            if uses(place) != wanted:
                return None
            text = shown(place, "sources") + (shown(place, "sources", "-v") if name == "all is well" else "")
            text += shown(place, "sources", "--json")
            return text if uses(place) == wanted else None

        text = wait_until(seen, what=lambda: f"{wanted}, not {uses(place)}")
        golden.check(f"sources: {name}", text)
        # The replies are as defined, with every member that is null while all is well.
        client = Varlink(place.socket)
        client.call("io.btcpriced.Price.ListSources")
        kept = client.call("io.btcpriced.Price.Retry")["parameters"]["kept"]
        assert kept or "limited" not in wanted.values(), "a wait that the exchange requires stays"
        daemon.stop()


for case in CASES:
    define(*case)


# --- The status ------------------------------------------------------------------------------------------------------

@scenario("the status while the daemon runs, is paused, is resumed, and can't store the price")
def _():
    simulator, place = replaying(PRICE), Place()
    known_price(place, PRICE)
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    golden.check("status: running", shown(place, "status") + shown(place, "status", "--json"))
    text = shown(place, "pause") + shown(place, "pause", "--json") + shown(place, "status")
    text += shown(place, "status", "--json") + shown(place, "current") + shown(place, "current", "--refresh")
    tick = btcctl(place, "current", "--json").json["tick"]
    golden.check("status: paused", text)
    time.sleep(1.5)
    equal(btcctl(place, "current", "--json").json["tick"], tick, "no tick while paused")
    golden.check(
        "status: resumed", shown(place, "resume") + shown(place, "wait", "--timeout", "5") + shown(place, "resume", "--json"))
    os.chmod(place.runtime, 0o755)
    # Both copies of the price, but not the history, which would be reported too at the end of a minute.
    for folder in (place.runtime, place.state):
        if os.path.exists(f"{folder}/last-quote.json"):
            os.rename(f"{folder}/last-quote.json", f"{folder}/gone")
        os.makedirs(f"{folder}/last-quote.json/x")
    wait_until(
        lambda: btcctl(place, "status", "--json").json["status"]["store"]["failure"], what="the store's failure")
    golden.check("status: the price can't be kept", shown(place, "status"))
    Varlink(place.socket).call("io.btcpriced.Price.GetStatus")
    daemon.stop()


@scenario("the status without a price, and with one from before the reboot")
def _():
    place = Place()
    daemon = Daemon(place, sources=("coinbase",))
    wait_until(lambda: btcctl(place, "status", "--json").json["status"]["ticks"]["failed"] >= 1, what="a failed tick")
    golden.check("status: no price", shown(place, "status") + shown(place, "status", "--json"))
    daemon.stop()


@scenario("with --watch a report is requested again every second")
def _():
    simulator, place = replaying(PRICE), Place()
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    # A chart has no JSON.
    for verb in (verb for verb in verbs() if has_option(verb, "--watch") and has_option(verb, "--json")):
        process = spawn(
            [BINARIES / "btcctl", verb, "--watch", "--json", "--socket", place.socket], stdout=subprocess.PIPE, text=True)
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert all(verb in line for line in lines), lines
        process.terminate()
        equal(process.wait(timeout=5), -signal.SIGTERM)
    daemon.stop()


# --- Waiting ---------------------------------------------------------------------------------------------------------

@scenario("wait returns within a tick of the first fresh price, even if the daemon starts later")
def _():
    simulator, place = replaying(PRICE, faults="* always refuse"), Place()
    daemon = Daemon(place, simulator.urls)
    waiting = spawn(
        [BINARIES / "btcctl", "wait", "--json", "--socket", place.socket], stdout=subprocess.PIPE, text=True)
    time.sleep(1.5)
    equal(waiting.poll(), None, "still waiting")
    simulator.faults("")
    state = json.loads(waiting.stdout.readline())
    returned = time.time()
    equal(waiting.wait(timeout=5), 0)
    equal(state["freshness"], "fresh")
    lag = returned - state["quote"]["timestamp"] / 1000
    assert lag < 1, f"{lag} s after the first fresh price"
    daemon.stop()
    waiting = spawn(
        [BINARIES / "btcctl", "wait", "--socket", place.socket], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "waiting: btc-priced can't be reached" in waiting.stderr.readline()
    daemon = Daemon(place, simulator.urls)
    assert "$68,901.23" in waiting.stdout.readline()
    equal(waiting.wait(timeout=5), 0)
    daemon.stop()
    return f"{lag * 1000:.0f} ms after the observation"


@scenario("wait ends at its time-out with the reason")
def _():
    place = Place()
    daemon = Daemon(place, sources=("coinbase",))
    begun = time.monotonic()
    done = btcctl(place, "wait", "--timeout", "1.2")
    took = time.monotonic() - begun
    equal(done.status, 75)
    assert 1.2 <= took < 2.2, took
    assert done.err.startswith("btcctl: No fresh price within 1.2 s: coinbase: not reached"), done.err
    equal(btcctl(place, "wait", "--timeout", "0").status, 75)
    found = btcctl(place, "wait", "--timeout", "0.5", "--json").json
    equal((found["error"], found["exitStatus"]), ("timedOut", 75))
    daemon.stop()
    return f"{took:.2f} s"


# --- Idle ------------------------------------------------------------------------------------------------------------

@scenario("a daemon without clients stops its ticks, and the first client resumes them at once")
def _():
    simulator, place = replaying(PRICE), Place()
    known_price(place, PRICE)
    daemon = Daemon(place, simulator.urls, "--tick-pause-when-idle", "2")
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 4, what="four lines")
    equal({state["freshness"] for state in watch.states[1:]}, {"fresh"}, "a watcher keeps it going")
    watch.process.terminate()
    ticking = lambda: btcctl(place, "status", "--json").json["status"]["ticking"]
    wait_until(lambda: ticking() == "idle", what="the standstill")
    golden.check("status: idle", shown(place, "status"))
    before = simulator.requests()["binance"]
    time.sleep(2)
    equal(simulator.requests()["binance"], before, "no request while nobody asks, and to be asked how it is wakes nobody")
    equal(ticking(), "idle")
    found = btcctl(place, "current", "--json").json
    equal((found["freshness"], found["failure"], found["ticking"]), ("stale", "paused", "idle"))
    wait_until(lambda: btcctl(place, "current", "--json").json["freshness"] == "fresh", seconds=1, what="a tick")
    wait_until(lambda: ticking() == "idle", what="the standstill")
    equal(btcctl(place, "current", "--refresh", "--json").json["freshness"], "fresh", "a refresh gets a current one")
    wait_until(lambda: ticking() == "idle", what="the standstill")
    time.sleep(1.2)
    state = Varlink(place.socket).call("io.btcpriced.Price.GetPrice", maxAgeMs=1000)["parameters"]["state"]
    equal((state["freshness"], state["ticking"]), ("fresh", "running"), "a limit for the age gets the tick that it has started")
    daemon.says("No client needs a price: the ticks stop")
    daemon.stop()


# --- Permission ------------------------------------------------------------------------------------------------------

def for_everybody():
    """A folder with btcctl: the binaries may be in one that other users can't enter."""
    public = tempfile.mkdtemp(prefix="btc-priced-public-", dir="/tmp")
    atexit.register(shutil.rmtree, public, ignore_errors=True)
    os.chmod(public, 0o755)
    # By another process: one that this one forks meanwhile would keep the file open for writing.
    subprocess.run(["cp", BINARIES / "btcctl", public], check=True)
    return public


def as_user(folder, uid, gid, groups, place, *arguments):
    groups = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
    done = subprocess.run(
        ["setpriv", f"--reuid={uid}", f"--regid={gid}", *groups, f"{folder}/btcctl", *arguments, "--socket", place.socket],
        capture_output=True, text=True, timeout=20, cwd="/")
    return done.returncode, done.stdout + done.stderr


@scenario("pause and resume are for root and the group, primary or supplementary, and not for other users")
def _():
    if os.geteuid() != 0:
        raise Skip("other users are root's to become")
    # The daemon gets its own list of groups, so that the machine's is not changed.
    groups = Path("/etc/group").read_text()
    gid = 64_321
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        # More members than the first buffer for them holds.
        members = ",".join(f"member{number}" for number in range(10_000))
        file.write(re.sub(rf"(?m)^{GROUP}:.*\n", "", groups) + f"{GROUP}:x:{gid}:{members}\n")
    atexit.register(os.unlink, file.name)
    os.chmod(file.name, 0o644)
    simulator, place = replaying(PRICE), Place()
    os.chmod(place.runtime, 0o755)
    daemon = Daemon(place, simulator.urls, prefix=["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"', file.name])
    fresh(place)
    public = for_everybody()
    results = {}
    for name, identity in {
        "root": (0, 0, []), "primary": (4001, gid, []), "supplementary": (4002, 4002, [7, gid, 9]),
        "many": (4003, 4003, [*range(5000, 5300), gid]), "stranger": (4004, 4004, [7, 9]),
    }.items():
        for verb in ("pause", "resume"):
            status, said = as_user(public, *identity, place, verb)
            results[name, verb] = status
            if status == 77:
                assert "Only root, the daemon's own user and the group btc-priced may do that" in said, said
    equal(results, {(name, verb): 77 if name == "stranger" else 0
                    for name in ("root", "primary", "supplementary", "many", "stranger") for verb in ("pause", "resume")})
    status, said = as_user(public, 4004, 4004, [], place, "pause", "--json")
    golden.check("a stranger", f"{said}-> {status}\n")
    equal(as_user(public, 4004, 4004, [], place, "status")[0], 0, "everybody may ask")
    daemon.says("Paused by user 4002: the ticks are stopped until 'btcctl resume'.")
    assert not daemon.said("Paused by user 4004")
    daemon.stop()


@scenario("while paused, no client of any user causes a request, and each gets the reason", beside=True)
def _():
    if os.geteuid() != 0:
        raise Skip("other users are root's to become")
    simulator, place = replaying(PRICE), Place()
    os.chmod(place.runtime, 0o755)
    daemon = Daemon(place, simulator.urls, sources=("coinbase", "bitstamp"), backfill=True)
    fresh(place)
    for step in ("days", "hours", "minutes"):
        # The backfill's requests have ended then.
        daemon.says(f" {step} from ")
    public = for_everybody()
    stranger = lambda *arguments: as_user(public, 4004, 4004, [], place, *arguments)
    equal(stranger("current", "--refresh")[0], 0)
    equal(btcctl(place, "pause").status, 0)
    time.sleep(1)
    before = simulator.requests()
    line = r"\w{3} \d+, \d\d:\d\d - \$68,901\.23\n"
    status, said = stranger("current", "--refresh")
    assert status == 0 and re.fullmatch(line + "Paused. Displaying last updated value from .*\n", said), (status, said)
    status, said = stranger("current", "--no-cache")
    assert status == 1 and "paused" in said.lower(), (status, said)
    status, said = stranger("at", "100d", "--fetch")
    assert status == 0 and "The minute could not be requested: the ticks are paused." in said, (status, said)
    client = Varlink(place.socket)
    reply = client.call("io.btcpriced.Price.GetPrice", cachePolicy="noCache")
    equal((reply["error"], reply["parameters"]), ("io.btcpriced.Price.FetchFailed", {"reason": "paused"}))
    client.close()
    time.sleep(1)
    equal(simulator.requests(), before, "requests")
    btcctl(place, "resume")
    fresh(place)
    status, said = stranger("current", "--refresh")
    assert status == 0 and "Paused" not in said, (status, said)
    daemon.stop()


main()
