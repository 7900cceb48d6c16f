#!/usr/bin/env python3
"""btcctl why, and btc-priced --diagnose, in broken worlds: what is said first, the exit status, and how long it takes."""

from lib.btcpriced import *
from lib.wallclock import WallClock

SOURCES = ("binance", "coinbase", "kraken", "bitstamp")
# Wanted: 6 s in the worst world. A busy machine may take longer; what hangs takes for ever.
LONGEST = 20
STATUS = {"well": 0, "degraded": 10, "noPrice": 1, "noDaemon": 69}
# By the socket: the seconds and the verdict of each call.
figures = {}


def why(place, state, *words, environment=None, subject=None, arguments=()):
    """What btcctl why says. `words`: parts of its verdict. `subject`: that of its first line."""
    begun = time.monotonic()
    done = btcctl(place, "why", "--json", *arguments, environment=environment, timeout=LONGEST)
    seconds = time.monotonic() - begun
    said = done.json["why"]
    equal((said["state"], done.status), (state, STATUS[state]), said)
    for word in words:
        contains(said["verdict"], word)
    assert len(said["lines"]) <= 10, said
    good = [line["good"] for line in said["lines"]]
    equal(good, sorted(good), "what is wrong comes first")
    for line in said["lines"]:
        equal(line["advice"] is None, line["good"], f"what is wrong says what to do: {line}")
    if subject:
        equal((said["lines"][0]["subject"], said["lines"][0]["good"]), (subject, state == "well"), said)
    figures.setdefault(place.socket, []).append((seconds, said["verdict"]))
    return said


def slowest(place):
    """The longest call at a place, and what it said."""
    seconds, verdict = max(figures[place.socket])
    return f"{seconds:.2f} s, {verdict}"


def shows(place, state, *words, **options):
    """Waits until btcctl why says that."""
    last = None

    def look():
        nonlocal last
        try:
            return why(place, state, *words, **options)
        except AssertionError as error:
            last = error
    return wait_until(look, seconds=40, every=0.3, what=lambda: f"{state} {words}; {last!r}")


def configured(place, urls, more=""):
    """A configuration file that requests no real exchange."""
    path = Path(place.state, "config.toml")
    lines = [f"sources = {json.dumps(SOURCES)}"] + [f'source.{name}.url = "{urls[name]}"' for name in SOURCES]
    path.write_text("\n".join(lines) + f"\n{more}")
    return str(path)


def named(pattern):
    """Addresses for all sources."""
    return {name: pattern.format(name=name, index=index) for index, name in enumerate(SOURCES, 1)}


def world(faults="", arguments=(), environment=None, prefix=(), urls=None, secure=False, place=None):
    simulator, place = Simulator("--seed", "1", secure=secure, faults=faults), place or Place()
    daemon = Daemon(
        place, urls or simulator.urls, *LOOKS_OFTEN, *arguments, sources=SOURCES, environment=environment, prefix=prefix)
    return place, simulator, daemon


@scenario("all is well", beside=True)
def _():
    place, simulator, daemon = world()
    settled(place)
    said = shows(place, "well", "All is well.", subject="price")
    contains(said["lines"], next(line for line in said["lines"] if line["subject"] == "price" and "another exchange agrees" in line["text"]))
    text = btcctl(place, "why").out
    assert re.match(r"All is well\.\n  \w+ +: ", text) and max(map(len, text.splitlines())) <= 80, text
    stop(daemon, simulator)
    return slowest(place)


@scenario("another user sees less, and is told of no fault", beside=True)
def _():
    if os.geteuid() != 0:
        raise Skip("another user needs root")
    place, folder = Place(), tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    for program in ("btcctl", "btc-priced"):
        shutil.copy(BINARIES / program, folder)
    hidden = Path(folder, "hidden")
    hidden.mkdir(mode=0o700)
    place.state = f"{hidden}/state"
    place.share()
    place, simulator, daemon = world(place=place)
    settled(place)
    config = Path(hidden, "config.toml")
    config.write_text("sources = [1]\n")
    wait_until(lambda: btcctl(place, "why").status == 0, what=lambda: btcctl(place, "why").out)
    for words in ((), ("--config", str(config))):
        done = subprocess.run(
            [f"{folder}/btcctl", "why", "--json", "--socket", place.socket, *words], capture_output=True, text=True, user="nobody",
            extra_groups=[], timeout=LONGEST)
        said = json.loads(done.stdout)["why"]
        assert all(line["good"] for line in said["lines"] if line["subject"] in ("disk", "configuration", "program")), said
        assert any("by this user: root sees more." in line["text"] for line in said["lines"]), said
    stop(daemon, simulator)


