#!/usr/bin/env python3
"""The metrics for a monitoring system: btcctl metrics, read by promtool and by Prometheus itself."""

import os

from lib.btcpriced import *
from lib.gateway import Gateway, free_port

RULES = ROOT / "docs" / "monitoring"


def promtool(*arguments, **options):
    if not shutil.which("promtool"):
        raise Skip("promtool is absent")
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, **options)


def samples(text):
    """The samples of a text, by name and labels."""
    return {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in text.splitlines() if line and line[0] != "#"}


@scenario("promtool accepts the metrics, and they match the output of the daemon's own commands")
def _():
    simulator = replaying("68901.23")
    place = Place()
    daemon = Daemon(place, simulator.urls, "--currencies", "USD,EUR", sources=("binance", "coinbase", "bitstamp", "kraken"))
    for code in ("USD", "EUR"):
        wait_until(lambda: btcctl(place, "current", "-c", code, "--json").json["freshness"] == "fresh", what=f"{code}")
    simulator.faults("coinbase always status 500\n")
    wait_until(lambda: 'source_requests_total{source="coinbase",market="BTC/USD",result="unavailable"}' in btcctl(place, "metrics").out,
               seconds=40, every=0.2, what="a failure that is counted")
    text = btcctl(place, "metrics").out
    checked = promtool("check", "metrics", input=text)
    equal((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))
    found = samples(text)
    equal(found['btcpriced_price{base="BTC",quote="USD"}'], "68901.23")
    equal(found['btcpriced_price_state{base="BTC",quote="USD",btcpriced_price_state="fresh"}'], "1")
    equal(found['btcpriced_price_state{base="BTC",quote="EUR",btcpriced_price_state="stale"}'], "0")
    equal(found[f'btcpriced_build_info{{version="{VERSION}"}}'], "1")
    status = btcctl(place, "status", "--json").json["status"]
    ticks = sum(int(v) for k, v in found.items() if k.startswith('btcpriced_ticks_total{base="BTC",quote="USD"') and "skipped" not in k)
    assert 0 <= status["ticks"]["done"] - ticks <= 3, (status, ticks)
    duration = 'btcpriced_tick_duration_seconds_count{base="BTC",quote="USD"}'
    assert 0 <= status["ticks"]["done"] - int(found[duration]) <= 3, found[duration]
    assert int(found["process_resident_memory_bytes"]) > 5_000_000 and int(found["process_open_fds"]) > 5, found
    assert int(found['btcpriced_calls_total{method="GetPrice",result="ok"}']) >= 2, found
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert not [name for name in names if not name.startswith(("btcpriced_", "process_"))], names
    equal(set(re.findall(r"(?m)^# HELP (\w+) .*\.$", text)), names, "the metrics that are explained, as docs/http.md says")
    for outside in ("http://", "127.0.0.1", "500"):
        assert outside not in "".join(label for label in found), f"{outside} in a label"
    # Two readers see the same counters.
    a, b = btcctl(place, "metrics").out, btcctl(place, "metrics", "--openmetrics").out
    assert b.endswith("# EOF\n") and "# TYPE btcpriced_price_state stateset" in b, b[-200:]
    kept = 'btcpriced_store_writes_total{place="disk",result="ok"}'
    equal(samples(a)[kept], samples(b)[kept])
    daemon.stop()
    simulator.stop()
    return f"{len(found)} samples of {len(names)} families"


