#!/usr/bin/env python3
"""The packages on a Debian booted in a container with systemd as process 1, with the simulator as the exchange.

    SUITES="bookworm trixie" Tests/System/200-package.py     on Debian 12 and 13; without SUITES, on Debian 12"""

import ctypes
import os
import shutil
import struct

from lib.brokers import *
from lib import examples
from lib.gateway import get
from lib.machine import (
    CONFIGURATION, CONFIGURATION_PATH, PORT, UNIT, base, configure, current, fresh_price, on_each, package, start_exchange, stop_exchange)

# The shipped time of the watchdog is 30 s. Only this wait is shorter here.
QUICK_WATCHDOG = "[Service]\nWatchdogSec=3\n"

class Watching:
    """btcctl watch in the machine, with its states."""

    def __init__(self, machine):
        self.process = machine.start("btcctl", "watch", "--json", stdout=subprocess.PIPE, text=True)
        self.objects = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.objects.append(json.loads(line))

    @property
    def states(self):
        return [o for o in list(self.objects) if "error" not in o]

    def stop(self):
        self.process.kill()
        self.process.wait()


def main_pid(machine):
    return int(machine.show(UNIT, "MainPID"))


def host_pid(machine, pid):
    """The process as seen from outside the container."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        match = re.search(r"(?m)^NSpid:\t(\d+)\t(\d+)$", text)
        if match and match[2] == str(pid) and "btc-priced" in text.splitlines()[0]:
            return int(match[1])
    raise AssertionError(f"no process {pid} in there")


def restarts(machine):
    return int(machine.show(UNIT, "NRestarts"))


# --- Install ---------------------------------------------------------------------------------------------------------

@on_each("after the installation the daemon runs, and has a price in its status line")
def _(machine):
    start_exchange(machine)
    shutil.copy(package(), machine.root / "opt" / "btc-priced.deb")
    machine.run("dpkg", "-i", "/opt/btc-priced.deb", timeout=120)
    equal(machine.systemctl("is-active", "btc-priced.socket", UNIT).stdout.split(), ["active", "active"])
    configure(machine)
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    line = machine.run("btcctl", "current").stdout
    assert re.match(r"[A-Z][a-z]{2} \d+, \d\d:\d\d - \$[\d,]+\.\d\d\n$", line), line
    status = machine.systemctl("status", "--no-pager", UNIT).stdout
    assert re.search(r'Status: "[\d.]+ USD from binance at ', status), status
    for name in ("btc-priced", "btcctl"):
        equal(machine.run(name, "--version").stdout, f"{name} {FULL_VERSION}\n")
    return line.strip()


@on_each("a stop is prompt, and a call through the socket unit starts the daemon")
def _(machine):
    begun = time.monotonic()
    machine.systemctl("stop", UNIT)
    took = time.monotonic() - begun
    assert took < 2, took
    equal(machine.systemctl("is-active", UNIT, check=False).stdout.strip(), "inactive")
    found = current(machine)
    assert found.get("quote"), found
    # The daemon replies before systemd has read that it is ready.
    wait_until(lambda: machine.systemctl("is-active", UNIT, check=False).stdout.strip() == "active", what="the service")
    fresh_price(machine)
    return f"stopped in {took:.2f} s"


@on_each("a client that polls starts a stopped service again; with the socket's stop both stay stopped")
def _(machine):
    machine.systemctl("stop", UNIT)
    for _ in range(3):
        current(machine)
    equal(machine.systemctl("is-active", UNIT).stdout.strip(), "active")
    machine.systemctl("stop", "btc-priced.socket")
    equal(machine.run("btcctl", "current", check=False).returncode, 69)
    equal(machine.systemctl("is-active", "btc-priced.socket", UNIT, check=False).stdout.split(), ["inactive", "inactive"])
    manual = subprocess.run(["mandoc", "-Tascii", ROOT / "packaging/man/btc-priced.8"], capture_output=True, text=True).stdout
    assert "systemctl stop btc-priced.socket" in " ".join(re.sub(r".\x08", "", manual).split()), "the manual says how"


@on_each("after starts and stops in any order the daemon is reachable")
def _(machine):
    for first in (["start", UNIT], ["start", "btc-priced.socket"], ["restart", UNIT], ["restart", "btc-priced.socket"],
                  ["stop", UNIT], ["start", "btc-priced.socket"], ["start", UNIT], ["stop", "btc-priced.socket"],
                  ["start", UNIT], ["restart", "btc-priced.socket", UNIT], ["stop", UNIT, "btc-priced.socket"],
                  ["start", "btc-priced.socket", UNIT]):
        machine.systemctl(*first)
        if first[0] != "stop":
            assert current(machine).get("quote"), first
    fresh_price(machine)


@on_each("a waiting client does not cause endless starts of a daemon that can't start, which works again after a repair")
def _(machine):
    machine.systemctl("stop", "btc-priced.socket")
    machine.systemctl("start", "btc-priced.socket")
    configure(machine, "tick.interval-ms = 5\n")
    since = machine.sh("date +%s.%N").stdout.strip()
    waiting = machine.start("btcctl", "watch", stdout=subprocess.DEVNULL)
    wait_until(lambda: machine.show("btc-priced.socket", "ActiveState") == "failed", what="the end of it", every=0.05)
    starts = machine.journal("-u", UNIT, "--since", f"@{since}").count("must be a whole number from 100 to 3600000")
    # systemd counts ten starts in spans of 20 s. One that an earlier test has begun may end meanwhile.
    assert 1 <= starts < 20, starts
    # Not sooner: the client still connects in a loop, and while the limit is used up, the socket would fail again.
    time.sleep(20.2)
    configure(machine)
    machine.systemctl("start", UNIT)
    fresh_price(machine)
    waiting.kill()
    equal(machine.systemctl("is-active", "btc-priced.socket").stdout.strip(), "active")
    return f"{starts} starts"


@on_each("a pause during the start works")
def _(machine):
    machine.systemctl("stop", UNIT)
    machine.run("btcctl", "pause")
    time.sleep(2.2)
    found = current(machine)
    equal((found["freshness"], found["failure"]), ("stale", "paused"))
    machine.run("btcctl", "resume")
    fresh_price(machine)


@on_each("units that need a price wait for a fresh one")
def _(machine):
    machine.systemctl("stop", "btc-priced.socket")
    begun = time.monotonic()
    machine.systemctl("start", "btc-priced-wait-fresh.service")
    took = time.monotonic() - begun
    equal(current(machine)["freshness"], "fresh")
    equal(machine.systemctl("is-active", "btc-priced-wait-fresh.service").stdout.strip(), "active")
    machine.systemctl("stop", "btc-priced-wait-fresh.service")
    return f"{took:.2f} s"


# --- Liveness --------------------------------------------------------------------------------------------------------

@on_each("killed, stopped past the watchdog, wedged, and started twenty times in a row, the daemon serves again; a watch survives all of it")
def _(machine):
    machine.write(f"/run/systemd/system/{UNIT}.d/watchdog.conf", QUICK_WATCHDOG)
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    watching = Watching(machine)
    wait_until(lambda: watching.states, what="a state")

    def survives(what, seconds=20):
        instance = current(machine)["instance"]
        before = main_pid(machine)
        what(before)
        wait_until(lambda: main_pid(machine) not in (0, before), seconds=seconds, what="a new process", every=0.05)
        found = wait_until(lambda: (s := current(machine)).get("instance", instance) != instance and s, what="an answer", every=0.05)
        assert found["quote"], found
        fresh_price(machine)
        wait_until(lambda: watching.states[-1]["instance"] == found["instance"], what="the watch")

    survives(lambda pid: machine.sh(f"kill -KILL {pid}"))
    survives(lambda pid: machine.sh(f"kill -STOP {pid}"))
    survives(lambda pid: wedge(host_pid(machine, pid), {"varlink"}))
    survives(lambda pid: wedge(host_pid(machine, pid), {"btc-priced", "varlink", "NIO-ELT-0-#0", "NIO-ELT-1-#0"}, spare=True))
    for _ in range(20):
        machine.systemctl("restart", UNIT)
        assert current(machine).get("quote")
    fresh_price(machine)
    instances = list(dict.fromkeys(s["instance"] for s in watching.states))
    final = current(machine)["instance"]
    wait_until(lambda: watching.states[-1]["instance"] == final, what="the watch")
    equal(watching.process.poll(), None)
    watching.stop()
    journal = machine.journal("-u", UNIT)
    equal(journal.count("Watchdog timeout"), 3)
    return f"24 restarts, the watch saw {len(instances)} of 25 instances, {len(watching.states)} states"


def wedge(pid, names, spare=False):
    """Stops only the threads with these names, or all others, by ptrace(2), from a process that then sleeps."""
    def stop():
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        stopped = 0
        for task in Path(f"/proc/{pid}/task").iterdir():
            name = (task / "comm").read_text().strip()
            if (name in names) != spare:
                assert libc.ptrace(0x4206, int(task.name), None, None) == 0, "PTRACE_SEIZE"
                assert libc.ptrace(0x4207, int(task.name), None, None) == 0, "PTRACE_INTERRUPT"
                stopped += 1
        os.write(writer, struct.pack("i", stopped))
        # The tracer of a thread is notified of its end. Until then the thread still exists.
        while True:
            os.waitpid(-1, 0x40000000)  # __WALL
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            stop()
        finally:
            os._exit(1)
    os.close(writer)
    stopped = os.read(reader, 4)
    os.close(reader)
    wedged.append(child)
    assert stopped and struct.unpack("i", stopped)[0] > 0, "no thread was stopped"


wedged = []
atexit.register(lambda: [os.kill(pid, signal.SIGKILL) for pid in wedged])


@on_each("exchanges that are down, a pause and clients at their limit do not trip the watchdog")
def _(machine):
    machine.write(f"/run/systemd/system/{UNIT}.d/watchdog.conf", QUICK_WATCHDOG + "LimitNOFILE=64\n")
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    before = restarts(machine)
    stop_exchange(machine)
    machine.run("btcctl", "pause")
    held = machine.start("bash", "-c", "for i in {1..60}; do btcctl watch & done; sleep 11; kill $(jobs -p)", stdout=subprocess.DEVNULL)
    time.sleep(6)
    # Other users are not affected.
    status = json.loads(machine.run("setpriv", "--reuid", "nobody", "--clear-groups", "btcctl", "status", "--json").stdout)["status"]
    hits = {limit["name"]: limit["hits"] for limit in status["clients"]["limits"]}
    assert hits["connectionsPerUser"] > 10 and status["clients"]["watchers"] > 10, status["clients"]
    assert "A client of user 0 was refused: it has 30 connections already." in machine.journal("-u", UNIT)
    held.wait(timeout=20)
    machine.run("btcctl", "resume")
    time.sleep(4)
    equal(restarts(machine), before)
    start_exchange(machine)
    fresh_price(machine)
    return f"{hits['connectionsPerUser']} clients turned away"


@on_each("a journal that hangs for longer than the watchdog waits costs neither the daemon nor the price")
def _(machine):
    # A line for each tick, and one that waits already holds up the others.
    machine.write(f"/run/systemd/system/{UNIT}.d/watchdog.conf", "[Service]\nWatchdogSec=6\nEnvironment=BTC_PRICED_LOG_LEVEL=debug\n")
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    pid, before = main_pid(machine), restarts(machine)
    lines = lambda: machine.journal("-u", UNIT).count(" ms late, ")
    ticks = lines()
    machine.systemctl("kill", "-s", "STOP", "systemd-journald")
    begun, found = time.monotonic(), []
    try:
        fill_queue(f"/proc/{machine.leader}/root/run/systemd/journal/socket", b"MESSAGE=fill\n")
        while time.monotonic() < begun + 10:
            found.append(current(machine)["freshness"])
            time.sleep(0.2)
    finally:
        machine.systemctl("kill", "-s", "CONT", "systemd-journald")
    equal(set(found), {"fresh"})
    wait_until(lambda: lines() >= ticks + 8, what="the log")
    equal((main_pid(machine), restarts(machine), machine.show(UNIT, "ActiveState")), (pid, before, "active"))
    fresh_price(machine)
    return f"{lines() - ticks} lines waited for the journal"


# --- Reload ----------------------------------------------------------------------------------------------------------

@on_each("a valid file is loaded without losing a tick, a watcher or the price; an invalid one is refused, and the old one stays")
def _(machine):
    machine.sh(f"rm -r /run/systemd/system/{UNIT}.d")
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    watching = Watching(machine)
    wait_until(lambda: len(watching.states) > 1, what="states")
    pid = main_pid(machine)
    configure(machine, CONFIGURATION.replace('"binance", "coinbase"', '"coinbase", "binance"') + "tick.interval-ms = 500\n")
    machine.systemctl("reload", UNIT)
    wait_until(lambda: watching.states[-1]["quote"]["source"] == "coinbase", what="the new order")
    configure(machine)
    machine.systemctl("reload", UNIT)
    wait_until(lambda: watching.states[-1]["quote"]["source"] == "binance", what="the old order")
    journal = machine.journal("-u", UNIT)
    assert "The configuration was reloaded: sources, tick.interval-ms." in journal, journal
    for bad, complaint in (
        ("tick.interval-ms = 5\n", f"{CONFIGURATION_PATH}, line 4: tick.interval-ms = 5: must be a whole number from 100 to 3600000"),
        ("tick.intervall = 5\n", f"{CONFIGURATION_PATH}, line 4: unknown key tick.intervall"),
    ):
        configure(machine, CONFIGURATION + bad)
        refused = machine.systemctl("reload", UNIT, check=False)
        assert refused.returncode != 0, "systemctl reload has to fail"
        # The line may come after the end of the process.
        wait_until(lambda: complaint in machine.journal("-p", "err", "-u", UNIT), what=complaint)
    # Signalled without the check, the daemon itself refuses the file.
    machine.sh(f"kill -HUP {pid}")
    wait_until(lambda: "The new configuration is refused, and the old one stays: " in machine.journal("-u", UNIT), what="the refusal")
    # It returns when the new configuration is in use.
    for number in range(10):
        configure(machine, CONFIGURATION + ('currencies = ["USD", "EUR"]\n' if number % 2 == 0 else ""))
        machine.systemctl("reload", UNIT)
        known = json.loads(machine.sh("btcctl current -c EUR --json; true").stdout)
        equal(known.get("error") != "usage", number % 2 == 0, f"reload {number}: {known}")
    configure(machine)
    machine.systemctl("reload", UNIT)
    time.sleep(1.5)
    equal(main_pid(machine), pid, "the same process")
    states = watching.states
    watching.stop()
    ticks = [s["tick"] for s in states]
    equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "no tick lost")
    equal({s["instance"] for s in states}, {states[0]["instance"]}, "no watcher lost")
    equal({s["freshness"] for s in states}, {"fresh"}, "no price lost")
    equal(machine.show(UNIT, "ActiveState"), "active")
    return f"{len(states)} states without a gap"


# --- Sleep -----------------------------------------------------------------------------------------------------------

@on_each("the ticks stop before a sleep, and the first one after it is at once, on new connections")
def _(machine):
    # logind can't suspend a container. The test takes its name on the bus and sends its signals.
    machine.systemctl("mask", "--now", "systemd-logind", check=False)
    bus = ctypes.CDLL("libsystemd.so.0")
    handle = ctypes.c_void_p()
    assert bus.sd_bus_new(ctypes.byref(handle)) >= 0
    address = f"unix:path=/proc/{machine.leader}/root/run/dbus/system_bus_socket".encode()
    assert bus.sd_bus_set_address(handle, address) >= 0 and bus.sd_bus_set_bus_client(handle, 1) >= 0
    assert bus.sd_bus_start(handle) >= 0

    def own():
        return bus.sd_bus_request_name(handle, b"org.freedesktop.login1", ctypes.c_uint64(0)) >= 0
    wait_until(own, what="logind's name", every=0.1)

    def say(is_about_to_sleep):
        assert bus.sd_bus_emit_signal(
            handle, b"/org/freedesktop/login1", b"org.freedesktop.login1.Manager", b"PrepareForSleep", b"b",
            ctypes.c_int(is_about_to_sleep)) >= 0
        bus.sd_bus_flush(handle)

    configure(machine, CONFIGURATION + "tick.interval-ms = 5000\n")
    machine.systemctl("restart", UNIT)
    fresh_price(machine)

    def connections():
        """The local ports of the daemon's connections to the exchange."""
        rows = [line.split() for line in machine.run("cat", "/proc/net/tcp").stdout.splitlines()[1:]]
        return {row[1].split(":")[1] for row in rows if row[2].endswith(f":{PORT:04X}") and row[3] == "01"}
    kept = connections()
    equal(len(kept), 1, "one connection is kept")
    say(1)
    wait_until(lambda: current(machine)["failure"] == "paused", what="the end of the ticks", every=0.02)
    tick = current(machine)["tick"]
    say(0)
    begun = time.monotonic()
    wait_until(lambda: (s := current(machine))["freshness"] == "fresh" and s["tick"] == tick + 1, seconds=2, what="a tick at once", every=0.02)
    took = time.monotonic() - begun
    assert connections() - kept, "a new connection after it"
    wait_until(lambda: not connections() & kept, what="the end of the old one", every=0.1)
    bus.sd_bus_flush_close_unref(handle)
    machine.systemctl("unmask", "systemd-logind")
    configure(machine)
    machine.systemctl("restart", UNIT)
    return f"a tick {took * 1000:.0f} ms after the wake-up, of an interval of 5 s"


