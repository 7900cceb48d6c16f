#!/usr/bin/env python3
"""Runs every example in README, docs and manuals as it is written. An example without a test here is a failure.

Examples that need systemd run in the machines of 200-package.py."""

import os
import sqlite3
import sys

from lib.btcpriced import *
from lib import examples
from lib.gateway import Gateway
from lib.terminal import Terminal

SYSTEM_SOCKET = "/run/btc-priced/io.btcpriced.Price"
LINE = r"[A-Z][a-z]{2} \d{1,2}, \d\d:\d\d(:\d\d)? - \$[\d,]+\.\d\d"
BANNER = r"Failed to update value\. Displaying last updated value from [A-Z][a-z]{2} \d{1,2}, \d\d:\d\d"


class Room:
    """A daemon with a price, and a home whose PATH has our programs and the other ones in the examples."""

    def __init__(self):
        self.place = Place()
        known_price(self.place, "68901.23")
        self.simulator = replaying("68901.23")
        self.daemon = Daemon(self.place, self.simulator.urls)
        settled(self.place)
        self.home = Path(tempfile.mkdtemp(prefix="btc-priced-examples-"))
        atexit.register(shutil.rmtree, self.home, ignore_errors=True)
        for name in ("notify-send", "bitcoind"):
            # A stand-in for another program. Only its arguments count.
            self.file(f"bin/{name}", f'#!/bin/sh\nprintf "%s|" "$(basename "$0")" "$@" >>{self.home}/called; echo >>{self.home}/called\n').chmod(0o755)
        for name in ("btcctl", "btc-priced", "btc-price-alert"):
            os.symlink(BINARIES / name, self.home / "bin" / name)
        python = os.environ.get("VARLINK_PYTHON")
        if python:
            self.file("bin/python3", f'#!/bin/sh\nexec {python} "$@"\n').chmod(0o755)

    def file(self, name, text):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @property
    def environment(self):
        return {**BARE, "PATH": f"{self.home}/bin:{BARE['PATH']}", "BTC_PRICED_SOCKET": self.place.socket, "HOME": str(self.home), "TZ": "UTC",
                "LC_ALL": "C.UTF-8"}

    def start(self, text):
        """Runs the example in a shell, with this daemon's socket in the place of the system's."""
        return spawn(["sh", "-c", text.replace(SYSTEM_SOCKET, self.place.socket)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                     env=self.environment, cwd=self.home, start_new_session=True)

    def run(self, text, timeout=20):
        process = self.start(text)
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err

    def lines(self, text, count, timeout=15):
        """Returns the first lines of an endless example, and ends it with all its processes."""
        process = self.start(text)
        timer = threading.Timer(timeout, lambda: os.killpg(process.pid, signal.SIGKILL))
        timer.start()
        found = [process.stdout.readline().rstrip("\n") for _ in range(count)]
        timer.cancel()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return found

    def called(self):
        path = self.home / "called"
        return wait_until(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text(), what="a call of the other program")


def commands(text):
    """The commands after a prompt, and the text below the first one."""
    typed = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    shown = [line for line in text.splitlines() if not line.startswith("$ ")]
    return typed, shown


def matches(pattern, text):
    assert re.fullmatch(pattern, text), f"{pattern!r} is not what was printed: {text!r}"


# --- README: the output has the form shown there ---------------------------------------------------------------------

def readme_current(room, text):
    (command,), (shown,) = commands(text)
    matches(LINE, shown)
    status, out, err = room.run(command)
    equal((status, err), (0, ""))
    matches(LINE + "\n", out)


def readme_stale(room, text):
    (command,), shown = commands(text)
    room.simulator.faults("* always status 500")
    wait_until(lambda: btcctl(room.place, "current", "--json").json["freshness"] == "stale", what="stale")
    status, out, err = room.run(command)
    room.simulator.faults("")
    fresh(room.place)
    equal(status, 0)
    for found, line, pattern in zip([out.rstrip("\n"), err.rstrip("\n")], shown, [LINE, BANNER]):
        matches(pattern, line)
        matches(pattern, found)


def readme_watch(room, text):
    (command,), shown = commands(text)
    matches(LINE, room.lines(command, 1)[0])
    # As on a terminal, which 062-terminal.py tests.
    matches(LINE + " ▲", shown[0])
    matches(r"binance BTC/USDT, [\d.]+ s old", shown[1])
    matches(r"24 h: [+-][\d.]+ %, low \$[\d,.]+, high \$[\d,.]+", shown[2])
    matches("[▁▂▃▄▅▆▇█]+", shown[3])


def a_script(room, text):
    equal(room.run(text), (0, "One bitcoin is worth 68901.23 dollars.\n", ""))
    _, out, err = room.run(text.replace("1m", "0"))
    assert out == "" and err.endswith("no price, status 75\n"), (out, err)


def simulator_script(room, text):
    room.simulator.faults(text)
    room.simulator.faults("")


# --- The manuals ------------------------------------------------------------------------------------------------------

def alarm(room, text):
    command = commands(text)[0][0] if text.startswith("$ ") else text
    process = room.start(command)
    time.sleep(0.5)
    room.simulator.faults("* always price 70001")
    equal(room.called(), "notify-send|Bitcoin $70,001.00|above|\n")
    os.killpg(process.pid, signal.SIGTERM)
    process.wait()
    os.unlink(room.home / "called")
    room.simulator.faults("* always price 68901.23")
    wait_until(lambda: btcctl(room.place, "current", "--raw").out == "68901.23\n", what="the price from before")


def alerts(room, text):
    status, out, err = room.run(text)
    equal((status, err), (0, ""))
    contains(room.run("btcctl alert list")[1], "stale: no fresh price in USD for 5 min\n")
    (room.home / ".config/btc-priced/alerts.toml").unlink()


def alert_file(room, text):
    room.file(".config/btc-priced/alerts.toml", text)
    contains(room.run("btcctl alert list")[1], "low: below $60,000.00; again after 1 % back, at most every 60 min\n")
    (room.home / ".config/btc-priced/alerts.toml").unlink()


def convert(room, text):
    equal(room.run(text), (0, "$250.00 = 0.00362838 BTC = 362,838 sat\n", ""))


def which_first(room, text):
    for price, word in (("70100", "up"), ("59900", "down")):
        process = room.start(text)
        room.simulator.faults(f"* always price {price}")
        equal(process.communicate(timeout=60)[0], f"{word}\n")
        room.simulator.faults("* always price 68901.23")
        wait_until(lambda: btcctl(room.place, "current", "--raw").out == "68901.23\n", seconds=30, what="the price from before")
    status, out, _ = room.run(text.replace("3600", "0.2"))
    equal(out, "neither within an hour\n")


def bar_line(room, text):
    """The command in a bar's configuration."""
    command = re.search(r"btcctl watch --bar \w+", text)[0]
    line = room.lines(command, 1)[0]
    assert "68,901.23" in line, line


def in_tmux(room, text):
    """The line is in the configuration of a tmux, which runs in a terminal: its status line has the price."""
    terminal = Terminal(BTC_PRICED_SOCKET=room.place.socket)
    conf = room.file("tmux.conf", f"set -g status-interval 1\n{text}")
    terminal.run(f"TMUX= tmux -S {room.home}/tmux -f {conf} new-session 'sleep 60'")
    wait_until(lambda: "$68,901.23" in terminal.screen(), what=lambda: f"the price in tmux: {terminal.screen()}")
    subprocess.run(["tmux", "-S", room.home / "tmux", "kill-server"], check=True)
    terminal.close()


def for_a_bar(room, text):
    matches(LINE + "\n", room.run(text)[1])
    equal(room.run(text.replace("60", "0"))[1], "BTC ?\n")


def through_jq(room, text):
    equal(room.lines(text, 2), ["68901.23"] * 2)


def before_a_node(room, text):
    equal(room.run(text)[0], 0)
    equal(room.called(), "bitcoind|-conf=/etc/bitcoin/bitcoin.conf|\n")
    os.unlink(room.home / "called")


def no_old_price(room, text):
    equal(room.run(text + 'echo "$price"\n'), (0, "68901.23\n", ""))
    _, out, err = room.run(text.replace("max-age 5", "max-age 0"))
    assert err.startswith('no price: {"version":1,"error":"tooOld"'), (out, err)


def explained(room, text):
    status, out, _ = room.run(text)
    assert status == 0 and "The letter, why a source is used or not:" in out and "binance" in out, out


def print_config(room, text):
    status, out, err = room.run(text)
    assert status == 0 and re.search(r"(?m)^sources = .*default", out), (out, err)


def own_daemon(room, text):
    """Checks only the start, because no exchange is reachable from here."""
    place = Place()
    process = room.start(
        f"unset BTC_PRICED_SOCKET; export BTC_PRICED_RUNTIME_DIRECTORY={place.runtime} BTC_PRICED_STATE_DIRECTORY={place.state}; {text}")
    wait_until(lambda: can_connect(place.socket) or process.poll() is not None, what="the socket")
    status = btcctl(place, "status", "--json").json["status"]
    wanted = 5000 if "5000" in text else 1000
    equal(status["ticks"]["intervalMs"], wanted)
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=20)