@scenario("no daemon: nothing is sent, and btc-priced --diagnose opens connections through the configured proxy alone", beside=True)
def _():
    place, simulator = Place(), Simulator("--seed", "1", faults="kraken always refuse")
    config = configured(place, simulator.urls)
    said = why(place, "noDaemon", "No daemon responds: ", arguments=("--config", config), subject="daemon")
    contains(said["lines"][0]["advice"], "systemctl start btc-priced")
    begun = time.monotonic()

    def diagnosed(*words):
        done = subprocess.run([BINARIES / "btc-priced", "--config", config, "--diagnose", *words], capture_output=True, text=True, timeout=LONGEST)
        checks = json.loads(done.stdout)["checks"]
        equal(done.returncode, 0 if all(check["good"] for check in checks) else 1)
        return [(check["text"], check["good"]) for check in checks if check["subject"] == "sources"]
    equal(diagnosed(), [("3 of 4 exchanges can be reached.", True), ("kraken: not reached: Connection refused", False)])
    equal(diagnosed("--offline"), [])
    equal(set(simulator.requests().values()), {0}, "nothing is requested")
    # Through the proxy, which is not there, nothing comes; an exchange at a name is not looked up.
    config = configured(place, named("https://{name}.invalid"), f'proxy.url = "{unused_url()}"\n')
    equal(diagnosed(), [(f"{', '.join(sorted(SOURCES))}: not reached: the proxy: Connection refused", False)])
    assert time.monotonic() - begun < LONGEST
    simulator.stop()
    return slowest(place)


@scenario("wrong rights, and the daemon's program is absent", beside=True)
def _():
    if os.geteuid() != 0:
        raise Skip("another user needs root")
    place, simulator, daemon = world()
    fresh(place)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    client = shutil.copy(BINARIES / "btcctl", folder)
    os.chmod(place.runtime, 0o700)
    begun = time.monotonic()
    done = subprocess.run(
        [client, "why", "--json", "--config", "/dev/null", "--socket", place.socket], capture_output=True, text=True, user="nobody", extra_groups=[],
        env={**os.environ, "PATH": "/usr/bin:/bin" if not shutil.which("btc-priced", path="/usr/bin:/bin") else ""}, timeout=LONGEST)
    said = json.loads(done.stdout)["why"]
    equal((done.returncode, said["state"]), (69, "noDaemon"))
    contains(said["verdict"], "Permission denied")
    contains(said["lines"][0]["advice"], "permissions of its directories")
    assert any(line["subject"] == "program" and "btc-priced can't be run: No such file" in line["text"] for line in said["lines"]), said
    figures[place.socket] = [(time.monotonic() - begun, said["verdict"])]
    stop(daemon, simulator)
    return slowest(place)


@scenario("a clock an hour off", beside=True)
def _():
    clock = WallClock(set_to=time.time() - 3600)
    place, simulator, daemon = world(environment=clock.environment)
    said = shows(place, "degraded", "This machine's clock is ", "behind the time that", environment=clock.environment, subject="clock")
    contains(said["lines"][0]["advice"], "timedatectl")
    stop(daemon, simulator)
    return slowest(place)


@scenario("an expired certificate, by a clock that is years ahead", beside=True)
def _():
    clock = WallClock(set_to=time.time() + 9 * 365 * 86400)
    simulator, place = Simulator("--seed", "1", secure=True), Place()
    daemon = Daemon(
        place, simulator.urls, "--tls-ca-file", simulator.authority, sources=SOURCES, environment=clock.environment)
    shows(place, "noPrice", "By this machine's clock, the certificate of all 4 exchanges is not valid", environment=clock.environment)
    stop(daemon, simulator)
    return slowest(place)


OFFLINE = {"prefix": ("unshare", "--net")}
# What is wrong, the verdict, and a part of the advice.
WORLDS = {
    "no name server": (
        {"urls": named("http://{name}.invalid"), **OFFLINE}, "noPrice", "The names of all 4 exchanges can't be resolved.",
        "getent hosts binance.invalid"),
    "no route": (
        {"urls": named("http://192.0.2.{index}"), **OFFLINE}, "noPrice",
        "No connection to all 4 exchanges: not reached: Network is unreachable", "ip route"),
    "a proxy that refuses": (
        {"urls": named("https://{name}.invalid"), "arguments": ("--proxy-url", unused_url())}, "noPrice",
        "Through the proxy, all 4 exchanges: not reached: the proxy: Connection refused", "proxy.url"),
    "a wrong certificate": (
        {"secure": True}, "noPrice", "The certificate of all 4 exchanges is not accepted", "ca-certificates"),
    "one exchange is banned": (
        {"faults": "binance always status 418 retry-after 900 body {}"}, "degraded",
        "binance: a limit or a ban: rate limited for 900 s: HTTP 418", "Wait until "),
    "all exchanges but one are dark": (
        {"faults": "kraken always dark\ncoinbase always dark\nbitstamp always dark"}, "degraded",
        "No response from coinbase, kraken and bitstamp", "blocked"),
}
for name, (what, state, verdict, advice) in WORLDS.items():
    @scenario(name, beside=True)
    def _(what=what, state=state, verdict=verdict, advice=advice):
        if "prefix" in what and os.geteuid() != 0:
            raise Skip("a network namespace needs root")
        place, simulator, daemon = world(**what)
        said = shows(place, state, verdict, subject="sources")
        contains(said["lines"][0]["advice"], advice)
        stop(daemon, simulator)
        return slowest(place)