# --- Disk ------------------------------------------------------------------------------------------------------------

@on_each("a full, read-only, damaged or foreign state directory: the price is served, and the journal reports the error")
def _(machine):
    state = "/var/lib/btc-priced"

    def restarted(prepare, complaint, undo):
        machine.systemctl("stop", UNIT)
        machine.sh(prepare)
        since = machine.sh("date +%s.%N").stdout.strip()
        machine.systemctl("start", UNIT)
        fresh_price(machine)
        wait_until(lambda: re.search(complaint, machine.journal("-u", UNIT, "--since", f"@{since}")),
                   what=lambda: f"{complaint} in {machine.journal('-u', UNIT, '--since', f'@{since}')}", every=0.1)
        equal(machine.systemctl("is-active", UNIT).stdout.strip(), "active")
        machine.systemctl("stop", UNIT)
        machine.sh(undo)

    restarted(f"mount -t tmpfs -o size=16k,mode=755 tmpfs {state} && touch {state}/lock && head -c 20000 /dev/zero >{state}/fill || true",
              r"cannot write /var/lib/btc-priced/last-quote.json.*No space left on device", f"umount {state}")
    restarted(f"mount -t tmpfs -o mode=755 tmpfs {state} && chown btc-priced: {state} && mount -o remount,ro {state}",
              r"(cannot (lock|write) /var/lib/btc-priced.*Read-only file system)", f"umount {state}")
    restarted(f"for f in {state}/last-quote.json /run/btc-priced/last-quote.json; do head -c 300 /dev/urandom >$f; done",
              r"last-quote.json is damaged \(.*\); set aside as .*last-quote.json.corrupt", "true")
    # systemd restores the owner of the folder at each start, so its content gets another owner and becomes unreadable.
    restarted(f"rm -rf {state}/* && mkdir {state}/last-quote.json && touch {state}/last-quote.json/x && chown -R root: {state}/last-quote.json",
              r"cannot (write|read) /var/lib/btc-priced/last-quote.json", f"rm -rf {state}/*")
    machine.systemctl("start", UNIT)
    fresh_price(machine)


