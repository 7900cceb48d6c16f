#!/usr/bin/env python3
"""The daemon's configuration and its start."""

import os

from lib.btcpriced import *


def btc_priced(*arguments, environment=None):
    return Result(subprocess.run(
        [str(BINARIES / "btc-priced"), *arguments], capture_output=True, text=True, timeout=20,
        env={**os.environ, **(environment or {})}))


def with_file(text, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        result = btc_priced("--config", file.name, *arguments)
        result.err = result.err.replace(file.name, "FILE")
        result.out = result.out.replace(file.name, "FILE")
        return result


@scenario("--check-config, --print-config, --version and --help print the right text")
def _():
    equal(repr(with_file("tick.interval-ms = 2000\n", "--check-config")),
          repr(Result(subprocess.CompletedProcess([], 0, "The configuration is good.\n", ""))))
    result = with_file("[tick]\ninterval-ms = 2000\n", "--print-config", "--log-level", "debug")
    equal((result.status, result.err), (0, ""))
    for line in ("tick.interval-ms = 2000  # FILE, line 2", 'log.level = "debug"  # the command line, --log-level',
                 'source.binance.url = "https://api.binance.com"  # the default'):
        assert line in result.out.splitlines(), result.out
    again = with_file(result.out.replace("FILE, line 2", "x"), "--check-config")
    equal(again.status, 0, again)
    equal(btc_priced("--version").out, f"btc-priced {FULL_VERSION}\n")
    assert "--print-config" in btc_priced("--help").out


@scenario("an invalid configuration gives exit status 78, with file, line, key, value and the allowed values")
def _():
    for text, expected in (
            ("tick.interval-ms = 5\n", "FILE, line 1: tick.interval-ms = 5: must be a whole number from 100 to 3600000"),
            ("[tick]\nintervall-ms = 5\n", "FILE, line 2: unknown key tick.intervall-ms (its value is 5)"),
            ("tick = = 5\n", "FILE, line 1, column "),
            ("a = 1979-05-27T:32:00\n", "FILE, line 1, column 5: a value that is not quoted, and neither a number nor true or false"),
            ("a = [1, }\n", "FILE, line 1, column 9: no value where one is expected"), ("[]\n", "FILE, line 1, column 2: a table without a name"),
            ("a-1 = 19so-05-ba 1 = true\n", "FILE, line 1, column 7: a value that is not quoted"),
            ("[[a]]\n", "FILE, line 1: an array of tables, which has no meaning here"),
            ('source.binance.stream-url = "wss://:443:443"\n', "must be an address like wss://host")):
        for arguments in ([], ["--check-config"]):
            result = with_file(text, *arguments)
            equal((result.status, result.out), (78, ""), text)
            assert expected in result.err and result.err.count("\n") == 1, result
    equal(btc_priced("--config", "/none.toml").status, 78)
    result = btc_priced(environment={"BTC_PRICED_TICK_INTERVAL_MS": "abc"})
    equal(result.status, 78)
    assert "BTC_PRICED_TICK_INTERVAL_MS" in result.err, result
    equal(btc_priced("--no-such-flag").status, 64)
    place = Place()
    result = btc_priced("--state-directory", place.state, "--runtime-directory", place.runtime, "--tls-ca-file", "/etc/hostname")
    equal(result.status, 78)


@scenario("a warning about the configuration is printed by --check-config, and by the daemon, which starts")
def _():
    result = btc_priced("--check-config", environment={"BTC_PRICED_PORT": "tcp://10.43.0.7:8340"})
    equal((result.status, result.out, result.err), (
        0, "The configuration is good.\n",
        "btc-priced: warning: the environment: BTC_PRICED_PORT is not a setting of btc-priced, and is ignored\n"))
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, "--currency-usdt", "refuse", sources=("kraken",))
    daemon.says('warning: the command line, --currency-usdt: currency.usdt = "refuse" has gone, and now means "warn"; to use no price')
    fresh(place)
    daemon.stop()


@scenario("an error in a command line shows its control characters, and does not send them to the terminal")
def _():
    for name in ("btc-priced", "btcctl", "btc-price-http", "btc-price-fleet", "btc-price-alert", "exchange-simulator"):
        done = subprocess.run([BINARIES / name, "--\x1b[31mred"], capture_output=True, text=True, timeout=20)
        equal(done.returncode, 64, name)
        assert "\\u{1b}[31mred" in done.stderr and "\x1b" not in done.stderr + done.stdout, done


@scenario("a daemon whose standard error has no reader runs and stops in order")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    reader, writer = os.pipe()
    os.close(reader)
    daemon = Daemon(place, simulator.urls, preexec_fn=lambda: os.dup2(writer, 2))
    os.close(writer)
    fresh(place)
    equal(daemon.stop()[0], 0)


