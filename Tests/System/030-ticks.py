#!/usr/bin/env python3
"""Sixty ticks at one second, by the daemon's own record of them."""

import re
import statistics

from lib.btcpriced import *


@scenario("60 ticks at 1 s: 60 lines, no drift")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, level="debug")
    watch = Watch(place, "--json")
    wait_until(lambda: sum(state["tick"] > 0 for state in watch.states) >= 61, seconds=180, what="sixty ticks", every=0.05)
    daemon.stop()
    seen = [(state["tick"], state["observedBoottime"]) for state in watch.states if state["tick"] > 0 and state["freshness"] == "fresh"]
    numbers = [state["tick"] for state in watch.states if state["tick"] > 0]
    equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))), "a line for every tick, each once")
    late = {int(match[1]): float(match[2]) for line in daemon.lines if (match := re.search(r"tick (\d+) began ([\d.]+) ms late", line))}
    assert len(late) >= 60, daemon.lines
    # On a busy machine ticks may be skipped. Then the daemon reports how many.
    skipped, total = {}, 0
    for line in daemon.lines:
        if match := re.search(r"tick (\d+) began", line):
            more = re.search(r"(\d+) skipped before it", line)
            total += int(more[1]) if more else 0
            skipped[int(match[1])] = total
    # Each tick is due a multiple of a second after the first. Load only delays single ticks, so a drift shows in the earliest of many.
    ahead = [observed - 1000 * (tick + skipped[tick]) for tick, observed in seen]
    drift = min(ahead[-20:]) - min(ahead[:20])
    assert abs(drift) < 100, f"the ticks drift by {drift} ms in {len(ahead)} s"
    return (f"{len(seen)} ticks, drift {drift} ms; lateness: median {statistics.median(late.values()):.3f} ms, "
            f"maximum {max(late.values()):.3f} ms, {total} skipped")


main()