@on_each("after a reboot with the exchange down, the stored price is shown with its banner, and its age as an estimate")
def _(machine):
    machine.systemctl("stop", UNIT)
    machine.systemctl("start", UNIT)
    kept = fresh_price(machine)["quote"]
    machine.reboot()
    found = wait_until(lambda: (s := current(machine)).get("quote") and s, what="the kept price", every=0.1)
    equal((found["freshness"], found["ageIsEstimate"], found["observedBoottime"]), ("stale", True, None))
    assert found["quote"]["timestamp"] >= kept["timestamp"] - 1, (found, kept)
    shown = machine.run("btcctl", "current")
    assert shown.stderr.startswith("Failed to update value. Displaying last updated value from "), shown.stderr
    start_exchange(machine)
    # Both sources may be in cooldown by now. They are requested anyway, because no other source is left.
    fresh_price(machine, seconds=15)
    return shown.stderr.strip()


# --- Calls of programs and operators ----------------------------------------------------------------------------------

@on_each("journalctl -x explains each message, and the fields are for programs")
def _(machine):
    explained = machine.journal("-x", "-u", UNIT, "-n", "400")
    for subject in ("Subject: btc-priced answers", "Subject: There is a price", "Subject: The price is not current"):
        assert subject in explained, subject
    assert "'btcctl sources' shows each source with its reason" in explained
    entries = [json.loads(line) for line in machine.journal("-u", UNIT, "-o", "json").splitlines()]
    ours = [e for e in entries if e.get("SYSLOG_IDENTIFIER") == "btc-priced" and e.get("_COMM") == "btc-priced"]
    without = [e["MESSAGE"] for e in ours if "MESSAGE_ID" not in e and "not set" not in e["MESSAGE"] and "--" not in e["MESSAGE"]]
    texts = {text[:32]: text for text in (ROOT / "packaging/btc-priced.catalog").read_text().split("\n-- ")[1:]}
    for entry in ours:
        # A field that the entry lacks would leave a gap in the sentence.
        wanted = set(re.findall(r"@(\w+)@", texts.get(entry.get("MESSAGE_ID"), "")))
        assert wanted <= entry.keys(), (entry, wanted)
    priced = [e for e in ours if e.get("BTC_PRICE")]
    assert priced and priced[-1]["BTC_SOURCE"] in ("binance", "coinbase"), priced
    assert any(e.get("BTC_ERROR") for e in ours)
    # On a busy machine only one of the sources may have answered once, which is a warning.
    equal({e["PRIORITY"] for e in priced if "in doubt" not in e["MESSAGE"]} - {"5", "6"}, set())
    return f"{len(ours)} entries; without an id: {sorted(set(without))[:3]}"


