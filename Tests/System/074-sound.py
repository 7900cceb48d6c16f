#!/usr/bin/env python3
"""Impossible settings and states end with an error that names the remedy, and no client waits in vain."""

import os
import resource
import sys

from lib.btcpriced import *

PRICE = "io.btcpriced.Price"


@scenario("the interface, the packages and the requests name no domain of another project")
def _():
    place, simulator, daemon = running()
    info = Varlink(place.socket).call("org.varlink.service.GetInfo")["parameters"]
    equal(info["url"], "man:btc-priced(8)")
    daemon.stop()
    for path in [*ROOT.glob("packaging/**/*"), *ROOT.glob("docs/*"), *ROOT.glob("*.md"), *ROOT.glob("systemd/**/*")]:
        if path.is_file():
            text = path.read_text(errors="replace").replace("io.btcpriced", "")
            assert "btcpriced." not in text and "Homepage:" not in text, path


@scenario("a daemon whose socket or runtime directory is removed ends with an error within seconds")
def _():
    for remove in (lambda place: os.unlink(place.socket), lambda place: shutil.rmtree(place.runtime)):
        place, simulator = Place(), replaying("68901.23")
        daemon = Daemon(place, simulator.urls)
        fresh(place)
        remove(place)
        equal(daemon.process.wait(timeout=10), 1)
        daemon.says("The socket's file was removed or replaced")
        os.makedirs(place.runtime, exist_ok=True)
        again = Daemon(place, None)
        equal(btcctl(place, "current", "--raw").out, "68901.23\n", "the price is kept")
        again.stop()


@scenario("a FIFO in the place of a file neither hangs the daemon nor loses a save")
def _():
    place, simulator = Place(), replaying("68901.23")
    for folder in (place.runtime, place.state):
        os.mkfifo(f"{folder}/last-quote.json.new")
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    wait_until(lambda: Path(place.runtime, "last-quote.json").is_file(), what="the save")
    status, seconds = daemon.stop()
    equal(status, 0)
    assert Path(place.state, "last-quote.json").is_file(), "not kept over a reboot"
    for folder in (place.runtime, place.state):
        os.unlink(f"{folder}/last-quote.json")
        os.mkfifo(f"{folder}/last-quote.json")
    os.mkfifo(f"{place.state}/config.toml")
    done = subprocess.run([BINARIES / "btc-priced", "--config", f"{place.state}/config.toml", "--check-config"],
                          capture_output=True, text=True, timeout=10)
    equal(done.returncode, 78)
    assert "not a regular file" in done.stderr, done.stderr
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    equal(daemon.stop()[0], 0)


@scenario("one directory for state and runtime, a NUL in a path, and too few descriptors are refused at the start")
def _():
    place = Place()

    def refused(*arguments, status=78, **options):
        done = subprocess.run([BINARIES / "btc-priced", "--sources", "binance", *arguments], capture_output=True, text=True,
                              timeout=10, **options)
        equal(done.returncode, status, done.stderr)
        return done.stderr
    same = ["--state-directory", place.state, "--runtime-directory", place.state]
    assert "set two different directories" in refused(*same, "--check-config")
    link = f"{place.runtime}/link"
    os.symlink(place.state, link)
    assert "the same folder" in refused("--state-directory", place.state, "--runtime-directory", link, status=1)
    path = f"{place.state}/config.toml"
    Path(path).write_text('state.directory = "/tmp/a\\u0000b"\n')
    assert "a NUL character" in refused("--config", path, "--check-config")
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (15, 15))
    text = refused("--state-directory", place.state, "--runtime-directory", place.runtime, status=1, preexec_fn=limit)
    assert "only 15 files may be open" in text and "ulimit -n" in text, text


@scenario("one user's calls leave room for another's")
def _():
    if os.geteuid() != 0:
        raise Skip("another user is root's to be")
    place, simulator = Place(), replaying("68901.23")
    for folder in (place.runtime, place.state):
        os.chmod(folder, 0o755)
    daemon = Daemon(
        place, simulator.urls, "--tick-interval-ms", "5000", "--tick-budget-ms", "5000", "--source-binance-timeout-ms", "5000",
        "--source-coinbase-timeout-ms", "5000")
    fresh(place)
    simulator.faults("* always dark")
    # A user whose fetches get no response.
    greedy = spawn([sys.executable, "-c", """
import os, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
os.setuid(65534)
connections = []
# Three quarters of 4096, and some more.
for _ in range(3200):
    c = socket.socket(socket.AF_UNIX); c.connect(sys.argv[1]); connections.append(c)
end = time.monotonic() + 20
while time.monotonic() < end:
    for c in connections:
        try:
            c.setblocking(False)
            c.send(b'{"method":"io.btcpriced.Price.GetPrice","parameters":{"cachePolicy":"noCache"}}\\0')
            c.recv(65536)
        except OSError:
            pass
    time.sleep(0.5)
""", place.socket])

    def refused():
        limits = Varlink(place.socket).call(f"{PRICE}.GetStatus")["parameters"]["status"]["clients"]["limits"]
        return next(limit["hits"] for limit in limits if limit["name"] == "pendingCalls")
    wait_until(lambda: refused() > 0, what="the limit", every=0.1)
    for _ in range(20):
        reply = Varlink(place.socket).call(f"{PRICE}.GetStatus")
        assert "error" not in reply, reply
        time.sleep(0.1)
    hit = refused()
    greedy.kill()
    daemon.stop()
    return f"20 statuses answered, {hit} of the other user's calls refused"


@scenario("the conversion of USDT prices without a source of the rate causes a warning at the start")
def _():
    place, simulator = Place(), replaying("68901.23")
    daemon = Daemon(place, simulator.urls, "--currency-usdt", "convert", sources=("binance",))
    wait_until(lambda: daemon.said("no configured source has the rate of USDT"), what="the warning")
    daemon.stop()
    place = Place()
    daemon = Daemon(place, simulator.urls, "--currency-usdt", "convert", sources=("binance", "kraken"))
    fresh(place)
    assert not daemon.said("no configured source has the rate of USDT"), daemon.lines
    daemon.stop()


@scenario("the test library resets an ignored hang-up signal, as after nohup(1)")
def _():
    code = "import sys; sys.path.insert(0, sys.argv[1]); from lib.btcpriced import *; print(signal.getsignal(signal.SIGHUP).value)"
    done = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    equal(done.stdout.strip(), str(signal.SIG_DFL.value), done)


main()