@scenario("the disk is full", beside=True)
def _():
    if os.geteuid() != 0:
        raise Skip("mounting needs root")
    place = Place()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place.state], check=True)
    try:
        file = os.open(Path(place.state, "filler"), os.O_WRONLY | os.O_CREAT)
        try:
            while os.write(file, bytes(4096)):
                pass
        except OSError:
            os.close(file)
        place, simulator, daemon = world(place=place)
        settled(place)
        said = shows(place, "degraded", subject="disk")
        assert any(line["text"] == f"{place.state}: only 0 KiB are free." for line in said["lines"]), said
        stop(daemon, simulator)
        return slowest(place)
    finally:
        subprocess.run(["umount", "-l", place.state], check=True)


@scenario("a wrong configuration, and one that is wrong beside a running daemon", beside=True)
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    config = configured(place, simulator.urls, 'tick.interval-ms = "often"\n')
    why(place, "noDaemon", f"{config}, line 6: tick.interval-ms", arguments=("--config", config), subject="configuration")
    daemon = Daemon(place, simulator.urls, sources=SOURCES)
    settled(place)
    shows(place, "degraded", f"{config}, line 6: tick.interval-ms", arguments=("--config", config), subject="configuration")
    stop(daemon, simulator)
    return slowest(place)


def btcctl_at(client, place):
    """What btcctl why prints, run from another folder."""
    done = subprocess.run([client, "why", "--socket", place.socket], capture_output=True, text=True, timeout=LONGEST)
    # On 80 columns, a text may be broken anywhere.
    return " ".join(done.stdout.split())


@scenario("a program that hangs is killed: in time, and with btcctl by a signal", beside=True)
def _():
    place, simulator, daemon = world()
    settled(place)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    client = shutil.copy(BINARIES / "btcctl", folder)
    program = Path(folder, "btc-priced")
    for text in ("exec sleep 60", "exec >&-; exec sleep 60"):
        program.write_text(f"#!/bin/sh\necho $$ >{folder}/pid\n{text}\n")
        program.chmod(0o755)
        Path(folder, "pid").unlink(missing_ok=True)
        contains(btcctl_at(client, place), "takes too long")
        # On a busy machine it may have been killed before it wrote that.
        pid = Path(folder, "pid").read_text().strip() if Path(folder, "pid").exists() else ""
        assert not pid or not Path(f"/proc/{pid}").exists(), "the program runs on"
    for text, word in (("exit 64", "is not known to it"), ("echo {}; exit 3", "ended with status 3"), ("kill -ABRT $$", "was ended by signal 6")):
        program.write_text(f"#!/bin/sh\n{text}\n")
        contains(btcctl_at(client, place), word)
    program.write_text(f"#!/bin/sh\necho $$ >{folder}/pid2\nexec sleep 60\n")
    running = spawn([client, "why", "--socket", place.socket])
    pid = wait_until(lambda: Path(folder, "pid2").exists() and Path(folder, "pid2").read_text().strip(), what="the program")
    running.terminate()
    equal(ended(running), -signal.SIGTERM)
    assert not Path(f"/proc/{pid}").exists(), "the program runs on"
    stop(daemon, simulator)


@scenario("paused, contradicted, and a daemon that does not respond", beside=True)
def _():
    place, simulator, daemon = world()
    settled(place)
    equal(btcctl(place, "pause").status, 0)
    said = why(place, "noPrice", "The updates are paused", subject="updates")
    contains(said["lines"][0]["advice"], "btcctl resume")
    equal(btcctl(place, "resume").status, 0)
    simulator.faults("kraken always price x1.02\nbitstamp always price x1.02")
    shows(place, "degraded", "Unconfirmed: ", subject="price")
    suspend(daemon.process)
    why(place, "noDaemon", "no answer", subject="daemon")
    daemon.process.send_signal(signal.SIGCONT)
    stop(daemon, simulator)
    return slowest(place)


main()