@on_each("with one peer and no network the daemon follows, becomes stale within three intervals of the peer's death, and recovers")
def _(machine):
    # A second daemon of another user, at a path that the service can reach.
    machine.sh("id peer >/dev/null 2>&1 || useradd --system peer")
    peer = "/run/btc-priced-peers/alpha"
    machine.write("/etc/peer.toml", CONFIGURATION + f'socket.path = "{peer}"\n')
    machine.write("/run/systemd/system/peer.service", "[Service]\nUser=peer\nStateDirectory=peer\nRuntimeDirectory=peer "
                  "btc-priced-peers\nUMask=0000\nExecStart=/usr/bin/btc-priced --config /etc/peer.toml\n")
    drop_in = f"/run/systemd/system/{UNIT}.d/peer.conf"
    machine.write(drop_in, "[Service]\nPrivateNetwork=yes\nRestrictAddressFamilies=\nRestrictAddressFamilies=AF_UNIX\n")
    configure(machine, f'sources = ["alpha"]\nsource.alpha.socket = "{peer}"\n')
    machine.systemctl("daemon-reload")
    machine.systemctl("start", "peer")
    wait_until(lambda: json.loads(machine.run("btcctl", "current", "--json", "--socket", peer, check=False).stdout or "{}").get(
        "freshness") == "fresh", what="the peer's price", every=0.05)
    machine.systemctl("restart", UNIT)
    equal(fresh_price(machine)["quote"]["via"], "alpha")
    watching = Watching(machine)
    wait_until(lambda: watching.states and watching.states[-1]["freshness"] == "fresh", what="a fresh state")
    machine.sh("systemctl kill -s KILL peer")
    begun = time.monotonic()
    wait_until(lambda: watching.states[-1]["freshness"] == "stale", what="a stale state")
    stale = time.monotonic() - begun
    assert stale <= 3, stale
    machine.systemctl("reset-failed", "peer")
    machine.systemctl("start", "peer")
    begun = time.monotonic()
    wait_until(lambda: watching.states[-1]["freshness"] == "fresh", what="the price again")
    back = time.monotonic() - begun
    watching.stop()
    machine.systemctl("stop", "peer")
    machine.sh(f"rm {drop_in} /etc/peer.toml")
    configure(machine)
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    return f"stale {stale:.2f} s after the peer's death, back {back:.2f} s after its start"


