#!/usr/bin/env python3
"""Alerts: btcctl alert and btc-price-alert, with a daemon, a simulator and real commands.

ALERTS: the number of alerts in the scenario of many, 100 by default. LONG: also waits for the end of a command that hangs."""

import http.server

from lib.btcpriced import *


class Home:
    """A user's directories, and the alerts in them."""

    def __init__(self, place):
        self.folder = Path(tempfile.mkdtemp(prefix="btc-priced-home-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "config/btc-priced/alerts.toml"
        self.state = self.folder / "state/btc-priced/alerts"
        self.environment = {
            **os.environ, "XDG_CONFIG_HOME": str(self.folder / "config"), "XDG_STATE_HOME": str(self.folder / "state"),
            "BTC_PRICED_SOCKET": place.socket, "XDG_RUNTIME_DIR": str(self.folder), "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
        # A program that writes what it gets, each variable in a line, and ends as the file `status` says.
        self.program = self.folder / "program"
        self.program.write_text(f'#!/bin/sh\nenv | grep ^BTCCTL_ >"{self.folder}/told.$BTCCTL_ID.$$"\n'
                                f'[ ! -e "{self.folder}/status" ] || exit "$(cat "{self.folder}/status")"\n')
        self.program.chmod(0o755)

    def alert(self, *words, status=0):
        done = Result(subprocess.run(
            [BINARIES / "btcctl", "alert", *words], capture_output=True, text=True, timeout=30, env=self.environment))
        equal(done.status, status, done)
        return done

    def write(self, text):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text)

    def told(self, name=""):
        """The variables of the program's runs, in order."""
        runs = [dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
                for path in sorted(self.folder.glob("told.*"), key=lambda path: path.stat().st_mtime_ns)]
        return [run for run in runs if run.get("BTCCTL_ALERT", "").startswith(name)]

    def serve(self, prefix=()):
        service = Logged([*prefix, BINARIES / "btc-price-alert", "run"], env=self.environment)
        service.says("Ready:")
        return service

    def kept(self):
        return json.loads((self.state / "state.json").read_text())

    def seen(self, seconds):
        """The service was off for so long."""
        state = self.kept()
        for each in state["seen"]:
            each["time"] -= seconds * 1000
        (self.state / "state.json").write_text(json.dumps(state))


def end(service):
    service.process.terminate()
    equal(ended(service.process), 0)


def scene(*prices, history=True, **options):
    place, simulator = Place(), replaying(*(prices or ["68900"]))
    daemon = Daemon(place, simulator.urls, *LOOKS_OFTEN, *(() if history else ("--history-enabled", "false")), **options)
    settled(place)
    return place, simulator, daemon, Home(place)


def waits(home, *names):
    """Waits until the service has checked a price for these alerts."""
    def known():
        listed = home.alert("list").out
        return all(re.search(rf"(?m)^{name}: .*\n  (waits|holds)", listed) for name in names)
    wait_until(known, what=lambda: f"{names} in {home.alert('list').out}", every=0.1)


@scenario("each condition fires once, runs its program with all variables, and is in the list; a stale price fires nothing else", beside=True)
def _():
    place, simulator, daemon, home = scene()
    for words in ("--below 65000 --name low", "--above 72k --name high --once", "--change 5% --within 1h --name move", "--when-stale 20s",
                  "--when-unsure --max-uncertainty 30%"):
        home.alert("add", *words.split(), "--exec", str(home.program))
    service = home.serve()
    waits(home, "low", "high", "move", "stale", "unsure")
    simulator.faults("* always price x0.9\n")
    wait_until(lambda: len(home.told()) >= 2, what="low and move", seconds=60)
    simulator.faults("* always price x1.1\n")
    wait_until(lambda: home.told("high"), what="high", seconds=60)
    moved = len(home.told("move"))
    simulator.faults("* always status 503\n")
    wait_until(lambda: home.told("stale"), what="stale", seconds=60)
    listed = home.alert("list").out
    found = {name: len(home.told(name)) for name in ("low", "high", "stale")}
    equal(found, {"low": 1, "high": 1, "stale": 1}, listed)
    low = home.told("low")[0]
    equal((low["BTCCTL_CONDITION"], low["BTCCTL_VALUE"], low["BTCCTL_FRESHNESS"], low["BTCCTL_MESSAGE"]),
          ("below", "62010", "fresh", "Bitcoin is below $65,000.00: $62,010.00."))
    assert re.fullmatch(r"low-\d{13}", low["BTCCTL_ID"]), low
    stale = home.told("stale")[0]
    equal((stale["BTCCTL_CONDITION"], stale["BTCCTL_FRESHNESS"]), ("stale", "stale"))
    # From the dearest price of the hour to the cheapest one, and back.
    fall, rise = home.told("move")[:2]
    equal([(move["BTCCTL_PREVIOUS_VALUE"], move["BTCCTL_DIRECTION"], move["BTCCTL_MESSAGE"]) for move in (fall, rise)],
          [("68900", "down", "Bitcoin has fallen by 10 % within 60 min: $62,010.00."),
           ("62010", "up", "Bitcoin has risen by 22.22 % within 60 min: $75,790.00.")])
    equal((low["BTCCTL_PREVIOUS_VALUE"], low["BTCCTL_DIRECTION"]), ("", "flat"))
    for text in ("high: above $72,000.00; once\n  over;", "fired ", "Bitcoin is above $72,000.00: $75,790.00."):
        contains(listed, text)
    end(service)
    # Nothing is told again.
    simulator.faults("")
    settled(place)
    before = len(home.told())
    service = home.serve()
    waits(home, "low")
    time.sleep(3)
    equal({name: len(home.told(name)) for name in found}, found, service.lines)
    end(service)
    return f"{moved} moves, {before} in all"


@scenario("a crossing while the service was off fires once: with its time from the history, and without a history between two times", beside=True)
def _():
    figures = []
    for backfill in (True, False):
        place, simulator, daemon, home = scene(backfill=backfill, history=backfill)
        if backfill:
            wait_until(lambda: daemon.said("minutes from"), seconds=90, what=lambda: f"the history; {daemon.lines}")
        home.alert("add", "--below", "60000", "--exec", str(home.program))
        home.alert("add", "--below", "50000", "--exec", str(home.program))
        service = home.serve()
        waits(home, "below-60000")
        end(service)
        # What another price was, the exchange's candles say: the simulator's are those of its present price.
        text = home.file.read_text()
        state = home.kept()
        (home.state / "state.json").write_text(json.dumps(state).replace("below $60,000.00", "below $69,000.00"))
        home.file.write_text(text.replace('below = "60000"', 'below = "69000"'))
        home.seen(600)
        service = home.serve()
        wait_until(lambda: home.told(), seconds=60, what=lambda: f"the alert; {service.lines} {home.kept()} {btcctl(place, 'history', '--step', '1m', '-n', '13', '--csv').out}")
        end(service)
        service = home.serve()
        time.sleep(2)
        end(service)
        (told,) = home.told()
        message = told["BTCCTL_MESSAGE"]
        contains(message, "Bitcoin went below $69,000.00, at " if backfill else "Bitcoin went below $69,000.00, between ")
        figures.append(message)
    return "; ".join(figures)


@scenario("a program that fails runs again with the same id, after a restart too, and the list says so; what can't be started as well")
def _():
    place, simulator, daemon, home = scene()
    home.alert("add", "--below", "65000", "--name", "low", "--exec", str(home.program), "--", "-x", "a b")
    home.alert("add", "--below", "65000", "--name", "none", "--exec", str(home.folder / "nothing"))
    (home.folder / "status").write_text("3")
    service = home.serve()
    waits(home, "low", "none")
    simulator.faults("* always price x0.9\n")
    service.says("low: the command ended with status 3; it runs again in 5 s")
    service.says("can't be started: No such file or directory; it runs again in 5 s")
    wait_until(lambda: "! the command ended with status 3; it runs again in 5 s" in home.alert("list").out, what="the list", every=0.1)
    end(service)
    equal(len(home.kept()["pending"]), 2)
    (home.folder / "status").unlink()
    service = home.serve()
    wait_until(lambda: len(home.told("low")) == 2, what=lambda: f"the second run; {service.lines}")
    wait_until(lambda: "! the command ended" not in home.alert("list").out, what="a list without it", every=0.1)
    equal(len({run["BTCCTL_ID"] for run in home.told("low")}), 1)
    end(service)


@scenario("a program that hangs holds nothing else up; with LONG, that it is killed with its children")
def _():
    place, simulator, daemon, home = scene()
    hanging = home.folder / "hanging"
    nap = f"sleep {random.randint(10_000, 99_999)}"
    hanging.write_text(f"#!/bin/sh\n{nap} & {nap}\n")
    hanging.chmod(0o755)
    home.alert("add", "--below", "65000", "--name", "hangs", "--exec", str(hanging))
    home.alert("add", "--below", "65000", "--name", "low", "--exec", str(home.program))
    home.alert("add", "--above", "72000", "--name", "high", "--exec", str(home.program))
    service = home.serve()
    waits(home, "hangs", "low", "high")
    simulator.faults("* always price x0.9\n")
    wait_until(lambda: home.told("low"), what="the other one")
    simulator.faults("* always price x1.1\n")
    wait_until(lambda: home.told("high"), what="a later one", seconds=60)
    if "LONG" in os.environ:
        wait_until(lambda: service.said("ran for more than 60 s and was killed; it runs again in 5 s"), seconds=90, what=lambda: service.lines)
        equal(subprocess.run(["pgrep", "-c", "-f", f"^{nap}$"], capture_output=True, text=True).stdout.strip(), "0")
    end(service)
    subprocess.run(["pkill", "-f", f"^{nap}$"])


@scenario("the file is read again when it changes; what is wrong in it stays as it was, and is named with its line")
def _():
    place, simulator, daemon, home = scene()
    program = json.dumps([str(home.program)])
    good = f'# mine\n[alert.low]\nbelow = "65k"\nexec = {program}\n'
    home.write(good)
    service = home.serve()
    waits(home, "low")
    # A mistake in one alert, then no TOML at all.
    home.write(good.replace("65k", "soon") + f"\n[alert.high]\nabove = 72000\nexec = {program}\n")
    service.says("line 3: alert.low.below = \"soon\": ")
    wait_until(lambda: home.kept()["alerts"][-1]["name"] == "high", what=lambda: f"the other one; {home.kept()}")
    listed = home.alert("list", status=1)
    contains(listed.err, "line 3: alert.low.below")
    home.write("[alert.low\n")
    service.says("line 1, column 11: ")
    contains(home.alert("add", "--below", "1", status=1).err, "line 1, column 11")
    equal(home.file.read_text(), "[alert.low\n")
    waits_for = home.kept()
    equal([each["name"] for each in waits_for["alerts"]], ["low", "high"])
    simulator.faults("* always price x0.9\n")
    wait_until(lambda: home.told("low"), what=lambda: f"the alert that was right before; {service.lines}", seconds=60)
    # Removed, and back: it is a new alert.
    home.file.unlink()
    service.says("The alerts were read again: 0 alerts.")
    home.write(good)
    service.says("The alerts were read again: 1 alert.")
    waits(home, "low")
    equal(len(home.told("low")), 1)
    # A currency that the daemon does not keep.
    contains(home.alert("add", "--above", "1", "-c", "JPY", "--name", "yen", "--exec", str(home.program)).out,
             "! the daemon keeps no price in JPY, only in USD: this alert does not fire.")
    service.says("the daemon keeps no price in JPY: alerts in it do not fire.")
    wait_until(lambda: "\n  ! the daemon keeps no price in JPY\n" in home.alert("list").out, what=lambda: home.alert("list").out)
    contains(home.alert("test", "yen", status=1).err, "the daemon keeps no price in JPY: this alert does not fire")
    # Without a price there is no fresh one.
    contains(home.alert("add", "--when-stale", "10s", "-c", "JPY", "--name", "none", "--exec", str(home.program)).out,
             "! the daemon keeps no price in JPY, only in USD: it fires, as there is no fresh price.")
    wait_until(lambda: home.told("none"), what="the alert without a price", seconds=30)
    end(service)


@scenario("pause, resume, test and remove; two shells that add at once lose nothing; a name is not taken twice")
def _():
    place, simulator, daemon, home = scene()
    home.write("# kept\n")
    adding = [subprocess.Popen([BINARIES / "btcctl", "alert", "add", "--below", str(1000 + index), "--exec", str(home.program)],
                               env=home.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for index in range(20)]
    for each in adding:
        out, err = each.communicate(timeout=60)
        equal((each.returncode, err), (0, ""), out)
    text = home.file.read_text()
    equal(text.count("[alert."), 20)
    assert text.startswith("# kept\n\n[alert.")
    home.alert("add", "--below", "65000", "--name", "low", "--exec", str(home.program))
    equal(home.alert("add", "--below", "5", "--name", "low", status=1).err, f"btc-price-alert: {home.file}: there is an alert 'low' already\n")
    contains(home.alert("add", "--below", "1000", "--exec", str(home.program)).out, "below-1000-2: below $1,000.00.")
    contains(home.alert("remove", "lo", status=1).err, "there is no alert 'lo'. Did you mean 'low'?")
    service = home.serve()
    waits(home, "low")
    contains(home.alert("pause", "low").out, "btcctl alert resume low")
    contains(home.alert("list").out, "\n  paused;")
    time.sleep(1.5)
    simulator.faults("* always price x0.9\n")
    wait_until(lambda: "\n  paused;" in home.alert("list").out and home.kept()["alerts"][-2]["position"] == "beyond", seconds=60, every=0.1,
               what=lambda: f"the fall; {home.kept()}")
    equal((home.told(), home.kept()["alerts"][-2]["lastFired"]), ([], None))
    home.alert("resume", "low")
    contains(home.alert("test", "low").out, "This is a test: below $65,000.00.")
    (told,) = home.told()
    contains(told["BTCCTL_MESSAGE"], "This is a test: ")
    # One that is added is not paused, although one of its name was when it was removed by hand.
    home.alert("pause", "low")
    tables = home.file.read_text().split("\n[alert.")
    home.write("\n[alert.".join(table for table in tables if not table.startswith("low]")))
    service.says("The alerts were read again: 21 alerts.")
    home.alert("add", "--below", "65000", "--name", "low", "--exec", str(home.program))
    waits(home, "low")
    end(service)
    for name in re.findall(r"\[alert\.(\S+)\]", home.file.read_text()):
        home.alert("remove", name)
    equal(home.file.read_text(), "# kept\n")
    contains(home.alert("list").out, "There are no alerts in ")


@scenario("on a full disk alerts go on, and say once that nothing is saved; a damaged state is set aside")
def _():
    if os.geteuid() != 0:
        raise Skip("a file system is mounted as root")
    place, simulator, daemon, home = scene()
    home.alert("add", "--below", "65000", "--name", "low", "--exec", str(home.program))
    home.state.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", home.state], check=True)
    atexit.register(subprocess.run, ["umount", "-l", home.state], stderr=subprocess.DEVNULL)
    service = home.serve()
    waits(home, "low")
    with contextlib.suppress(OSError), open(home.state / "fill", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    simulator.faults("* always price x0.9\n")
    wait_until(lambda: home.told("low"), what="the alert", seconds=60)
    service.says("No space left on device: until it is saved, a restart may repeat an alert or miss one.")
    time.sleep(3)
    equal(sum("No space left" in line for line in service.lines), 1)
    (home.state / "fill").unlink()
    wait_until(lambda: service.said("The state is saved again."), seconds=30, what="that it is saved")
    end(service)
    (home.state / "state.json").write_text("{")
    service = home.serve()
    assert service.said("is damaged") and service.said("all alerts count as new"), service.lines
    end(service)


@scenario("the shipped programs send what an alert says to the address in their file, and fail if that is refused")
def _():
    got, status = [], 200

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place, simulator, daemon, home = scene()
    for name in ("ntfy", "webhook"):
        home.alert("add", "--below", "65000", "--name", name, "--exec", str(ROOT / "packaging/alerts" / name))
        home.file.with_name(name).write_text(f'url = "http://127.0.0.1:{server.server_port}/{name}"\n')
        home.file.with_name(name).chmod(0o600)
        home.alert("test", name)
    (path, headers, body), (form_path, _, form) = got
    equal((path, headers["Title"], body), ("/ntfy", "Bitcoin: ntfy", "This is a test: below $65,000.00. The price is $68,900.00."))
    assert re.fullmatch(r"ntfy-\d{13}", headers["X-Sequence-ID"]), headers
    fields = dict(urllib.parse.parse_qsl(form, keep_blank_values=True))
    equal((form_path, fields["alert"], fields["value"], fields["currency"]), ("/webhook", "webhook", "68900", "USD"))
    status = 500
    contains(home.alert("test", "webhook", status=1).err, "the command ended with status 22")
    server.shutdown()


@scenario("a second service, wrong rights and wrong command lines are refused with a reason")
def _():
    place, simulator, daemon, home = scene()
    home.alert("add", "--below", "65000")
    contains(home.alert("list").out, "! The service does not run: 'systemctl --user enable --now btc-price-alert' starts it.")
    service = home.serve()
    contains(home.alert("run", status=1).err, f"the alerts are kept already, by process {service.process.pid}")
    assert "does not run" not in home.alert("list").out
    end(service)
    for words in ("add", "add --below x", "add --below 1 --above 2", "add --change 5%", "add --when-stale 1s", "add --below 5 --within 1h",
                  "add --below €5 -c USD", "add --below 5 --name a/b", "add --below 5 x", "add --below 5 --exec", "pause", "lst"):
        home.alert(*words.split(), status=64)
    for words in ("pause x", "resume x", "test x", "remove x"):
        contains(home.alert(*words.split(), status=1).err, "there is no alert 'x'")
    # Without a daemon, a currency has to be named.
    daemon.stop()
    contains(home.alert("add", "--below", "7", status=64).err, "add -c USD")
    home.alert("add", "--below", "7", "-c", "USD")
    # Not through a link, and the system's alerts are root's.
    real = home.file.with_name("real.toml")
    home.file.rename(real)
    home.file.symlink_to(real)
    contains(home.alert("add", "--below", "8", "-c", "USD", status=1).err, "a symbolic link")
    contains(home.alert("list").out, "below-7: below $7.00")


@scenario("every command and option is in the manual; btcctl alert is the same program, for the help and for completions as well")
def _():
    manual = re.sub(r".\x08", "", subprocess.run(["mandoc", "-Tascii", ROOT / "packaging/man/btc-price-alert.1"], capture_output=True, text=True).stdout)
    contains((ROOT / "packaging/man/btcctl.1").read_text(), "\n.It Cm alert\n")

    def run(program, *words):
        done = subprocess.run([BINARIES / program, *words], capture_output=True, text=True, timeout=20)
        return done.returncode, done.stdout, done.stderr
    overview = run("btc-price-alert", "--help")[1]
    for words in ([], *([word] for word in re.findall(r"(?m)^  (\w+) {2,}", overview.split("\nCommands:")[1]))):
        status, out, err = run("btc-price-alert", *words, "--help")
        equal((status, err), (0, ""))
        for found in (run("btcctl", "alert", *words, "--help"), run("btcctl", "help", "alert", *words)):
            equal(found, (0, out, ""), words)
        assert not words or re.search(rf"(?m)^ +(\w+ name, )?{words[0]}\b", manual), words
        for option in re.findall(r"--[a-z-]+", out.split("\nOptions:")[1].split("\nCommands:")[0]):
            assert option in manual or option in ("--help", "--version"), option
        assert all(len(line) <= 80 for line in out.splitlines()), out
    contains(run("btcctl", "---complete", "alert", "add", "--be")[1], "--below\t")
    contains(run("btcctl", "---complete", "alert", "re")[1], "remove\t")
    contains(run("btcctl", "---complete", "aler")[1], "alert\t")
    # Without the package.
    alone = Path(tempfile.mkdtemp(prefix="btc-priced-alone-"))
    atexit.register(shutil.rmtree, alone, ignore_errors=True)
    shutil.copy(BINARIES / "btcctl", alone)
    done = subprocess.run([alone / "btcctl", "alert", "list"], capture_output=True, text=True, env={**os.environ, "PATH": "/usr/bin:/bin"})
    if not Path("/usr/bin/btc-price-alert").exists():
        equal((done.returncode, done.stdout), (69, ""))
        contains(done.stderr, "apt install btc-price-alert")


@scenario("many alerts cost little: processor time, memory, and a crossing of all of them at once")
def _():
    place, simulator, daemon, home = scene()
    count = int(os.environ.get("ALERTS", "100"))
    program = json.dumps([str(home.program)])

    def cost(count):
        home.write("".join(f'[alert.a{index}]\nbelow = {60000 + index}\nexec = {program}\n' for index in range(count)))
        service = home.serve()
        waits(home, f"a{count - 1}")
        before = delayed(service.process)
        ticks = lambda: sum(int(word) for word in Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13])
        begun, at = ticks(), time.monotonic()
        time.sleep(10)
        used = (ticks() - begun) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - at)
        return service, used, memory(service.process)

    service, one, small = cost(1)
    end(service)
    service, used, large = cost(count)
    # Bounds for something that has gone wrong, not measures.
    assert used < 0.2 and large - small < 64 * 1024, (used, large - small)
    simulator.faults("* always price x0.8\n")
    wait_until(lambda: sum(1 for _ in home.folder.glob("told.*")) == count, seconds=120, every=0.2,
               what=lambda: f"{count} programs, of which {sum(1 for _ in home.folder.glob('told.*'))} ran")
    end(service)
    equal(len(home.kept()["pending"]), 0)
    return (f"1: {one * 1000:.1f} ms of processor time a second, {small} KiB; {count}: {used * 1000:.1f} ms, {large} KiB")


main()
