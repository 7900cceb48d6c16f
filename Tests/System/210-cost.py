#!/usr/bin/env python3
"""Counted costs: the instructions of a tick and of a call, the lines of code that a tick runs, which its time follows, and wake-ups during a
pause, each with a threshold, so that a change that costs more is noticed. No times are measured."""

from lib.btcpriced import *
from lib.counting import count_of_call, count_of_tick

# A tenth above the counts at the time when they were set. Processors differ by a twentieth, and runs by a fortieth. A change that costs
# less lowers the thresholds; one that costs more gives the reason.
# The simulator's headers are as long as the exchanges', which is a tenth of a tick over plain HTTP.
OF_TICK = {"plain HTTP": (392_000, 6_100), "TLS": (425_000, 6_650)}
OF_CALL = 6_100


@scenario("the instructions and the lines of code of a tick stay below the thresholds")
def _():
    found = {name: count_of_tick(secure=name == "TLS") for name in OF_TICK}
    for name, (count, _, lines) in found.items():
        most = OF_TICK[name]
        assert count < most[0] and lines < most[1], f"{count:,.0f} instructions and {lines:,} lines a tick over {name}, at most {most}"
    return "; ".join(f"over {name} {count:,.0f}, {lines:,} lines, {blocks:.0f} blocks of memory" for name, (count, blocks, lines) in found.items())


@scenario("the instructions of a call stay below the threshold")
def _():
    count, blocks = count_of_call()
    assert count < OF_CALL, f"{count:,.0f} instructions a call, at most {OF_CALL:,}"
    return f"{count:,.0f} and {blocks:.2f} blocks of memory"


@scenario("a paused daemon sleeps: all threads together wake up at most twice a second", beside=True)
def _():
    place, simulator, daemon = running()
    equal(btcctl(place, "pause").status, 0)
    # Idle threads end some seconds later.
    time.sleep(8)
    seconds, before = 20, switches(daemon.process.pid)
    time.sleep(seconds)
    count = switches(daemon.process.pid) - before
    daemon.stop()
    # One wake-up is libdispatch's check of its threads, the other is Swift's and ours.
    # The start and the end of the span relative to them are random.
    assert count <= 2 * seconds + 5, f"{count} wake-ups in {seconds} s"
    return f"{count} wake-ups in {seconds} s"


main()