@on_each("the service is hardened more than the distribution's network daemons, and its units are valid")
def _(machine):
    levels = {}
    for unit in (UNIT, "btc-priced-wait-fresh.service"):
        text = machine.run("systemd-analyze", "security", "--no-pager", unit, check=False).stdout
        levels[unit] = float(re.search(r"Overall exposure level for .*: ([\d.]+)", text)[1])
    assert levels[UNIT] <= 1.2, levels
    verified = machine.sh("cd /lib/systemd/system && systemd-analyze verify --man=no btc-priced.service btc-priced.socket "
                          "btc-priced-wait-fresh.service; systemd-analyze verify --man=no --user /usr/lib/systemd/user/btc-priced.service",
                          check=False)
    complaints = [line for line in (verified.stdout + verified.stderr).splitlines() if "btc-priced" in line]
    equal(complaints, [])
    return ", ".join(f"{unit} {level}" for unit, level in levels.items())


@on_each("the units are where the distribution has its own")
def _(machine):
    units = [UNIT, "btc-priced.socket", "btc-priced-wait-fresh.service"]
    for unit in units:
        path = machine.show(unit, "FragmentPath")
        found = machine.run("dpkg", "-S", path, check=False).stdout.strip()
        # Debian 12 shows the path in /lib, where its packages have units; later ones that in /usr/lib.
        equal(found, f"btc-priced: {path}")
    return path


@on_each("the suite's own lintian reports no error")
def _(machine):
    if machine.suite == "bookworm":
        return "the scenario below has it"
    tree, packed = base(machine.suite, "ca-certificates,lintian"), ROOT / ".build" / "deb"
    inside = tree / "packed"
    shutil.rmtree(inside, ignore_errors=True)
    inside.mkdir()
    for package in packed.glob("*.deb"):
        shutil.copy(package, inside)
    done = subprocess.run(
        ["chroot", tree, "sh", "-c", "lintian --allow-root --fail-on error --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog /packed/*.deb"],
        capture_output=True, text=True)
    told = done.stdout.splitlines()
    equal((done.returncode, [line for line in told if line.startswith("E:")]), (0, []), done.stderr)
    return f"{len(told)} lines: {sorted({line.split()[2] for line in told if line.count(' ') > 1})}"


@on_each("systemd's own client can use the interface")
def _(machine):
    if machine.run("sh", "-c", "command -v varlinkctl", check=False).returncode != 0:
        assert machine.suite == "bookworm", "varlinkctl has to be there"
        return "no varlinkctl here: systemd 252 has none"
    address = "/run/btc-priced/io.btcpriced.Price"
    info = machine.run("varlinkctl", "info", address).stdout
    assert "btc-priced" in info and "io.btcpriced.Price" in info, info
    text = machine.run("varlinkctl", "introspect", address, "io.btcpriced.Price").stdout
    assert "method GetStatus(" in text and re.search(r"type Source ?\(", text), text
    state = json.loads(machine.run("varlinkctl", "call", "--json=short", address, "io.btcpriced.Price.GetPrice", "{}").stdout)
    equal(state["state"]["freshness"], "fresh")
    watch = machine.start(
        "varlinkctl", "call", "-E", "--json=short", address, "io.btcpriced.Price.WatchPrice", "{}", stdout=subprocess.PIPE, text=True)
    ticks = [json.loads(watch.stdout.readline().lstrip("\x1e"))["state"]["tick"] for _ in range(3)]
    watch.kill()
    equal(ticks, list(range(ticks[0], ticks[0] + 3)))
    failed = machine.run("varlinkctl", "call", address, "io.btcpriced.Price.GetPrice", '{"cachePolicy":"x"}', check=False)
    # systemd 262 prints an errno's text instead of the name of the error. Its parameters are on standard output.
    assert failed.returncode == 1 and '"cachePolicy"' in failed.stdout, failed
    return info.splitlines()[0].strip()


@on_each("a member of the group may pause, another user may not: the peer credentials work under the hardening")
def _(machine):
    machine.sh("useradd member -G btc-priced; useradd stranger")
    def may(user):
        return machine.run("setpriv", "--reuid", user, "--regid", user, "--init-groups", "btcctl", "pause", check=False).returncode
    equal((may("member"), may("stranger")), (0, 77))
    machine.run("btcctl", "resume")
    fresh_price(machine)


