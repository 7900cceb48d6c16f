#!/usr/bin/env python3
"""A new configuration for a running daemon, by SIGHUP."""

import os
import pty

from lib.btcpriced import *


class Configured(Logged):
    """A daemon with a configuration file and without a terminal, like a service."""

    def __init__(self, text="", **options):
        self.place, self.simulator = Place(), Simulator(**options)
        self.path = f"{self.place.state}/config.toml"
        self.write(text)
        # The addresses are in the file, so that a reload can change them.
        super().__init__(
            [BINARIES / "btc-priced", "--config", self.path, "--state-directory", self.place.state, "--runtime-directory",
             self.place.runtime], start_new_session=True)
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
    equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "no tick missed")
    equal({state["freshness"] for state in watch.states[1:]}, {"fresh"})
    daemon.stop()
    return f"{len(ticks)} ticks without a gap over three reloads"


@scenario("changed limits on clients apply after the reload")
def _():
    daemon = Configured()
    slow, watch = Varlink(daemon.place.socket), Watch(daemon.place, "--json")
    wait_until(lambda: len(watch.lines) > 1, what="lines")
    daemon.reload("clients.connections = 4\nclients.timeout-s = 1\n")
    slow.send(b"{")
    slow.socket.settimeout(5)
    equal(slow.socket.recv(1), b"", "the one that does not complete its call is closed")
    first, second, third = [Varlink(daemon.place.socket) for _ in range(3)]
    for connection in (first, second):
        connection.send({"method": "io.btcpriced.Price.WatchPrice", "more": True})
        connection.receive()
    try:
        third.call("io.btcpriced.Price.GetPrice")
        raise AssertionError("a fourth connection was served")
    except (EOFError, ConnectionError):
        pass
    second.close()
    limits = {limit["name"]: limit for limit in daemon.status()["clients"]["limits"]}
    equal((limits["connectionsPerUser"]["most"], limits["connectionsPerUser"]["hits"]), (3, 1))
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


main()
