#!/usr/bin/env python3
"""Exchanges that are described in files: the library, a user's own, and mistakes."""

import http.server
import os
import subprocess
import time
import tomllib
from pathlib import Path

from lib.btcpriced import *
from lib.rates import RateServer

LIBRARY = ROOT / "packaging" / "exchanges"
SHARED = ROOT.parent / "shared" / "described"

# An exchange that nobody has described: its page shows the response {"result":{"pair":"BTC/EUR","last":"59000.10","at":1795590000}}.
MINE = """
[exchange.mine]
url = "https://api.mine.example/v1/ticker?market={name}"
name = "{BASE}-{QUOTE}"
price = "/result/last"
time = "/result/at"
time-is = "trade"
require = { "/result/pair" = "{BASE}/{QUOTE}" }
markets = { EUR = {} }
"""


def write(place, text, name="config.toml"):
    path = f"{place.state}/{name}"
    with open(path, "w") as file:
        file.write(text)
    return path


def sources(place, currency):
    client = Varlink(place.socket)
    reply = client.call("io.btcpriced.Price.ListSources", currency=currency)
    client.close()
    return {source["name"]: source for source in reply["parameters"]["sources"]}


def tried(*arguments):
    return subprocess.run([BINARIES / "btc-priced", *arguments], capture_output=True, text=True, timeout=30)


@scenario("a simulator with --port has its described exchanges there too, and another one there is refused", beside=True)
def _():
    path = write(Place(), MINE, "mine.toml")
    command = [BINARIES / "exchange-simulator", "--port", "18360", "--descriptions", path]
    simulator = Simulator(*command[1:])
    ports = {name: int(url.split(":")[2].split("/")[0]) for name, url in simulator.urls.items() if name != "seed"}
    equal(sorted(ports.values()), list(range(18360, 18367)), ports)
    equal((ports["binance"], ports["mine"], ports["control"]), (18360, 18365, 18366))
    second = subprocess.run(command, capture_output=True, text=True, timeout=30)
    equal(second.returncode, 1, second)
    contains(second.stderr, "port 18360: Address already in use")
    # Its control port would be the first one's port of Binance.
    second = subprocess.run([command[0], "--port", "18355"], capture_output=True, text=True, timeout=30)
    equal(second.returncode, 1, second)
    contains(second.stderr, "Address already in use")
    without = subprocess.run([*command[:1], "--certificates", "/nowhere"], capture_output=True, text=True, timeout=30)
    contains(without.stderr, "/nowhere/server.pem and /nowhere/server.key are not a certificate and its key")