@on_each("a user has their own daemon by the user's manager, in addition to the system's")
def _(machine):
    machine.sh("useradd --create-home --uid 4321 alice && systemctl start user@4321")
    machine.sh(f"mkdir -p /home/alice/.config/btc-priced && cp {CONFIGURATION_PATH} /home/alice/.config/btc-priced/ && chown -R alice: /home/alice")

    def alice(*arguments, **options):
        return machine.run(
            "setpriv", "--reuid", "alice", "--regid", "alice", "--init-groups", *arguments,
            env={"HOME": "/home/alice", "XDG_RUNTIME_DIR": "/run/user/4321"}, **options)

    alice("systemctl", "--user", "start", "btc-priced")
    own = wait_until(
        lambda: (s := json.loads(alice("btcctl", "status", "--json").stdout)["status"])["state"]["freshness"] == "fresh" and s,
        what="her price", every=0.1)
    equal(own["store"]["stateDirectory"], "/home/alice/.local/state/btc-priced")
    assert own["state"]["instance"] != current(machine)["instance"]
    alice("btcctl", "pause")
    alice("btcctl", "resume")
    alice("systemctl", "--user", "reload", "btc-priced")
    # The command ends when the signal is sent, and the daemon reloads after it.
    wait_until(
        lambda: alice("systemctl", "--user", "is-active", "btc-priced", check=False).stdout.strip() == "active", what="the end of the reload")
    alice("systemctl", "--user", "stop", "btc-priced")
    # Without her own daemon she gets the machine's price.
    equal(json.loads(alice("btcctl", "current", "--json").stdout)["instance"], current(machine)["instance"])
    machine.systemctl("stop", "user@4321")
    machine.sh("userdel --remove alice 2>/dev/null; true")


@on_each("the manual's commands for an operator work as described")
def _(machine):
    manual = examples.of_manual(ROOT / "packaging" / "man" / "btc-priced.8")

    def do(start):
        (example,) = [example for example in manual if example.startswith(start)]
        return machine.sh(f"cd /root; export SYSTEMD_PAGER=; {example}").stdout

    def both(*states):
        equal(machine.systemctl("is-active", "btc-priced.socket", UNIT, check=False).stdout.split(), list(states), "socket and service")

    do("systemctl enable")
    both("active", "active")
    do("systemctl reload")
    # Whatever it opens, the command after it counts.
    machine.sh("ln -s /bin/true /usr/local/bin/editor")
    do("editor")
    assert "sources" in do("btc-priced --print-config")
    do("journalctl")
    machine.sh("echo secret >/root/key")
    do("install -d")
    both("active", "active")
    equal(machine.sh("stat -c %a /etc/credstore /etc/credstore/cryptocompare-api-key").stdout.split(), ["700", "600"])
    machine.sh("rm -r /etc/credstore /root/key /usr/local/bin/editor")
    (snippet,) = [example for example in manual if example.startswith("[Unit]")]
    assert "Wants=btc-priced-wait-fresh.service" in snippet
    machine.write("/etc/systemd/system/node.service", snippet + "[Service]\nType=oneshot\nExecStart=/usr/bin/btcctl current\n")
    machine.systemctl("daemon-reload")
    machine.systemctl("start", "node.service")
    equal(machine.systemctl("is-active", "btc-priced-wait-fresh.service").stdout.strip(), "active")
    machine.systemctl("stop", "btc-priced-wait-fresh.service")
    machine.sh("rm /etc/systemd/system/node.service; systemctl daemon-reload")
    do("systemctl stop btc-priced.socket")
    both("inactive", "inactive")
    do("systemctl enable")
    both("active", "active")
    do("systemctl disable")
    both("inactive", "inactive")
    do("systemctl enable")
    fresh_price(machine)


# --- The HTTP gateway ------------------------------------------------------------------------------------------------

HTTP = "btc-price-http.service"


def http_get(machine, path="/v1/price"):
    """A request at the Unix socket in the machine."""
    return get(f"/proc/{machine.leader}/root/run/btc-price-http/http.sock", path)


@on_each("the first client starts the HTTP gateway, which has no network and needs only its socket unit for another address")
def _(machine):
    shutil.copy(package(name="btc-price-http"), machine.root / "opt" / "btc-price-http.deb")
    machine.run("dpkg", "-i", "/opt/btc-price-http.deb", timeout=120)
    machine.systemctl("enable", "--now", "btc-price-http.socket")
    equal(machine.systemctl("is-active", "btc-price-http.socket", HTTP, check=False).stdout.split(), ["active", "inactive"])
    reply = wait_until(lambda: (r := http_get(machine)).status == 200 and r, what="the price")
    equal(reply.json["currency"], "USD")
    equal(machine.systemctl("is-active", HTTP).stdout.strip(), "active")
    # At the TCP address, from the machine's network.
    tcp = subprocess.run(["nsenter", "-t", machine.leader, "-n", "curl", "-sSf", "http://127.0.0.1:8340/healthz"], capture_output=True, text=True)
    equal((tcp.returncode, json.loads(tcp.stdout)), (0, {"state": "fresh"}), tcp.stderr)
    pid = machine.show(HTTP, "MainPID")
    interfaces = machine.sh(f"nsenter -t {pid} -n cat /proc/net/dev").stdout.splitlines()[2:]
    equal([line.split(":")[0].strip() for line in interfaces], ["lo"])
    text = machine.run("systemd-analyze", "security", "--no-pager", HTTP, check=False).stdout
    exposure = float(re.search(r"Overall exposure level for .*: ([\d.]+)", text)[1])
    assert exposure <= 1.5, text
    verified = machine.sh("cd /lib/systemd/system && systemd-analyze verify --man=no btc-price-http.service btc-price-http.socket", check=False)
    equal([line for line in (verified.stdout + verified.stderr).splitlines() if "btc-price" in line], [])
    # The manual's text about another address.
    (example,) = examples.of_manual(ROOT / "packaging" / "man" / "btc-price-http.8")
    equal(example.splitlines(), ["systemctl edit btc-price-http.socket", "editor /etc/default/btc-price-http", "systemctl restart btc-price-http.socket"])
    drop_in = "/etc/systemd/system/btc-price-http.socket.d/override.conf"
    machine.write(drop_in, "[Socket]\nListenStream=172.17.0.1:8340\nFreeBind=yes\n")
    machine.write("/etc/default/btc-price-http", 'OPTIONS="--hosts host.docker.internal"\n')
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", "btc-price-http.socket")
    equal(http_get(machine).status, 200)
    wait_until(lambda: "172.17.0.1:8340 can be reached from other machines" in machine.journal("-u", HTTP), what="the warning")
    machine.sh(f"rm -r {drop_in} /etc/default/btc-price-http /etc/systemd/system/btc-price-http.socket.d")
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", "btc-price-http.socket")
    # A restart while clients wait: none is refused.
    for _ in range(5):
        machine.systemctl("restart", HTTP)
        equal(http_get(machine).status, 200)
    return f"exposure {exposure}"