def whole_file(room, text):
    status, out, err = room.run(f"btc-priced --config {room.file('config.toml', text)} --check-config")
    equal((status, out), (0, "The configuration is good.\n"), err)


def diagnostic(room, text):
    path, problem = text.split(", line 2: ")
    key, value = re.match(r"(\S+) = (\S+):", problem).groups()
    status, _, err = room.run(f"btc-priced --config {room.file('bad.toml', f'#{chr(10)}{key} = {value}{chr(10)}')} --check-config")
    equal(status, 78)
    assert text.replace(path, f"{room.home}/bad.toml").strip() in err, err


def pythons_varlink(room, text):
    if not os.environ.get("VARLINK_PYTHON"):
        raise Skip("VARLINK_PYTHON names no Python with the varlink package")
    *first, last = [line for line in text.splitlines() if line.startswith("python3")]
    head = text.splitlines()[0] + "\n"
    for line in first:
        _, out, err = room.run(head + line)
        assert "GetPrice" in line and '"freshness": "fresh"' in out or "help" in line and "method GetPrice" in out, (line, out, err)
    found = room.lines(head + "PYTHONUNBUFFERED=1 " + last, 3)
    assert "state" in "".join(found), found


def with_socat(room, text):
    head, *rest = text.splitlines()
    once, for_ever = "\n".join([head] + rest[:2]), "\n".join([head] + rest[2:])
    equal(json.loads(room.run(once)[1])["parameters"]["state"]["quote"]["value"], "68901.23")
    # On a pipe tr buffers its output.
    lines = [json.loads(line) for line in room.lines(for_ever.replace("| tr", "| stdbuf -o0 tr"), 2)]
    assert all(line["continues"] for line in lines), lines


