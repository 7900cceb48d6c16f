#!/usr/bin/env python3
"""Sixty ticks at one second."""

import os
import re
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403


@scenario("60 ticks at 1 s: 60 lines, no drift")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, level="debug")
    watch = Watch(place, "--json")
    wait_until(lambda: sum(state["tick"] > 0 for state in watch.states) >= 61, seconds=90, what="sixty ticks", every=0.05)
    daemon.stop()
    seen = [(state["tick"], state["observedBoottime"] / 1000) for state in watch.states if state["tick"] > 0][:61]
    equal([tick for tick, _ in seen], list(range(seen[0][0], seen[0][0] + 61)), "a line for every tick, each once")
    # From the first tick to the last it is sixty seconds, whatever each of them took.
    span = seen[-1][1] - seen[0][1]
    assert abs(span - 60) < 0.5, f"60 ticks took {span:.3f} s"
    late = [float(match[1]) for line in daemon.lines if (match := re.search(r"tick \d+ began ([\d.]+) ms late", line))]
    skipped = sum(int(match[1]) for line in daemon.lines if (match := re.search(r"(\d+) skipped before it", line)))
    assert len(late) >= 60, daemon.lines
    equal(skipped, 0, "skipped ticks")
    # Drift would show as lateness that grows; a deadline's does not.
    first, last = statistics.median(late[:20]), statistics.median(late[-20:])
    assert last - first < 100, f"the median lateness went from {first} to {last} ms"
    return (f"60 ticks in {span:.4f} s; lateness of {len(late)} ticks: median {statistics.median(late):.3f} ms, "
            f"maximum {max(late):.3f} ms")


main()