# --- The fleet --------------------------------------------------------------------------------------------------------

def for_installed(option):
    """The commands of fleet.md that set this option, for packages that are installed already."""
    return pasted(f"apt install btc-priced btc-price-fleet\necho '{option}=").split("\n", 1)[1]


@on_each("the commands of fleet.md, pasted: units that publish to a packaged broker and follow it, and a daemon gets the price from there")
def _(machine):
    folder, ours = "/etc/mosquitto/btcpriced", "install -d /root/fleet && cd /root/fleet\n"
    machine.sh("echo 127.0.0.1 broker.example >> /etc/hosts")
    machine.sh(ours + pasted("openssl req -x509"))
    machine.sh(ours + pasted("install -m 600"))
    machine.write("/etc/mosquitto/conf.d/btcpriced-root.conf", documented("/etc/mosquitto/conf.d/btcpriced-root.conf"))
    machine.sh(f"install -d {folder}")
    machine.write(f"{folder}/acl", documented(f"{folder}/acl (root)"))
    machine.sh(ours + pasted("install -d /etc/mosquitto/btcpriced"))
    machine.systemctl("restart", "mosquitto")
    shutil.copy(package(name="btc-price-fleet"), machine.root / "opt" / "btc-price-fleet.deb")
    machine.run("dpkg", "-i", "/opt/btc-price-fleet.deb", timeout=120)
    units = ["btc-price-fleet-publish.service", "btc-price-fleet-follow.service"]
    equal(machine.systemctl("is-active", *units, check=False).stdout.split(), ["inactive", "inactive"])
    for option in ("PUBLISH_OPTIONS", "FOLLOW_OPTIONS"):
        machine.sh(for_installed(option))
    followed = wait_until(
        lambda: (s := current(machine, "--socket", "/run/btc-price-fleet/alpha")).get("freshness") == "fresh" and s, what="the publisher's price")
    equal(followed["instance"], "alpha/" + current(machine)["instance"])
    exposures = []
    for unit in units:
        text = machine.run("systemd-analyze", "security", "--no-pager", unit, check=False).stdout
        exposures.append(float(re.search(r"Overall exposure level for .*: ([\d.]+)", text)[1]))
        assert exposures[-1] <= 2.1, text
        equal(machine.show(unit, "User"), "btc-price-fleet")
    verified = machine.sh(f"cd /lib/systemd/system && systemd-analyze verify --man=no {' '.join(units)}", check=False)
    equal([line for line in (verified.stdout + verified.stderr).splitlines() if "btc-price" in line], [])
    # The daemon as a follower, without a network. Here it is its own publisher, so it refuses the price with a reason.
    configure(machine, 'sources = ["alpha"]\nsource.alpha.socket = "/run/btc-price-fleet/alpha"\n')
    drop_in = "/etc/systemd/system/btc-priced.service.d/network.conf"
    machine.write(drop_in, "[Service]\nPrivateNetwork=yes\nRestrictAddressFamilies=\nRestrictAddressFamilies=AF_UNIX\n")
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", UNIT)
    wait_until(lambda: "it is this daemon itself" in " ".join(machine.run("btcctl", "sources", check=False).stdout.split()),
               what=lambda: f"the follower's reason: {machine.run('btcctl', 'sources', check=False).stdout}")
    machine.sh(f"rm -r {drop_in} /etc/systemd/system/btc-priced.service.d")
    machine.systemctl("daemon-reload")
    configure(machine)
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    wait_until(lambda: current(machine, "--socket", "/run/btc-price-fleet/alpha").get("freshness") == "fresh", what="the price again")
    machine.run("dpkg", "--purge", "btc-price-fleet", timeout=120)
    equal(machine.sh("ls -d /run/btc-price-fleet /etc/default/btc-price-fleet 2>/dev/null; true").stdout, "")
    machine.systemctl("stop", "mosquitto")
    machine.sh(f"rm -r {folder} /etc/mosquitto/conf.d/btcpriced-root.conf /etc/credstore /root/fleet")
    return f"exposure {exposures}"


# --- Upgrade and removal ----------------------------------------------------------------------------------------------

@on_each("the test that Debian's own machines would run passes")
def _(machine):
    shutil.copy(ROOT / "packaging/debian/tests/service", machine.root / "opt/service-test")
    return machine.run("/opt/service-test").stdout.split("\n")[-2]