def age_in_python(room, text):
    done = subprocess.run([sys.executable, "-c", text.replace(SYSTEM_SOCKET, room.place.socket)], capture_output=True, text=True, timeout=20)
    equal((done.returncode, done.stderr), (0, ""))
    assert re.search(r"\d", done.stdout), done.stdout


def with_curl(room, text):
    path = f"{room.home}/http.sock"
    gateway = Gateway(room.place.socket, listen=[f"unix:{path}"])
    # Both sources always give the same price, so that it is confirmed soon after the first minute.
    status, out, err = wait_until(
        lambda: (done := room.run(text.replace("/run/btc-price-http/http.sock", path)))[0] == 0 and done, seconds=90,
        what=lambda: f"a confirmed price over HTTP: {room.run('btcctl current --json')}")
    equal(json.loads(out)["price"], "68901.23")
    gateway.stop()


def shown_text(room, text):
    matches(f"({LINE}|{BANNER})\n", text)


def history_of(room):
    """A history with hours and days of this year, and the minute of an example."""
    path = f"{room.place.state}/history.sqlite3"
    wait_until(lambda: Path(path).exists(), what="the file")
    database = sqlite3.connect(path, timeout=10)
    now = int(time.time())
    price = [6_890_123_000_000] * 4
    for table, step, start in (("hour", 3600, now - 7 * 86_400), ("day", 86_400, 1_767_225_600), ("minute", 60, 1_787_668_200)):
        for second in range(start // step * step, start + 60 if table == "minute" else now, step):
            database.execute(f"INSERT OR IGNORE INTO {table} (start, currency, open, high, low, close, ticks, fresh, origin) VALUES (?,'USD',?,?,?,?,1,1,'own')", [second, *price])
    database.commit()
    database.close()
    return path


def readme_history(room, text):
    history_of(room)
    typed, (worth,) = commands(text)
    chart, at, history = (room.run(command) for command in typed)
    assert chart[0] == 0 and "BTC/USD $68,901.23" in chart[1] and "┘" in chart[1], chart
    equal(at, (0, f"{worth}\n", ""))
    equal(history, (0, "", ""))
    lines = (room.home / "quarter.csv").read_text().splitlines()
    equal((lines[0], len(lines)), ("time,start,open,high,low,close,ticks,fresh,origin,covered_minutes,doubtful,currency,pair,covered_seconds,single", 91))


def with_sqlite3(room, text):
    path = history_of(room)
    copy = f"{room.home}/history.copy"
    status, out, err = room.run(text.replace("/var/lib/btc-priced/history.sqlite3", path).replace("/var/backups/history.sqlite3", copy))
    equal((status, err), (0, ""))
    if "VACUUM INTO" in text:
        both = [sqlite3.connect(file).execute("SELECT count(*), (SELECT user_version FROM pragma_user_version) FROM hour").fetchone()
                for file in (path, copy)]
        assert both[0] == both[1] and both[0][0] > 0, both
        return
    assert len(out.splitlines()) == 24 and all(line.endswith("|68901.23") for line in out.splitlines()), out


def elsewhere(script, *words):
    """The example runs in another script, which contains these words."""
    def check(room, text):
        other = (ROOT / script).read_text()
        for word in words:
            assert word in other, f"{script} does not run this: {text}"
    return check


IN_HTTP = elsewhere("Tests/System/200-package.py", '"/opt/btc-price-http.deb"', "http_get(machine)")
IN_FLEET = elsewhere("Tests/System/200-package.py", 'pasted("openssl', 'pasted("install', 'for_installed(option)')
IN_BROKERS = elsewhere("Tests/System/lib/brokers.py", 'documented(f"/etc/mosquitto/conf.d', 'documented(f"/etc/mosquitto/btcpriced/acl')
IN_MACHINES = elsewhere("Tests/System/200-package.py", 'do("systemctl enable")', 'do("journalctl")', 'do("install -d")', 'do("editor")')
WHOLE = [
    ("README.md", "$ btcctl current\nAug 25, 14:30 - $68,901.23\nFailed", readme_stale), ("README.md", "$ btcctl current\n", readme_current),
    ("README.md", "$ btcctl watch\n", readme_watch), ("README.md", "sudo apt install ./.build/deb/btc-price-alert", elsewhere("Tests/System/255-alerts.py", '"alert", "add"', '"dpkg", "-i"')),
    ("README.md", '"custom/btc"', bar_line), ("README.md", "if price=", a_script),
    ("README.md", "$ btcctl chart", readme_history), ("configuration.md", "sqlite3 ", with_sqlite3),
    ("charts.md", "$ btcctl chart", elsewhere("Tests/System/240-history.py", "btcctl chart --span 7d", "--candles --ascii", "(40, 80, 120, 200)")),
    ("simulator.md", "# venue", simulator_script),
    ("configuration.md", "# /etc", whole_file), ("configuration.md", "/etc/btc-priced/config.toml, line", diagnostic),
    ("privacy.md", "# /etc", whole_file), ("fleet.md", "# /etc", whole_file), ("fleet.md", "exchanges ", lambda room, text: None),
    ("fleet.md", "openssl ", IN_FLEET), ("fleet.md", "install ", IN_FLEET), ("fleet.md", "apt install ", IN_FLEET),
    ("fleet.md", "listener ", IN_BROKERS), ("fleet.md", "# A publisher writes", IN_BROKERS), ("fleet.md", "pattern read", IN_BROKERS),
    ("interface.md", "S=UNIX", with_socat), ("interface.md", "S=/run", elsewhere("Tests/System/200-package.py", "varlinkctl")),
    ("interface.md", "S=unix:", pythons_varlink), ("programs.md", "btcctl check", elsewhere("Tests/System/066-work.py", 'check("--confirmed"')),
    ("programs.md", "btcctl alert", alerts), ("btc-price-alert.1", "[alert.low]", alert_file), ("programs.md", "btcctl at --csv", elsewhere("Tests/System/066-work.py", '"--csv", "-"')),
    ("programs.md", "btcctl history", elsewhere("Tests/System/066-work.py", '"--ledger", "hledger"')), ("programs.md", "curl -sf", with_curl),
    ("README.md", "make run ", elsewhere("Tests/System/110-run.py", '"scripts" / "run"')),
    ("README.md", "sudo apt install ./.build/deb/btc-price-http", IN_HTTP),
    ("http.md", "sudo apt install ./.build/deb/btc-price-http", IN_HTTP),
    ("http.md", "curl -N", elsewhere("Tests/System/230-http.py", '"/v1/watch?currency=EUR"')),
    ("streams.md", "btcctl watch --live", elsewhere("Tests/System/260-streams.py", '"--live"')),
    ("streams.md", "curl -N", elsewhere("Tests/System/230-http.py", '"/v1/watch?updates=changes"')),
    ("http.md", "OPTIONS=", elsewhere("Tests/System/230-http.py", '"--hosts"', '"--origins"')),
    ("http.md", "btcctl metrics --write", elsewhere("Tests/System/220-metrics.py", '"--write"')),
    ("README.md", "make deb\n", elsewhere("Tests/System/200-package.py", '"dpkg", "-i"', '"status"')),
    ("btcctl.1", "Aug 25", shown_text), ("btcctl.1", "Failed to update", shown_text), ("btcctl.1", "btcctl watch --above", alarm),
    ("btcctl.1", "btcctl convert", convert), ("btcctl.1", "btcctl wait --above", which_first), ("btcctl.1", '"custom/btc"', bar_line),
    ("btcctl.1", "[btc]", bar_line), ("btcctl.1", "[module/btc]", bar_line), ("btcctl.1", "set -g", in_tmux), ("btcctl.1", "btcctl current --max-age", for_a_bar),
    ("btcctl.1", "btcctl watch --json |", through_jq), ("btcctl.1", "#!/bin/sh", before_a_node), ("btcctl.1", "if state=", no_old_price),
    ("btcctl.1", "btcctl sources -v", explained),
    ("btc-price-http.8", "systemctl edit", elsewhere("Tests/System/200-package.py", "systemctl edit btc-price-http.socket")),
    ("btc-priced.8", "systemctl --user", elsewhere("Tests/System/200-package.py", '"systemctl", "--user", "start"')),
    ("btc-priced.8", "systemctl", IN_MACHINES), ("btc-priced.8", "journalctl", IN_MACHINES), ("btc-priced.8", "install -d", IN_MACHINES),
    ("btc-priced.8", "editor", IN_MACHINES),
    ("btc-priced.8", "[Unit]", elsewhere("Tests/System/200-package.py", "node.service")),
    ("btc-priced.8", "btc-priced --print-config", print_config), ("btc-priced.8", "btc-priced --sources", own_daemon),
]

room = None
for page, example in examples.every():
    name = f"{page}: {example.splitlines()[0][:70]}"

    @scenario(name)
    def _(page=page, example=example):
        global room
        room = room or Room()
        found = [run for other, start, run in WHOLE if other == page and example.startswith(start)]
        assert found, f"nobody runs this example:\n{example}"
        found[0](room, example)

main()
