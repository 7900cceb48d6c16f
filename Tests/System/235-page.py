#!/usr/bin/env python3
"""The gateway's page in a real browser: Debian's chromium without a window."""

import os

from lib.btcpriced import *
from lib.gateway import Gateway


class Browser:
    def __init__(self, url, folder):
        python = os.environ.get("VARLINK_PYTHON", str(ROOT / ".build/venv/bin/python3"))
        if not shutil.which("chromium") or subprocess.run([python, "-c", "import axe_playwright_python"], capture_output=True).returncode:
            raise Skip("chromium or playwright is absent")
        self.process = spawn([python, ROOT / "Tests/System/lib/browser.py", url, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)

    def tell(self, command, replies=1):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        found = [json.loads(self.process.stdout.readline()) for _ in range(replies)]
        for reply in found:
            assert reply["ok"], reply
        return found if replies > 1 else found[0]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)


@scenario("the page shows the price, becomes stale and recovers with the daemon, is usable by keyboard, and loads nothing from elsewhere")
def _():
    simulator = replaying("68901.23")
    place = Place()
    arguments = ("--currencies", "USD,EUR,JPY", "--currency-EUR-interval-ms", "1000", "--currency-JPY-interval-ms", "1000")
    sources = ("binance", "coinbase", "bitstamp", "kraken")
    daemon = Daemon(place, simulator.urls, *arguments, sources=sources, backfill=True)
    for code in ("USD", "EUR", "JPY"):
        wait_until(lambda: btcctl(place, "current", "-c", code, "--json").json["freshness"] == "fresh", what=code)
    wait_until(lambda: any("USD were filled" in line and "minutes from" in line for line in daemon.lines), seconds=90, what=lambda: f"the history; {daemon.lines}")
    time.sleep(5)
    gateway = Gateway(place.socket)
    folder = os.environ.get("PICTURES") or tempfile.mkdtemp(prefix="btc-priced-page-")
    begun = time.monotonic()
    browser = Browser(f"http://127.0.0.1:{gateway.port}/", folder)
    shown = browser.tell("price $68,901.23")["text"]
    took = time.monotonic() - begun
    for text in ("EUR", "€59,255.06", "¥10,335,184", "current", "binance", "BTC/USDT", "coinbase"):
        assert text in shown, f"{text}: {shown}"
    equal(browser.tell("axe")["violations"], [])
    fresh_title = browser.tell("title $68,901.23")
    equal(fresh_title["elsewhere"], "Not from the exchanges' own addresses (a simulator, a mirror or a proxy): binance, coinbase, bitstamp, kraken.")
    equal(browser.tell("sats"), {"ok": True, "sats": "1,451 sat per $1", "price": "$68,901.23"})
    # As btcctl's: half to even, and the places of the currency.
    prices = {("68901.225", "USD"): "$68,901.22", ("68901.235", "USD"): "$68,901.24", ("68901.2250000001", "EUR"): "€68,901.23",
              ("68901", "CHF"): "CHF 68,901.00", ("98765432.5", "KRW"): "₩98,765,432", ("98765433.5", "JPY"): "¥98,765,434", ("0.995", "BRL"): "R$1.00"}
    equal(browser.tell("money " + json.dumps(list(prices)))["shown"], list(prices.values()))
    for span in ("1 h", "24 h", "7 d", "30 d", "1 y", "all"):
        line, candles = browser.tell(f"chart {span} line"), browser.tell(f"chart {span} candles")
        equal((line["drawn"]["path"], line["drawn"]["rect"], line["drawn"][".mark"]), (1, 0, 2), line)
        assert candles["drawn"]["path"] == 0 and candles["drawn"]["rect"] > (8 if span == "1 h" else 50), candles
        for seen in (line, candles):
            assert "low $" in seen["resting"] and "high $" in seen["resting"] and "low $" in seen["label"], seen
            assert seen["pointed"] != seen["resting"] and "· $" in seen["pointed"], seen
            # One candle a press, from the last one.
            (last, text), (before, _), (first, _), (end, _), (none, _) = seen["byKey"]
            assert first < before < last and end > before and none is None and "· $" in text, seen
    assert line["day"].startswith("24 h ") and " · low $" in line["day"], line
    browser.tell("chart 24 h line")
    pictures = browser.tell("pictures", 4)
    equal([p for p in pictures if p["isTooWide"] or p["violations"]], [])
    keys = browser.tell("keys")
    equal((keys["code"], keys["price"], keys["pressed"]), ("EUR", "€59,255.06", "true"))
    # A link to this view.
    assert keys["url"].endswith("?satoshis=0&span=24h&chart=line&currency=EUR"), keys
    equal(browser.tell("state current")["banner"], "")
    simulator.faults("* always refuse\n")
    stale = browser.tell("state old")
    assert stale["banner"].startswith("Failed to update value. Displaying last updated value from "), stale
    equal(stale["price"], "€59,255.06")
    assert stale["banner"].endswith((" Reason: no exchange responded", " Reason: no update has ended in time")), stale
    # A tab in the background shows that the price is old too.
    old_title = browser.tell("title ⚠ €59,255.06 (")
    assert re.match(r"⚠ €59,255\.06 \(\d+ s old\)", old_title["title"]) and old_title["icon"] != fresh_title["icon"], old_title
    equal(browser.tell("axe")["violations"], [])
    simulator.faults("")
    equal(browser.tell("state current")["banner"], "")
    daemon.kill()
    gone = browser.tell("state not reachable")
    assert gone["banner"].startswith("The daemon can't be reached."), gone
    daemon = Daemon(place, simulator.urls, "--currencies", "USD,EUR", "--currency-EUR-interval-ms", "1000", sources=sources)
    equal(browser.tell("state current")["banner"], "")
    # A currency that is no longer kept goes.
    wait_until(lambda: "¥" not in browser.tell("price €59,255.06")["text"], every=0.3, what="a page without yen")
    daemon.kill()
    browser.tell("state not reachable")
    # Opened while the daemon is down.
    equal(browser.tell("reload")["banner"], "The daemon can't be reached. Start it with 'systemctl start btc-priced'.")
    # With a single source, the first price is unconfirmed for ten minutes.
    for folder in (place.runtime, place.state):
        for file in Path(folder).glob("last-quote*"):
            file.unlink()
    daemon = Daemon(place, simulator.urls, "--currencies", "USD,EUR", "--currency-EUR-interval-ms", "1000", sources=("coinbase",))
    doubtful = browser.tell("title ⚠ €59,255.06 (unconfirmed)")
    assert doubtful["title"].startswith("⚠ €59,255.06 (unconfirmed)"), doubtful
    assert doubtful["icon"] not in (fresh_title["icon"], old_title["icon"]), "the icon of another state"
    browser.tell("state unconfirmed")
    gateway.stop()
    gone = browser.tell("state not reachable")
    assert gone["banner"].startswith("The server of this page can't be reached."), gone
    log = browser.tell("log")
    equal(log["foreign"], [])
    # The browser itself reports the end of a connection.
    messages = [m for m in log["messages"] if "net::ERR" not in m and "status of 503" not in m]
    equal(messages, [])
    browser.stop()
    stop(daemon, simulator)
    return f"the price {took:.1f} s after the start of the browser"


golden = Golden(__file__)


@scenario("the table of doubt: the page says of every kind what it is")
def _():
    # The states as the gateway sends them, which Tests/btc-price-httpTests renders.
    table = (ROOT / "Tests/btc-price-httpTests/Doubt.golden").read_text()
    rows = re.search(r"(?m)^== /v1/price, .*\n((?:\w+: \{.*\n)+)", table)[1].splitlines()
    kinds = dict(row.split(": ", 1) for row in rows)
    simulator, place = replaying("68901.23"), Place()
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    gateway = Gateway(place.socket)
    browser = Browser(f"http://127.0.0.1:{gateway.port}/", tempfile.mkdtemp(prefix="btc-priced-page-"))
    browser.tell("price $68,901.23")
    states = [json.loads(state) for state in kinds.values()]
    shown = browser.tell("doubt " + json.dumps(["2026-11-22T09:35:25.200Z", states]))["shown"]
    assert all(shown), shown
    golden.check("doubt", "".join(f"{kind}: {text}\n" for kind, text in zip(kinds, shown)))
    browser.stop()
    stop(gateway, daemon, simulator)


main()
