#!/usr/bin/env python3
"""What happened: btcctl events, GetEvents, /v1/events, over restarts."""

import signal
import sqlite3

from lib.btcpriced import *
from lib.gateway import Gateway

SOURCES = ("binance", "coinbase", "kraken", "bitstamp")


def events(place, *words):
    done = btcctl(place, "events", "--json", *words)
    equal(done.status, 0, done)
    return [json.loads(line) for line in done.out.splitlines()]


def written(place):
    """How many events are on the disk."""
    database = sqlite3.connect(f"file:{place.state}/history.sqlite3?mode=ro", uri=True, timeout=10)
    try:
        return database.execute("SELECT count(*) FROM event").fetchone()[0]
    finally:
        database.close()


def texts(place, *words):
    """The lines without their times."""
    return [re.sub(r"^.*?\d\d:\d\d:\d\d  +(?:-|for [\d.]+ \w+|[\d.]+ \w+)  +", "", line) for line in btcctl(place, "events", *words).out.splitlines()]


@scenario("who lied, by how much and how long; outages, limits, pauses and reloads are told, also after a restart", beside=True)
def _():
    place, simulator = Place(), replaying("68000")
    faults = "bitstamp always price 68000"

    def start():
        running = Daemon(
            place, simulator.urls, "--tick-interval-ms", "200", "--tick-budget-ms", "1000",
            "--history-write-every-s", "1", sources=SOURCES)
        settled(place)
        return running
    daemon = start()
    done = btcctl(place, "events")
    equal((done.status, done.out), (0, ""))
    assert done.err.startswith("Nothing is known to have happened since "), done

    def happens(fault, *wanted, seconds=20):
        simulator.faults(fault)
        wait_until(lambda: all(any(text in line for line in texts(place)) for text in wanted), seconds=seconds, what=lambda: f"{wanted} in {texts(place)}")
    begun = time.time()
    # 3 % too high, and then 4 %. What USDT costs moves the price that is shown.
    happens("coinbase always price 70040", "coinbase (USD) was outvoted, by up to ")
    assert 2.9 < float(events(place)[0]["worst"]) < 3.1, events(place)
    simulator.faults("coinbase always price 70720")
    event, = wait_until(lambda: (lambda found: found if float(found[0]["worst"]) > 3.9 else None)(events(place)), what=lambda: f"4 % in {texts(place)}")
    equal((event["kind"], event["source"], event["currency"], event["end"], event["count"]), ("outvoted", "coinbase", "USD", None, 1))
    assert begun - 1 <= event["start"] / 1000 <= time.time() and float(event["worst"]) < 4.1, event
    simulator.faults(faults)
    over = wait_until(lambda: next((event for event in events(place) if event["end"]), None), seconds=30, what=lambda: f"its end in {events(place)}")
    assert over["start"] == event["start"] and over["end"] > over["start"], over
    # A single failure of a moment is nothing; a lasting one is.
    happens("kraken always status 500", "kraken (USD) gave no price")
    happens("kraken always status 429", "kraken (USD) demanded a pause: a limit or a ban")
    happens("* always status 503", "no source gave a price in USD")
    outage = next(event for event in events(place) if event["kind"] == "outage")
    equal((outage["source"], outage["end"]), (None, None))
    # Killed in the middle of it, when it was written with the candle of a minute: it ends with the last minute.
    wait_until(lambda: written(place) == len(events(place)), seconds=90, every=0.5, what=lambda: f"{events(place)} on the disk")
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()
    simulator.faults(faults)
    daemon = start()
    wait_until(lambda: [event["end"] is not None for event in events(place) if event["kind"] == "outage"] == [True], what=lambda: f"its end in {events(place)}")
    simulator.faults("coinbase always status 500")
    wait_until(lambda: any(event["source"] == "coinbase" and not event["end"] for event in events(place)), what=lambda: texts(place))
    equal(btcctl(place, "source", "coinbase", "off").status, 0)
    wait_until(lambda: all(event["end"] for event in events(place) if event["source"] == "coinbase"), what=lambda: f"no event of a source that is off: {texts(place)}")
    simulator.faults(faults)
    equal(btcctl(place, "pause").status, 0)
    wait_until(lambda: "the updates were paused" in texts(place), what=lambda: texts(place))
    equal(btcctl(place, "resume").status, 0)
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "the configuration was read again" in texts(place), what=lambda: texts(place))
    kept = events(place)
    assert next(event for event in kept if event["kind"] == "paused")["end"], kept
    equal([event["start"] for event in kept], sorted(event["start"] for event in kept))
    # Over a stop, and by its parts.
    daemon.stop()
    daemon = start()
    equal([(event["kind"], event["start"], event["worst"]) for event in events(place)][:len(kept)], [(event["kind"], event["start"], event["worst"]) for event in kept])
    equal([event["kind"] for event in events(place, "--since", "2020-01-01", "--until", "2021-01-01")], [])
    assert {event["kind"] for event in events(place, "-c", "EUR")} <= {"paused", "reload"}, events(place, "-c", "EUR")
    for words, reason in ((["--since", "tomorrow"], ""), (["--since", "1h", "--until", "2h"], "--since is not before --until")):
        refused = btcctl(place, "events", *words)
        equal(refused.status, 64)
        assert reason in refused.err, refused
    equal(btcctl(place, "events", "-c", "XXX").status, 64)

    gateway = Gateway(place.socket)
    served = gateway.get("/v1/events?since=1h").json
    equal((len(served["events"]), served["next"]), (len(events(place)), None))
    by_kind = {event["kind"]: event for event in served["events"]}
    lie = by_kind["outvoted"]
    equal(lie["worst"], event["worst"])
    contains(lie["text"], "coinbase (USD) was outvoted, by up to ")
    assert lie["end"] > lie["start"] and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.000Z", lie["start"]), lie
    equal(gateway.get("/v1/events?since=bogus").status, 400)
    equal(gateway.get("/v1/events?currency=XXX").status, 404)
    equal(gateway.get(f"/v1/events?since=1h&after={served['events'][-1]['start']}").json["events"][-1], served["events"][-1])
    gateway.stop()
    daemon.stop()
    return "; ".join(event["text"] for event in served["events"])


@scenario("without a history there are no events, and the reason is given", beside=True)
def _():
    place, simulator = Place(), Simulator()
    daemon = Daemon(place, simulator.urls, "--history-enabled", "false")
    fresh(place)
    done = btcctl(place, "events")
    equal((done.status, done.out), (1, ""))
    assert "history" in done.err, done
    daemon.stop()


main()