@scenario("a second daemon with the same state directory reports the running one and ends, without harm")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls)
    result = btc_priced("--state-directory", place.state, "--runtime-directory", place.runtime)
    equal(result.status, 1)
    assert f"already running, pid {daemon.process.pid}" in result.err, result
    # Another state directory, the same socket: the daemon that serves it is not replaced.
    other = Place()
    result = btc_priced("--state-directory", other.state, "--runtime-directory", other.runtime, "--socket-path", place.socket)
    equal(result.status, 1)
    assert "another program listens at" in result.err, result
    wait_until(lambda: btcctl(place, "current").status == 0, what="the first one's price")
    daemon.stop()


@scenario("a user's own daemon uses the user's directories, and btcctl finds it")
def _():
    simulator = Simulator("--seed", "1")
    if os.geteuid() != 0:
        raise Skip("becoming another user takes root")
    uid = 54321
    home = tempfile.mkdtemp(prefix="btc-priced-home-")
    # Binaries in a folder that the other user may not enter would not start.
    binaries = tempfile.mkdtemp(prefix="btc-priced-bin-")
    for folder in (home, binaries):
        os.chmod(folder, 0o755)
        atexit.register(shutil.rmtree, folder, True)
    for name in ("btc-priced", "btcctl"):
        shutil.copy(BINARIES / name, binaries)
    os.chown(home, uid, uid)
    fallback, logged_in = f"/tmp/btc-priced-{uid}", f"/run/user/{uid}"
    for runtime in (f"{home}/run", logged_in, None):
        environment = {**BARE, "HOME": home, "TZ": "UTC"}
        if runtime:
            os.makedirs(runtime, 0o700)
            os.chown(runtime, uid, uid)
            atexit.register(shutil.rmtree, runtime, True)
        elif os.path.exists(logged_in):
            shutil.rmtree(logged_in)
        if runtime == f"{home}/run":
            environment["XDG_RUNTIME_DIR"] = runtime
        daemon = spawn(
            [f"{binaries}/btc-priced", "--source-binance-url", simulator.urls["binance"]], user=uid, group=uid,
            env=environment, stderr=subprocess.PIPE, text=True)

        def current():
            return subprocess.run([f"{binaries}/btcctl", "current", "--json"], user=uid, group=uid, env=environment,
                                  capture_output=True, text=True)
        wait_until(lambda: '"fresh"' in current().stdout, what="a price")
        folder = f"{runtime}/btc-priced" if runtime else fallback
        assert os.path.exists(f"{folder}/{SOCKET_NAME}")
        if not runtime:
            equal(os.stat(fallback).st_mode & 0o777, 0o700)
        daemon.terminate()
        equal(daemon.wait(timeout=10), 0)
        assert os.path.exists(f"{home}/.local/state/btc-priced/last-quote.json")
    # Another user has created the name in /tmp.
    shutil.rmtree(fallback)
    os.mkdir(fallback)
    done = subprocess.run([f"{binaries}/btc-priced"], user=uid, group=uid, env=environment, capture_output=True, text=True)
    equal(done.returncode, 1)
    assert "belongs to somebody else" in done.stderr, done.stderr
    # A client does not ask a daemon there, nor one in another user's $XDG_RUNTIME_DIR, as with sudo -E.
    for place, own in ((fallback, {}), (home, {"XDG_RUNTIME_DIR": home})):
        who = 0 if own else uid
        done = subprocess.run([f"{binaries}/btcctl", "current"], user=who, group=who, env={**environment, **own}, capture_output=True, text=True)
        owner = os.stat(place).st_uid
        assert done.returncode == 69 and f"; {place} belongs to user {owner}, and is not used)" in done.stderr, done
    os.rmdir(fallback)


@scenario("a damaged quote is set aside and reported, and does not prevent the start")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    for folder in (place.state, place.runtime):
        with open(f"{folder}/last-quote.json", "w") as file:
            file.write('{"checksum": "half a fi')
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    equal(len([line for line in daemon.lines if "is damaged" in line and ".corrupt" in line]), 2, daemon.lines)
    assert os.path.exists(f"{place.state}/last-quote.json.corrupt")
    daemon.stop()


@scenario("an unusable state directory is reported, and the price is still updated")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    os.rmdir(place.state)
    with open(place.state, "w"):
        pass
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    daemon.says("cannot lock")
    wait_until(lambda: daemon.said("The last price cannot be saved"), what="the line in the log")
    daemon.stop()
    os.unlink(place.state)


@scenario("a stop during the start is orderly")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    for delay in range(0, 40, 2):
        daemon = Daemon(place, simulator.urls, wait=False)
        time.sleep(delay / 1000)
        status, seconds = daemon.stop()
        # Very early in the start, the signal's default still ends the process, which has nothing to clean up then.
        assert status == 0 or (status == -signal.SIGTERM and not daemon.lines), (delay, status, daemon.lines)
        assert not os.path.exists(place.socket), f"a socket was left after {delay} ms"


main()