@scenario("a source of rates is sent its headers with the credential", beside=True)
def _():
    got, place = [], Place()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            got.append((self.path, self.headers["Authorization"]))
            body = json.dumps({"date": time.strftime("%Y-%m-%d", time.gmtime()), "rates": {"USD": 1.1}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = write(place, f"""
reference-rates = ["book"]
[reference-rate.book]
url = "http://127.0.0.1:{server.server_address[1]}/latest"
base = "EUR"
price = "/rates/{{QUOTE}}"
time = "/date"
time-is = "book"
credential = "book"
headers = {{ Authorization = "Bearer {{credential}}" }}
""")
    write(place, "sesame\n", name="book")
    result = subprocess.run(
        [BINARIES / "btc-priced", "--config", config, "--try", "book"], capture_output=True, text=True,
        env={**os.environ, "CREDENTIALS_DIRECTORY": place.state})
    equal((result.returncode, got), (0, [("/latest", "Bearer sesame")]), result.stdout + result.stderr)
    server.shutdown()


@scenario("a user's exchange of eight lines is used like a built-in one", beside=True)
def _():
    place = Place()
    os.makedirs(f"{place.state}/described")
    Path(f"{place.state}/described/mine.toml").write_text(MINE)
    simulator = Simulator("--seed", "5", "--descriptions", f"{place.state}/described")
    config = write(place, 'currencies = ["USD", "EUR"]\ncurrency.EUR.interval-ms = 1000\ncurrency.EUR.sources = ["mine", "kraken"]\n' + MINE)
    url = ("--source-mine-url", simulator.urls["mine"])
    result = tried("--config", config, *url, "--try", "mine")
    equal(result.returncode, 0, result.stdout + result.stderr)
    contains(result.stdout, f"GET {simulator.urls['mine']}/v1/ticker?market=BTC-EUR")
    contains(result.stdout, "price /result/last:")
    daemon = Daemon(place, simulator.urls, "--config", config, *url, "--source-kraken-url", simulator.urls["kraken"], sources=("kraken",))
    wait_until(lambda: (state_in(place, "EUR").get("quote") or {}).get("source") == "mine", what="the price of the user's exchange")
    wait_until(lambda: state_in(place, "EUR")["confirmation"] == "confirmed", what="a confirmed price")
    quote = state_in(place, "EUR")["quote"]
    equal((quote["market"], quote["currency"]), ("BTC/EUR", "EUR"))
    contains(btcctl(place, "current", "--currency", "EUR", "--raw").out, quote["value"].split(".")[0][:2])
    assert "mine" in sources(place, "EUR")
    contains(btcctl(place, "metrics").out, 'source="mine"')
    # It lies: the price goes on with the other exchange's, and says why.
    simulator.control("price/mine", "1.05")
    wait_until(lambda: state_in(place, "EUR")["quote"]["source"] == "kraken", what="the other exchange's price")
    daemon.stop()
    simulator.stop()


@scenario("every exchange of the library gives a price end to end, and thirty currencies are kept", beside=True)
def _():
    simulator = Simulator("--seed", "6", "--descriptions", str(LIBRARY))
    names = sorted(path.stem for path in LIBRARY.glob("*.toml") if path.stem != "currencies")
    place = Place()
    os.makedirs(f"{place.state}/share/btc-priced")
    os.symlink(LIBRARY, f"{place.state}/share/btc-priced/exchanges")
    environment = {"XDG_DATA_DIRS": f"{place.state}/share"}
    markets = {}
    for name in names:
        result = subprocess.run(
            [BINARIES / "btc-priced", f"--source-{name}-url", simulator.urls[name], "--try", name], capture_output=True, text=True,
            timeout=30, env={**os.environ, **environment})
        equal(result.returncode, 0, result.stdout + result.stderr)
        for line in result.stdout.splitlines():
            if line.startswith("BTC/"):
                markets.setdefault(line[4:7], []).append(name)
    currencies = ["USD"] + sorted(code for code in markets if code != "USD")
    lines = [f"currencies = {currencies}".replace("'", '"')]
    # Most have default sources in the library.
    known = tomllib.loads((LIBRARY / "currencies.toml").read_text())["currency"].keys() | {"EUR", "GBP", "CHF"}
    lines += [f'currency.{code}.sources = {markets[code][:3]}'.replace("'", '"') for code in currencies if code != "USD" and code not in known]
    lines += [f'source.{name}.url = "{simulator.urls[name]}"' for name in [*names, "coinbase", "bitstamp"]]
    # Three have no market, and a derived price.
    derived = ["HUF", "PLN", "RON"]
    lines[0] = f"currencies = {currencies + derived}".replace("'", '"')
    server = RateServer()
    config = write(place, "\n".join(lines) + "\n" + server.tables())
    currencies += derived
    daemon = Daemon(
        place, simulator.urls, "--config", config, sources=("binance", "kraken"), rates="ecb,frankfurter", environment=environment)
    for code in currencies:
        wait_until(lambda: state_in(place, code)["freshness"] == "fresh", seconds=60, what=lambda: f"a price in {code}: {state_in(place, code)}")
    sizes = {code: max(source["bodyBytes"] or 0 for source in sources(place, code).values()) for code in currencies if code not in derived}
    equal([code for code, size in sizes.items() if not 10 < size < 4 << 20], [], "the sizes of the responses")
    quoted = [source for code in currencies if code not in derived for source in sources(place, code).values() if source.get("bid")]
    assert len(quoted) >= 10, quoted
    for source in quoted:
        assert float(source["bid"]) <= float(source["ask"]), source
    named = quoted[0]
    code = named["market"].split("/")[1]
    contains(btcctl(place, "sources", "-v", "-c", code).out, f"bid {float(named['bid']):,.0f}".split(",")[0])
    figures = f"{len(names)} exchanges, {len(quoted)} with quotes, {len(currencies)} currencies: {' '.join(currencies)}"
    minutes = float(os.environ.get("MINUTES", "0"))
    if minutes:
        figures += f"; {kept_for(minutes, place, daemon, currencies)}"
    daemon.stop()
    simulator.stop()
    server.stop()
    return figures


def kept_for(minutes, place, daemon, currencies):
    """Keeps the prices for some minutes: what they cost, and whether a tick was late. For make test-deep."""
    def spent():
        fields = (Path("/proc") / str(daemon.process.pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    begun, before = time.monotonic(), spent()
    time.sleep(minutes * 60)
    used = (spent() - before) / (time.monotonic() - begun)
    for code in currencies:
        equal(state_in(place, code)["freshness"], "fresh", code)
    ticks = btcctl(place, "status", "--json").json["status"]["ticks"]
    equal((ticks["skipped"], ticks["failed"]), (0, 0), "late ticks, and failed ones")
    own = memory(daemon.process)
    requests = sum(source["requests"] for code in currencies for source in sources(place, code).values())
    return (f"{minutes:g} minutes: {used * 1000:.1f} ms of processor time a second, {own} KiB, {requests} requests, no tick late")


@scenario("a saved body is tried without a network", beside=True)
def _():
    if not SHARED.exists():
        return "skipped: no saved bodies"
    place = Place()
    config = write(place, (LIBRARY / "bitso.toml").read_text())
    result = tried("--config", config, "--try", "bitso", str(SHARED / "bitso_btcmxn.json"))
    equal(result.returncode, 0, result.stderr)
    contains(result.stdout, "  = 139280.35")
    result = tried("--config", config, "--try", "bitso", str(SHARED / "upbit_krw-btc.json"))
    equal(result.returncode, 1, result.stdout)
    contains(result.stdout, '/payload/book is missing, not "btc_mxn"')
    result = tried("--config", config, "--try", "bitsi")
    equal(result.returncode, 78, result.stdout)
    contains(result.stderr, "there is no exchange 'bitsi'; there are binance,")


def tried_on(place, body, line="", of="/quotes", where="/instrument", value="{name}"):
    """The answer of --try to a body in which each market is a row."""
    config = write(place, f"""
        [exchange.mine]
        url = "https://api.example.com/quotes"
        row = {{ of = "{of}", where = "{where}", is = "{value}" }}
        price = "/last"
        markets = {{ EUR = {{}} }}
        {line}
    """)
    return tried("--config", config, "--try", "mine", write(place, body, "body.json"))


@scenario("a trial ends after ten seconds without a response, and at once by a signal", beside=True)
def _():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = Place()
        config = write(place, MINE + f'[source.mine]\nurl = "http://127.0.0.1:{silent.getsockname()[1]}"\n')
        silent.settimeout(30)
        for number in (signal.SIGINT, signal.SIGTERM):
            trial = spawn([BINARIES / "btc-priced", "--config", config, "--try", "mine"])
            connection, _ = silent.accept()
            trial.send_signal(number)
            equal(trial.wait(timeout=30), -number)
            connection.close()
        result = tried("--config", config, "--try", "mine")
        equal(result.returncode, 1, result.stderr)
        contains(result.stdout, "no response within 10000 ms")


@scenario("a row that is not found is answered with the rows that there are", beside=True)
def _():
    place = Place()
    body = '{"quotes":[{"instrument":"BTC-EUR","last":"59000"},{"instrument":"ETH-EUR","last":"2100"}],"numbered":[{"id":1,"last":"59000"},{"id":2,"last":"2100"}]}'
    for row, answer in [
        ("/quotes /instrument BTC-EUR", "= 59000"),
        ("/quotes /instrument BTCEUR", "no row has BTCEUR at /instrument (there are \"BTC-EUR\", \"ETH-EUR\")"),
        ("/quotes /symbol BTC-EUR", "no row has BTC-EUR at /symbol (a row has instrument, last)"),
        ("/data /instrument BTC-EUR", "there is no array at /data (the body has quotes, numbered)"),
        ("/numbered /id 1", "= 59000"),
    ]:
        result = tried_on(place, body, "", *row.split())
        contains(result.stdout, answer)
        equal(result.returncode, 0 if answer.startswith("=") else 1, result.stderr)
        if answer.startswith("="):
            contains(result.stdout, "Nothing shows how old the price is.")


@scenario("an error with status 200 is shown with its text, wherever its place is said to begin", beside=True)
def _():
    place = Place()
    for line, answer in [('error = "//reason"', "refused: unknown symbol"), ('error = "/reason"', "refused: unknown symbol"),
                         ('require = { "//ok" = true }', "//ok is false, not true")]:
        result = tried_on(place, '{"ok":false,"reason":"unknown symbol"}', line)
        equal(result.returncode, 1, result.stderr)
        contains(result.stdout, answer)


@scenario("each mistake in a description is answered with its file, line and key, and what to do", beside=True)
def _():
    place = Place()
    good = 'url = "https://api.example.com/t?p={name}"\nprice = "/last"\nmarkets = { EUR = {} }\n'
    cases = [
        (good.replace("https", "http"), "line 2: exchange.mine.url", "must begin with https://"),
        (good.replace('"/last"', '"$.data[0].last"'), "line 3: exchange.mine.price", "write /data/0/last"),
        (good.replace('"/last"', '".data[0].last"'), "line 3: exchange.mine.price", "write /data/0/last"),
        (good.replace('price = "/last"\n', ""), "exchange.mine", 'write price = "/…"'),
        (good.replace("url = ", "uri = "), "line 2: exchange.mine.uri", "unknown key; there are url,"),
        (good.replace('url = "https://api.example.com/t?p={name}"\n', ""), "exchange.mine", "it has no url"),
        (good.replace('"/last"', '"last/price"'), "line 3: exchange.mine.price", "write /last/price"),
        (good.replace('"/last"', '"$.a[1].x"') + 'row = { of = "/a", where = "/b", is = "{name}" }\n',
         "line 3: exchange.mine.price", "write a place in the row, such as /last, or //a/1/x"),
        (good + 'error = "reason"\n', "line 5: exchange.mine.error", "write /reason"),
        (good.replace("{ EUR = {} }", '["PLN"]'), "line 4: exchange.mine.markets", "write markets = { PLN = {} }"),
        (good + 'bid = "/b"\naks = "/a"\n', "line 6: exchange.mine.aks", "unknown key"),
        (good + 'time = "/t"\n', "line 5: exchange.mine.time", 'time-is = "trade", "book" or "reply"'),
        (good.replace("{name}", "{symbol}"), "line 2: exchange.mine.url", "{symbol} is not a placeholder here"),
        (good.replace("EUR", "Euro"), "line 4: exchange.mine.markets.Euro", "capital letters, such as EUR"),
        (good + 'limits = ["30/min"]\n', "line 5: exchange.mine.limits", 'write "30/60s" for 30 requests in any 60 seconds'),
        (good + 'headers = { Host = "x" }\n', "line 5: exchange.mine.headers.Host", "can't be set here"),
        (good + 'prize = "/x"\n', "line 5: exchange.mine.prize", "unknown key; there are url,"),
        (good.replace("?p={name}", "").replace("EUR = {}", "EUR = {}, GBP = {}"), "line 4: exchange.mine.markets", "put {name} into url"),
        (good + 'require = { "pair" = "{name}" }\n', "line 5: exchange.mine.require.pair", "write /pair"),
        (good + 'ask = "/ask"\n', "line 5: exchange.mine.ask", "bid and ask go together"),
    ]
    for text, where, advice in cases:
        config = write(place, "[exchange.mine]\n" + text)
        result = tried("--config", config, "--check-config")
        equal(result.returncode, 78, text)
        contains(result.stderr, f"{config}, {where}" if where.startswith("line") else where)
        contains(result.stderr, advice)
    result = tried("--config", write(place, 'currencies = ["BRL"]\ncurrency.BRL.derive = "never"\n'), "--check-config")
    contains(result.stderr, "BRL has no sources: set currency.BRL.sources to exchanges")
    return f"{len(cases) + 1} mistakes"


main()