@on_each("a watch continues during an upgrade")
def _(machine):
    watching = Watching(machine)
    wait_until(lambda: watching.states, what="a state")
    instance = watching.states[-1]["instance"]
    shutil.copy(package(f"{VERSION}+1"), machine.root / "opt" / "newer.deb")
    shutil.copy(package(f"{VERSION}+1", "btc-price-http"), machine.root / "opt" / "newer-http.deb")
    # The gateway keeps running, and returns at worst 503 meanwhile.
    found, done = [], threading.Event()

    def ask():
        while not done.is_set():
            found.append(http_get(machine).status)
            time.sleep(0.05)
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    socket = machine.sh("stat -c %i /run/btc-priced/io.btcpriced.Price").stdout
    machine.run("dpkg", "-i", "/opt/newer.deb", timeout=120)
    wait_until(lambda: watching.states[-1]["instance"] != instance and watching.states[-1]["freshness"] == "fresh",
               what="the new one", every=0.05)
    equal(machine.sh("stat -c %i /run/btc-priced/io.btcpriced.Price").stdout, socket, "the socket stays open")
    before = machine.show(HTTP, "MainPID")
    machine.run("dpkg", "-i", "/opt/newer-http.deb", timeout=120)
    assert machine.show(HTTP, "MainPID") not in ("0", before), "the new gateway runs"
    wait_until(lambda: found[-1] == 200, what="the gateway")
    done.set()
    asking.join()
    assert set(found) <= {200, 503} and found.count(200) > 5, found
    equal(watching.process.poll(), None)
    watching.stop()
    equal(machine.run("cat", CONFIGURATION_PATH).stdout, CONFIGURATION, "the configuration is the user's")
    fresh_price(machine)


@on_each("a removal stops the daemon and keeps the configuration; a purge leaves nothing")
def _(machine):
    machine.run("dpkg", "--remove", "btc-priced", timeout=120)
    wait_until(lambda: http_get(machine).status == 503, what="no price")
    machine.run("dpkg", "--purge", "btc-price-http", timeout=120)
    equal(machine.systemctl("is-active", "btc-priced.socket", UNIT, check=False).stdout.split(), ["inactive", "inactive"])
    assert machine.run("cat", CONFIGURATION_PATH).stdout
    assert machine.run("stat", "/var/lib/btc-priced/history.sqlite3").stdout
    purged = machine.run("dpkg", "--purge", "btc-priced", timeout=120).stdout
    assert re.search(r"^Deleting the history of the price: /var/lib/btc-priced, [\d.]+[KMG]$", purged, re.M), purged
    left = machine.sh(
        "find / -xdev \\( -path /proc -o -path /sys -o -path /opt \\) -prune -o \\( -name '*btc*pric*' -o -name 'btcctl*' \\) -print; "
        "ls -d /run/btc-price* /run/systemd/units/*btc-price* 2>/dev/null; true").stdout.split()
    equal(left, [])
    equal(machine.systemctl("list-unit-files", "btc-price*", "--no-legend", check=False).stdout.strip(), "")
    equal(machine.systemctl("--failed", "--no-legend").stdout.strip(), "")
    machine.power_off()


# --- Checks without a machine -----------------------------------------------------------------------------------------

@scenario("lintian, mandoc and shellcheck report nothing")
def _():
    changes = next((ROOT / ".build" / "deb").glob("*.changes"), None)
    if changes is None:
        raise Skip("there is no package: make deb")
    done = subprocess.run(
        ["lintian", "--allow-root", "--pedantic", "--fail-on", "error,warning",
         # The project has no domain, and so no mail address.
         "--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog", changes], capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, ""), done.stderr)
    generated = Path(tempfile.mkdtemp(prefix="btc-priced-generated-"))
    atexit.register(shutil.rmtree, generated, ignore_errors=True)
    subprocess.run([ROOT / "scripts/generate", generated], check=True)
    pages = sorted([*(ROOT / "packaging/man").iterdir(), *(generated / "man").iterdir()])
    for page in (page for page in pages if not page.read_text().startswith(".so ")):
        # lowdown's output has unneeded macros.
        level = "error" if page.is_relative_to(generated) else "warning"
        done = subprocess.run(["mandoc", "-Tlint", "-W", level, page], capture_output=True, text=True)
        equal((done.returncode, done.stdout), (0, ""))
    done = subprocess.run(
        ["shellcheck", *(path for path in (ROOT / "scripts").iterdir() if "python" not in path.read_text().split("\n")[0]),
         *(ROOT / "packaging/debian").glob("*.postrm"), ROOT / "packaging/debian/tests/service"], capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, ""))
    done = subprocess.run(["shellcheck", *(generated / "bash").iterdir()], capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, ""))
    return f"{len(pages)} pages"


@scenario("every message has an explanation, and every key a line in the default file")
def _():
    identifiers = re.findall(r'= "([0-9a-f]{32})"', (ROOT / "Sources/BTCPriceDaemon/Journal/JournalMessage.swift").read_text())
    explained = re.findall(r"(?m)^-- ([0-9a-f]{32})$", (ROOT / "packaging/btc-priced.catalog").read_text())
    equal(explained, identifiers)
    listed = subprocess.run([BINARIES / "btc-priced", "--print-config"], capture_output=True, text=True).stdout
    standard = subprocess.run([BINARIES / "btc-priced", "--print-default-config"], capture_output=True, text=True).stdout
    keys = [line.lstrip("# ").split(" ")[0] for line in listed.splitlines()]
    equal(re.findall(r"(?m)^#([a-z][\w.-]*) = ", standard), keys)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(re.sub(r"(?m)^#([a-z])", r"\1", standard).replace("/etc/ssl/my-authority.pem", "/etc/ssl/certs/ca-certificates.crt"))
        file.flush()
        done = subprocess.run([BINARIES / "btc-priced", "--config", file.name, "--check-config"], capture_output=True, text=True)
        equal((done.returncode, done.stdout), (0, "The configuration is good.\n"), done.stderr)


main()
