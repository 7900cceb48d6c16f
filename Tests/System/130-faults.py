#!/usr/bin/env python3
"""The faults of an exchange, one fault script after the other, and their effects for a user and an operator.

The texts are kept in 130-faults.golden. UPDATE_GOLDEN=1 writes them anew: read the difference before you commit it.
"""

import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

from lib.btcpriced import *

# The number of ticks to wait for: a breaker opens at the third failure.
TICKS = 4

# The third source confirms the first price.
ALL = ("binance", "coinbase", "bitstamp")
CASES = [
    # name, fault script, options
    ("nothing goes wrong", "", {}),
    ("the primary refuses connections", "binance always refuse", {}),
    ("the primary resets connections", "binance always reset", {}),
    ("the primary closes connections", "binance always close", {}),
    ("the primary's connections go dark", "binance always dark", {}),
    ("the primary is slower than its time", "binance always delay 900ms", {}),
    ("the primary stalls in the middle of a body", "binance always stall-body", {}),
    ("the primary ends in the middle of a body", "binance always half-body", {}),
    ("the primary announces more than it sends", "binance always wrong-length 10", {}),
    ("the primary announces less than it sends", "binance always wrong-length -10", {}),
    ("the primary sends a huge body", "binance always huge-body 10000000", {}),
    ("the primary sends a compressed bomb", "binance always bomb", {}),
    ("the primary drips a byte at a time", "binance always drip 30ms", {}),
    ("the primary redirects to itself", "binance always redirect", {}),
    ("the primary calls its price something else", "binance always content-type text/html", {}),
    ("the primary sends a page with status 200", "binance always status 200 body <html>maintenance</html>", {}),
    ("the primary sends nothing with status 200", "binance always status 200", {}),
    ("the primary sends another pair", 'binance always status 200 body {"symbol":"LTCBTC","price":"4.00000200"}', {}),
    ("the primary sends zero", 'binance always status 200 body {"symbol":"BTCUSDT","price":"0.00000000"}', {}),
    ("the primary sends what is absurd",
     'binance always status 200 body {"symbol":"BTCUSDT","price":"850867136053.72"}', {}),
    ("the primary has banned us, in prose",
     'binance always status 418 body {"code":-1003,"msg":"Way too much request weight used; IP banned until <now+60500>."}',
     {}),
    ("the primary limits us, for so many seconds", "binance always status 429 retry-after 30 body {}", {}),
    ("the primary limits us, until a date", "binance always status 429 retry-after-date 60 body {}", {}),
    ("the primary limits us, and does not say for how long", "binance always status 429 body {}", {}),
    ("the primary does not serve this region",
     'binance always status 451 body {"code":0,"msg":"Service unavailable from a restricted location"}', {}),
    ("the primary's firewall refuses", "binance always status 403 body <html>403 ERROR</html>", {}),
    ("the primary does not understand", 'binance always status 400 body {"code":-1121,"msg":"Invalid symbol."}', {}),
    ("the primary is gone", "binance always status 404 body <html>404</html>", {}),
    ("the primary's gateway fails", "binance always status 502 body <html>502 Bad Gateway</html>", {}),
    ("the primary is maintained, and says for how long", "binance always status 503 retry-after 3600 body {}", {}),
    ("the primary fails once", "binance request 2 status 500", {}),
    ("all refuse connections", "* always refuse", {}),
    ("all limit us", "* always status 429 retry-after 30 body {}", {}),
    ("the fallback limits us while the primary is dead",
     'binance always refuse\ncoinbase always status 429 body {"message":"Public rate limit exceeded"}',
     {"sources": ("binance", "coinbase")}),
    ("a node of the exchange is ten hours old", "coinbase request 2- venue-clock -36000s",
     {"sources": ("coinbase",), "known": "coinbase"}),
    ("the exchange's clock is an hour ahead", "coinbase always venue-clock 3600s",
     {"sources": ("coinbase",), "known": "coinbase"}),
    ("a key is refused",
     'cryptocompare always status 401 body {"Data":{},"Err":{"type":2,"message":"API key required"}}',
     {"sources": ("cryptocompare",), "key": "wrong"}),
    ("a quota is used up, with status 200",
     'cryptocompare always status 200 body {"Response":"Error","Message":"You are over your rate limit","Type":99}',
     {"sources": ("cryptocompare",), "key": "k"}),
    ("Bitstamp limits us with status 400",
     'bitstamp always status 400 body {"status":"error","reason":"exceeded rate limit","code":"400.002"}',
     {"sources": ("bitstamp",)}),
    ("Kraken is down, with status 200", 'kraken always status 200 body {"error":["EService:Unavailable"]}',
     {"sources": ("kraken", "bitstamp"), "known": "bitstamp"}),
    ("over TLS nothing goes wrong", "", {"secure": True}),
    ("the primary's handshakes fail", "binance always tls-alert", {"secure": True}),
    ("the primary's certificate is over", "binance always certificate expired", {"secure": True}),
    ("the primary's certificate is not valid yet", "binance always certificate not-yet-valid", {"secure": True}),
    ("the primary's certificate is for another host", "binance always certificate other-host", {"secure": True}),
    ("the primary's certificate is forged", "binance always certificate forged", {"secure": True}),
]


