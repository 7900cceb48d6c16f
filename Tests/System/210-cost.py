#!/usr/bin/env python3
"""What it costs, counted: instructions of a tick and of a call, and wake-ups while it is paused, with a threshold on each, so that a change
that makes it dearer says so. No times are measured."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403
from counting import count_of_call, count_of_tick  # noqa: E402

# A tenth above the counts when they were set (the queue before the journal, systemd and the disk made a tick dearer by a twentieth:
# 485,000 and 510,000 before): processors differ by a twentieth, and runs by a fortieth. The history, with the day in each state,
# made a tick dearer by a twentieth, and the look for streams by a fiftieth: 410,000 and 430,000 before. Several currencies made a tick dearer by a seventh and a call by a sixth: 360,000 and 380,000, 6,300
# before. They were 265,000 and 285,000 while a tick had byte-level shortcuts, a queue and
# a timer of its own and a linker order file. A change that makes it cheaper sets them lower; one that makes it dearer says why.
OF_TICK = {"plain HTTP": 510_000, "TLS": 522_000}
OF_CALL = 8_000


@scenario("a tick stays as cheap as it is")
def _():
    found = {name: count_of_tick(secure=name == "TLS") for name in OF_TICK}
    for name, (count, _) in found.items():
        assert count < OF_TICK[name], f"{count:,.0f} instructions a tick over {name}, at most {OF_TICK[name]:,}"
    return ", ".join(f"{count:,.0f} and {blocks:.0f} blocks of memory over {name}" for name, (count, blocks) in found.items())


@scenario("a call stays as cheap as it is")
def _():
    count, blocks = count_of_call()
    assert count < OF_CALL, f"{count:,.0f} instructions a call, at most {OF_CALL:,}"
    return f"{count:,.0f} and {blocks:.2f} blocks of memory"


@scenario("paused, it sleeps: at most two wake-ups a second, of all threads together", beside=True)
def _():
    place, simulator, daemon = running()
    equal(btcctl(place, "pause").status, 0)
    # The threads that have nothing more to do end some seconds later.
    time.sleep(8)
    seconds, before = 20, switches(daemon.process.pid)
    time.sleep(seconds)
    count = switches(daemon.process.pid) - before
    daemon.stop()
    # One is libdispatch's look at its threads, the other Swift's and ours.
    # Where the span begins and ends among them is chance.
    assert count <= 2 * seconds + 5, f"{count} wake-ups in {seconds} s"
    return f"{count} wake-ups in {seconds} s"


main()
