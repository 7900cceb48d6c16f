#!/usr/bin/env python3
"""The scenarios of the main job, as a user sees them: simulator, daemon and client as built. 130-faults.py has the faults of the primary,
030-ticks.py a line a second."""

import os
import re
import zlib
import time

from lib.btcpriced import *

FAILED = "Failed to update value."


def stale(place):
    def look():
        result = btcctl(place, "current", "--json")
        return result.json if result.out and result.json.get("freshness") == "stale" else None
    return wait_until(look, what="a stale price")


def local(state):
    moment = time.localtime(state["quote"]["timestamp"] / 1000)
    return f"{time.strftime('%b', moment)} {moment.tm_mday}, {time.strftime('%H:%M', moment)}"


def dollars(state):
    return f"${Decimal(state['quote']['value']):,.2f}"


def saved(path):
    with open(path) as file:
        return json.load(file)["quote"]["timestamp"]


def age_quote(place, seconds):
    """Makes the stored quote older by `seconds`, as if the daemon had not run since then and the machine had rebooted."""
    os.unlink(f"{place.runtime}/last-quote.json")
    path = f"{place.state}/last-quote.json"
    with open(path) as file:
        text = file.read()
    old = json.loads(text)["quote"]["timestamp"]
    text = text.replace(str(old), str(old - seconds * 1000))
    text = re.sub(r'"checksum" : "[0-9a-f]{8}"', '"checksum" : "00000000"', text)
    checksum = f"{zlib.crc32(text.encode()):08x}"
    with open(path, "w") as file:
        file.write(text.replace('"checksum" : "00000000"', f'"checksum" : "{checksum}"'))


@scenario("primary succeeds")
def _():
    place, simulator = Place(), replaying("68901.23000000")
    known_price(place, "68901.23000000")
    # A long hedge, so that a short delay on a busy machine does not cause another request.
    daemon = Daemon(place, simulator.urls, "--source-binance-hedge-ms", "800")
    state = fresh(place)
    equal((state["quote"]["value"], state["quote"]["source"], state["quote"]["market"]), ("68901.23", "binance", "BTC/USDT"))
    before = btcctl(place, "current", "--json").json
    result = btcctl(place, "current")
    after = btcctl(place, "current", "--json").json
    equal((result.status, result.err), (0, ""))
    assert result.out in {f"{local(s)} - $68,901.23\n" for s in (before, after)}, result
    equal(state["confirmation"], "confirmed", "the first price has a second source's word")
    asked = simulator.requests()["coinbase"]
    state = settled(place)
    equal(state["quote"]["source"], "binance")
    assert simulator.requests()["coinbase"] <= asked + 1, "requests to the fallback, the observer's apart"
    daemon.stop()


@scenario("both fail with a cached value (banner, cached value, its timestamp)")
def _():
    place, simulator, daemon = running()
    daemon.stop()
    # Three days and three hours, which can't be confused with the present.
    age_quote(place, 3 * 86400 + 3 * 3600)
    daemon = Daemon(place)
    state = stale(place)
    equal((state["ageMs"], state["ageIsEstimate"]), (None, True))
    result = btcctl(place, "current")
    equal(result.status, 0)
    equal(result.out, f"{local(state)} - {dollars(state)}\n")
    equal(result.err.splitlines()[0], f"{FAILED} Displaying last updated value from {local(state)} (3 days ago)")
    watch = Watch(place)
    wait_until(lambda: len(watch.lines) >= 3, what="three lines")
    without_seconds = lambda text: re.sub(r"(\d\d:\d\d):\d\d", r"\1", text)
    equal({without_seconds(line) for line in watch.lines}, {f"{local(state)} - {dollars(state)}"})
    banner = f"{FAILED} Displaying last updated value from {local(state)} (3 days ago)"
    equal([without_seconds(e) for e in watch.errors if not e.startswith(("Reason: ", "Not from "))], [banner])
    daemon.stop()


@scenario("both fail and nothing is cached (`-` and the message)")
def _():
    place = Place()
    daemon = Daemon(place)
    result = btcctl(place, "current")
    equal((result.status, result.out), (1, "-\n"))
    assert result.err.startswith(f"{FAILED}\nReason: "), result
    # A request that joins the first tick may find a limit that is used up for a second.
    diagnosis = f"{FAILED}\nReason: No exchange can be reached (Connection refused): is the network up?\n"
    wait_until(lambda: btcctl(place, "current").err == diagnosis, what=diagnosis)
    watch = Watch(place)
    wait_until(lambda: len(watch.lines) >= 3, what="three lines")
    equal(set(watch.lines), {"-"})
    equal([e for e in watch.errors if not e.startswith(("Reason: ", "Not from "))], [FAILED])
    result = btcctl(place, "current", "--json")
    equal((result.status, result.json["freshness"], result.json["quote"]), (1, "none", None))
    result = btcctl(place, "current", "--no-cache")
    equal((result.status, result.out), (1, ""))
    assert result.err.startswith((f"btcctl: {FAILED} binance: not reached: ", f"btcctl: {FAILED} No exchange can be reached ")), result
    daemon.stop()


@scenario("a failed save is logged, and the price is still updated")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls)
    before = fresh(place)
    # A folder that can't be replaced has the name of the file, because root can write everywhere else.
    os.unlink(f"{place.runtime}/last-quote.json")
    os.mkdir(f"{place.runtime}/last-quote.json")
    os.mkdir(f"{place.runtime}/last-quote.json/full")
    wait_until(lambda: daemon.said("The last price cannot be saved"), what="the log line")
    after = wait_until(
        lambda: (lambda s: s if s["tick"] > before["tick"] + 3 else None)(btcctl(place, "current", "--json").json),
        what="three more ticks")
    equal(after["freshness"], "fresh")
    equal(len([line for line in daemon.lines if "cannot be saved" in line]), 1, "log lines")
    # Soon after each tick the state directory receives the copy instead, which outlives a kill.
    newest = btcctl(place, "current", "--json").json
    substitute = f"{place.state}/last-quote.unsynced.json"
    wait_until(lambda: os.path.exists(substitute) and saved(substitute) >= newest["quote"]["timestamp"],
               what="the copy in the state directory")
    daemon.kill()
    daemon = Daemon(place)
    assert btcctl(place, "current", "--json").json["quote"]["timestamp"] >= newest["quote"]["timestamp"]
    daemon.stop()


main()
