#!/usr/bin/env python3
"""A virtual week and two virtual days of the shipped ticker, fallback, health, observer and reports. Only clock, loaders and store
differ; everything depends on a seed."""

import os
import textwrap

from lib.btcpriced import *


# `make test-deep` runs the whole week.
DAYS = int(os.environ.get("DAYS_OF_WEEK", "1"))


@scenario("a virtual day of a week of all faults of exchanges: no limit exceeded, no late tick, no ban made longer, constant memory")
def _():
    random = seeded()
    text = rehearse("week", random.randrange(1 << 32), DAYS)
    print(textwrap.indent(text, "    "))
    equal(number(text, r"ticks (\d+)"), DAYS * 86_400, "ticks")
    equal(number(text, r"skipped (\d+)"), 0, "skipped ticks")
    equal(number(text, r"latest (\d+) ms"), 0, "lateness")
    assert "OVER" not in text, "a limit was exceeded"
    equal(re.findall(r"deepened (\d+)", text), ["0"] * 5, "requests during a ban")
    # A tick in which the healthy source fails while another one recovers is lost. More than that would be an error.
    avoidable = number(text, r"avoidable (\d+)")
    assert avoidable <= 9 * DAYS + 6, f"{avoidable} stale ticks although somebody would have answered"
    if DAYS == 7:
        assert all(int(count) > 0 for count in re.findall(r"bans (\d+)", text)), "every exchange banned us at least once"
        memory = [int(kib) for kib in re.findall(r"memory (\d+) KiB", text)]
        # From the second day on, when all code has run once.
        assert memory[-1] - memory[1] <= 512, f"memory grew: {memory}"


@scenario("a virtual hour of all currencies: no tick of the first one missed, no limit exceeded, and a lying market is not shown")
def _():
    text = rehearse("currencies", seeded().randrange(1 << 32))
    print(textwrap.indent(text, "    "))
    equal(re.findall(r"USD ticks (\d+) fresh (\d+) wrong (\d+)", text), [("3600", "3600", "0")])
    equal(number(text, r"skipped (\d+)"), 0, "skipped ticks")
    assert "OVER" not in text, "a limit was exceeded"
    shares = []
    for code, ticks, fresh, wrong in re.findall(r"(?m)^(\w{3}) ticks (\d+) fresh (\d+) wrong (\d+)", text):
        equal(wrong, "0", code)
        shares.append(f"{code} {100 * int(fresh) / int(ticks):.1f} %")
        assert int(fresh) >= 0.98 * int(ticks), shares
    equal(len(shares), 7)
    return ", ".join(shares)


@scenario("a virtual day of total failure gives less than 50 lines")
def _():
    text = rehearse("failure", 1)
    equal(number(text, r"fresh (\d+)"), 0)
    assert "OVER" not in text, text
    lines = number(text, r"\nlines (\d+)")
    assert 0 < lines < 50, f"{lines} lines:\n{text}"
    return f"{lines} lines, 86400 failed ticks"


@scenario("a virtual day in which every second response is an error gives less than 50 lines")
def _():
    text = rehearse("alternate", 1)
    assert "OVER" not in text, text
    lines = number(text, r"\nlines (\d+)")
    assert 0 < lines < 50, f"{lines} lines:\n{text}"
    fresh = number(text, r"fresh (\d+)")
    return f"{lines} lines, fresh for {fresh} of 86400 ticks"


main()