def normal(text):
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>", text)
    text = re.sub(r"\b[A-Z][a-z]{2} \d{1,2}, \d\d:\d\d", "<local time>", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:<port>", text)
    text = re.sub(r"until \d{13}", "until <milliseconds>", text)
    # The first tick of a daemon on a busy machine may begin so late that less than the source's timeout is left of it.
    text = text.replace("no response in the time that was left", "no response within 800 ms")
    # A date is exact only to the second.
    return re.sub(r"rate limited for (59|60|61) s", "rate limited for about 60 s", text)


def of_busy_machine(line, faults):
    """Whether a line is about the late response of a source without a fault: other tests run beside this one."""
    late = re.match(r"(?:warning: )?(\S+) (?:gave no price: no response|has prices again)", line)
    return bool(late) and not {late[1], "*"} & {fault.split()[0] for fault in faults.splitlines()}


def see(case):
    """Runs one case. Returns its text, and the requests to the exchanges."""
    name, faults, options = case
    place = Place()
    simulator = replaying(PRICE, secure=options.get("secure", False), faults=faults)
    environment = {}
    if "key" in options:
        folder = tempfile.mkdtemp(prefix="btc-priced-credentials-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        Path(folder, "cryptocompare-api-key").write_text(options["key"] + "\n")
        environment["CREDENTIALS_DIRECTORY"] = folder
    if "known" in options:
        known_price(place, "68901.23", source=options["known"])
    arguments = ["--tls-ca-file", simulator.authority] if simulator.authority else []
    daemon = Daemon(place, simulator.urls, *arguments, sources=options.get("sources", ALL), environment=environment, level="debug")
    # Detected in the log, because the call of a client would start a fetch while no price is held.
    wait_until(lambda: daemon.said(f"tick {TICKS} began"), seconds=30, what=f"{TICKS} ticks of '{name}'")
    shown = btcctl(place, "current")
    state = btcctl(place, "current", "--json").json
    limits = simulator.limits()
    daemon.stop()
    simulator.stop()
    lines = [f"faults   {line}" for line in faults.splitlines()]
    lines += [f"shown    {line}" for line in shown.out.splitlines()]
    lines += [f"error    {line}" for line in shown.err.splitlines()]
    lines += [f"status   {shown.status}"]
    if state.get("quote"):
        lines += [f"source   {state['quote']['source']}, {state['freshness']}"]
    unwanted = ("Ready: ", "Stopped.", "which is not the exchange's own", "can't be requested at every tick", " began ")
    lines += [
        "log      " + line for line in (re.sub(r"^btc-priced(\[\d+\])?: ", "", line) for line in daemon.lines)
        if not any(word in line for word in unwanted) and not of_busy_machine(line, faults)]
    return normal("\n".join(lines) + "\n"), limits


PRICE = "68901.23"

only = sys.argv[1:]
chosen = [case for case in CASES if not only or any(word in case[0] for word in only)]
pool = ThreadPoolExecutor(max_workers=4)
seen = {case[0]: pool.submit(see, case) for case in chosen}
golden = Golden(__file__)


def define(name):
    @scenario(name)
    def _():
        text, limits = seen[name].result()
        assert within(limits), limits
        golden.check(name, text)
        # The requests to each exchange that got any.
        return "; ".join(f"{venue} {count}" for venue, count in limits.items() if not count.startswith("total 0"))


for case in chosen:
    define(case[0])


@scenario("zlib itself reads the bomb as described")
def _():
    simulator = Simulator(faults="binance always bomb")
    body = urllib.request.urlopen(simulator.urls["binance"] + "/api/v3/ticker/price?symbol=BTCUSDT", timeout=30).read()
    assert len(body) < 64 * 1024, len(body)
    equal(zlib.decompress(body), bytes(1 + 258 * 38_000))

main()