@scenario("--write replaces the whole file, readable for everybody, or reports an error")
def _():
    simulator = replaying("68901.23")
    place = Place()
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    folder = Path(tempfile.mkdtemp(prefix="btc-priced-metrics-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "btc-priced.prom"
    result = btcctl(place, "metrics", "--write", str(file))
    equal((result.status, result.out, result.err), (0, "", ""))
    equal(oct(file.stat().st_mode & 0o777), "0o644")
    assert samples(file.read_text())['btcpriced_price{base="BTC",quote="USD"}'] == "68901.23"
    first = file.stat().st_ino
    btcctl(place, "metrics", "--write", str(file))
    assert file.stat().st_ino != first, "a new file"
    equal([entry.name for entry in folder.iterdir()], ["btc-priced.prom"])
    for before, after in ((None, "0o644"), (0o640, "0o640")):
        file.unlink() if before is None else file.chmod(before)
        subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", BINARIES / "btcctl", "metrics", "--write", file, "--socket", place.socket], check=True)
        equal(oct(file.stat().st_mode & 0o777), after, "whatever the umask is")
    link, fifo = folder / "link", folder / "fifo"
    link.symlink_to(file.name)
    os.mkfifo(fifo)
    first = file.stat().st_ino
    equal(btcctl(place, "metrics", "--write", str(link)).status, 0)
    assert link.is_symlink() and file.stat().st_ino != first, "the file that the link names is replaced"
    refused = btcctl(place, "metrics", "--write", str(fifo))
    equal((refused.status, fifo.is_fifo()), (74, True), "a FIFO stays, and so would a device")
    assert "can't be written: it is not a regular file" in refused.err, refused
    missing = btcctl(place, "metrics", "--write", str(folder / "no" / "x.prom"))
    equal(missing.status, 74)
    assert "can't be written: No such file or directory" in missing.err, missing
    daemon.stop()
    equal(btcctl(place, "metrics", "--write", str(file)).status, 69)
    simulator.stop()


@scenario("the alert rules pass their own tests")
def _():
    checked = promtool("check", "rules", RULES / "alert-rules.yml")
    equal(checked.returncode, 0, checked.stdout + checked.stderr)
    tested = promtool("test", "rules", RULES / "alert-rules.test.yml")
    equal(tested.returncode, 0, tested.stdout + tested.stderr)
    dashboard = json.loads((RULES / "grafana-dashboard.json").read_text())
    simulator = replaying("68901.23")
    place = Place()
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    known = set(re.findall(r"(?m)^(\w+)[{ ]", btcctl(place, "metrics").out))
    for file in (json.dumps(dashboard), (RULES / "alert-rules.yml").read_text()):
        named = set(re.findall(r"\bbtcpriced_\w+", file)) - {"btcpriced_price_state", "btcpriced_source_state"}
        # The metrics that may have no sample yet.
        named -= {"btcpriced_price_uncertainty", "btcpriced_source_cooldown_until_timestamp_seconds", "btcpriced_currency_value"}
        assert named <= known, named - known
    daemon.stop()
    simulator.stop()
    return f"{len(dashboard['panels'])} panels"


@scenario("Debian's Prometheus scrapes the gateway")
def _():
    if not shutil.which("prometheus"):
        raise Skip("prometheus is absent")
    simulator = replaying("68901.23")
    place = Place()
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    gateway = Gateway(place.socket)
    folder = Path(tempfile.mkdtemp(prefix="btc-priced-prometheus-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    port = free_port()
    (folder / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 1s}}
rule_files: ["{RULES / 'alert-rules.yml'}"]
scrape_configs: [{{job_name: btcpriced, static_configs: [{{targets: ["127.0.0.1:{gateway.port}"]}}]}}]
""")
    prometheus = spawn(["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
                        f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL)

    def query(text):
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": text})
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return json.load(reply)["data"]["result"]
        except OSError:
            return []
    found = wait_until(lambda: query('btcpriced_price{quote="USD"}'), seconds=30, every=0.2, what="the price in Prometheus")
    equal(found[0]["value"][1], "68901.23")
    equal(query("up")[0]["value"][1], "1")
    assert query('btcpriced_ticks_total{outcome="fresh"}'), "a counter"
    version = subprocess.run(["prometheus", "--version"], capture_output=True, text=True).stdout.split()[2]
    for process in (prometheus, gateway, daemon, simulator):
        process.terminate() if process is prometheus else process.stop()
    prometheus.wait(timeout=20)
    return f"Prometheus {version}"


main()
