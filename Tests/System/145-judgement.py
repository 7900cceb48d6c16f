#!/usr/bin/env python3
"""What is shown is true: days that happened, a month of faults drawn from them, and recorded prices, on virtual time under the
shipped ticker, fallback, health and judgement; and the same on the built binaries."""

import gzip
import os
import sys
import textwrap
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403

TABLE = ROOT / "docs" / "incidents.md"
DATA = SHARED / "data"


def rehearse(*arguments):
    done = subprocess.run([BINARIES / "rehearsal", *map(str, arguments)], capture_output=True, text=True, timeout=800)
    equal(done.returncode, 0, done.stderr)
    assert "failed:" not in done.stdout, done.stdout
    return done.stdout


def number(text, pattern):
    found = re.search(pattern, text)
    assert found, f"no {pattern!r} in {text}"
    return int(found.group(1))


@scenario("every day that happened passes as a scenario, and the table in docs says what it showed")
def _():
    text = rehearse("incidents")
    lines = [line for line in text.splitlines() if line.startswith(("ok | ", "FAILED | "))]
    rows = ["| " + " | ".join(line.split(" | ")[1:]) + " |" for line in lines]
    if os.environ.get("UPDATE_GOLDEN"):
        head = TABLE.read_text().partition("\n| ")[0]
        TABLE.write_text(f"{head}\n| when | what | expected | shown |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")
    failed = [line for line in text.splitlines() if not line.startswith("ok | ")][:-1]
    assert not failed, "\n".join(failed)
    missing = [row for row in rows if row not in TABLE.read_text()]
    assert not missing, "docs/incidents.md says otherwise (UPDATE_GOLDEN=1 writes it):\n" + "\n".join(missing)
    return text.splitlines()[-1]


@scenario("a virtual month of faults: nothing that is untrue of its market is shown")
def _():
    random = seeded()
    text = rehearse("month", random.randrange(1 << 32))
    print(textwrap.indent(text, "    "))
    total = next(line for line in text.splitlines() if line.startswith("total: "))
    equal(number(total, r"ticks (\d+)"), 30 * 86_400, "ticks")
    equal(number(total, r"untrue (\d+)"), 0, "values that are not the market's")
    equal(number(total, r"unwarned (\d+)"), 0, "USDT prices without a warning")
    for word in ("confirmed", "unconfirmed", "withheld"):
        assert number(total, rf" {word} (\d+)") > 0, f"none was {word}"
    return total


def recordings():
    """The recorded prices: name, seconds between ticks, and second and price of each."""
    for path in sorted(DATA.glob("lean/*trade.zip")):
        with zipfile.ZipFile(path) as archive:
            rows = [line.split(",") for line in archive.read(archive.namelist()[0]).decode().split()]
        yield path.stem, 60 if "_minute_" in path.name else 1, [(int(row[0]) / 1000, float(row[4])) for row in rows]
    trades = []
    for path in sorted(DATA.glob("hftbacktest_*.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                stamp, _, frame = line.partition(" ")
                if '"e":"trade"' in frame:
                    trades.append((int(stamp) / 1e9, float(json.loads(frame)["data"]["p"])))
    if trades:
        yield "hftbacktest, every trade of 11 minutes", 1, trades
    for path in DATA.glob("nautilus_kraken_*.json"):
        result = json.loads(path.read_text())["result"]
        rows = next(value for key, value in result.items() if key != "last")
        yield path.stem, 1, sorted((float(row[2]), float(row[0])) for row in rows)


@scenario("of recorded prices not one is withheld, although nobody can confirm them")
def _():
    if not DATA.is_dir():
        raise Skip(f"{DATA} is absent")
    with tempfile.TemporaryDirectory() as folder:
        for name, interval, prices in recordings():
            path = Path(folder, "prices")
            path.write_text("".join(f"{second} {price}\n" for second, price in prices))
            text = rehearse("replay", path, interval)
            print(f"    {name}: {text.strip()}")
            assert " stale 0 withheld 0" in text, text
            assert number(text, r"fresh (\d+)") > 500, text


main()
