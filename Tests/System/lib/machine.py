"""A Debian with systemd as process 1, booted in a container: nothing of systemd is a fake."""

import atexit
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .btcpriced import BINARIES, ROOT, Skip, scenario, spawn, wait_until

PACKAGES = "systemd,systemd-sysv,dbus,ca-certificates,libstdc++6,zlib1g,libsqlite3-0,libsystemd0,libmosquitto1,mosquitto,libpam-systemd,dbus-user-session,python3-dbusmock"
PORT = 18000
CONFIGURATION = f"""sources = ["binance", "coinbase"]
source.binance.url = "http://127.0.0.1:{PORT}"
source.coinbase.url = "http://127.0.0.1:{PORT + 2}"
"""
CONFIGURATION_PATH = "/etc/btc-priced/config.toml"
UNIT = "btc-priced.service"


def base(suite, packages=PACKAGES):
    """The tree of a fresh Debian with these packages, made once for the last of them."""
    last = packages.split(",")[-1]
    tree = ROOT / ".build" / "machines" / (suite if packages == PACKAGES else f"{suite}-{last}")
    tree.parent.mkdir(parents=True, exist_ok=True)
    # Two scripts need the same one.
    with open(tree.parent / f"{tree.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (tree / "usr" / "share" / "doc" / last).exists():
            shutil.rmtree(tree, ignore_errors=True)
            made = subprocess.run(
                ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", suite, tree], capture_output=True, text=True)
            if made.returncode != 0:
                shutil.rmtree(tree, ignore_errors=True)
                if suite == "sid":
                    raise Skip("sid can't be had from this mirror")
                raise AssertionError(made.stderr)
    return tree


def children(pid):
    """The processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(stat.parent.name)
    return found


def cgroup_below_ours(name):
    """The path of a control group (v2) below the one this process is in."""
    top = Path("/sys/fs/cgroup/unified")
    if not top.is_dir():
        top = top.parent
    ours = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    return top / ours.lstrip("/") / name


class Machine:
    """A booted container of a suite, with the simulator and the package at hand."""

    def __init__(self, suite):
        if os.geteuid() != 0:
            raise Skip("a booted container is root's")
        for program in ("mmdebstrap", "systemd-nspawn"):
            if not shutil.which(program):
                raise Skip(f"{program} is absent")
        self.suite = suite
        self.folder = Path(tempfile.mkdtemp(prefix=f"btc-priced-{suite}-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.root = self.folder / "root"
        subprocess.run(["cp", "-a", base(suite), self.root], check=True)
        shutil.copy(BINARIES / "exchange-simulator", self.root / "opt")
        (self.root / "etc" / "hostname").write_text(f"{suite}\n")
        # Each its own: two systemds in one would remove each other's groups.
        self.cgroup = cgroup_below_ours(self.folder.name)
        self.started = []
        self.log = open(self.folder / "console", "w")
        atexit.register(self.power_off)
        self.boot()

    def boot(self):
        self.remove_cgroup()
        self.cgroup.mkdir()
        self.nspawn = spawn(
            ["unshare", "--mount", "sh", "-c",
             'echo $$ >"$1/cgroup.procs"; mount --make-rprivate /; mount --bind /sys/fs/cgroup/unified /sys/fs/cgroup 2>/dev/null; '
             'exec systemd-nspawn --quiet --directory "$0" --register=no --keep-unit --private-network --boot', self.root,
             self.cgroup],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

        def is_up():
            # Process 1, as this side sees it. Another child may come and go before it.
            for self.leader in children(self.nspawn.pid):
                state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
                if state in ("running", "degraded"):
                    return True
            return False
        wait_until(is_up, seconds=90, what=lambda: f"a booted {self.suite}; {self.console()}", every=0.1)

    def console(self):
        return (self.folder / "console").read_text()[-2000:]

    def command(self, *arguments):
        return ["nsenter", "-t", self.leader, "-m", "-p", "-n", "-u", "-i", "-r", "-w", *map(str, arguments)]

    def run(self, *arguments, check=True, timeout=60, **options):
        """Runs a command in there; what it printed."""
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=timeout,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TZ": "UTC", "LANG": "C.UTF-8", **options.pop("env", {})}, **options)
        assert not check or done.returncode == 0, f"{arguments}: {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def start(self, *arguments, **options):
        """Starts a program in there that lasts, until it is killed or the scenario ends. Killed is the nsenter(1) in front of it, and it
        dies with that: else it would go on there."""
        self.started.append(spawn(self.command("setpriv", "--pdeathsig", "KILL", *arguments), stderr=subprocess.DEVNULL, **options))
        return self.started[-1]

    def end_started(self):
        for process in self.started:
            process.kill()
            process.wait()
        self.started.clear()

    def sh(self, script, **options):
        return self.run("sh", "-c", script, **options)

    def systemctl(self, *arguments, **options):
        return self.run("systemctl", *arguments, **options)

    def show(self, unit, name):
        return self.systemctl("show", "--value", "-p", name, unit).stdout.strip()

    def journal(self, *arguments):
        return self.run("journalctl", "--no-pager", "-q", *arguments).stdout

    def write(self, path, text):
        self.run("sh", "-c", 'mkdir -p "$(dirname "$0")" && cat >"$0"', path, input=text)

    def reboot(self):
        self.systemctl("start", "--no-block", "--job-mode=replace-irreversibly", "reboot.target")
        # Where it runs within another unit, systemd-nspawn leaves the second boot to whoever started it.
        wait_until(lambda: self.nspawn.poll() is not None, seconds=60, what=lambda: f"the shutdown; {self.console()}", every=0.05)
        self.boot()

    def power_off(self):
        if self.nspawn.poll() is None:
            if self.leader and os.path.exists(f"/proc/{self.leader}"):
                os.kill(int(self.leader), signal.SIGKILL)
            self.nspawn.kill()
            self.nspawn.wait()
            time.sleep(0.2)
        self.remove_cgroup()

    def remove_cgroup(self):
        """Removes the machine's control group with all below it, once its processes are gone."""
        def is_gone():
            for folder, _, _ in os.walk(self.cgroup, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    return False
            return True
        wait_until(is_gone, what=f"the end of {self.cgroup}", every=0.05)


machines = {}


def on_each(name):
    """Defines a scenario on each suite. They run in order, each on the state that the last one left."""
    def decorate(function):
        for suite in os.environ.get("SUITES", "bookworm").split():
            def run(suite=suite):
                if suite not in machines:
                    machines[suite] = Machine(suite)
                try:
                    return function(machines[suite])
                finally:
                    machines[suite].end_started()
            scenario(f"{suite}: {name}")(run)
        return function
    return decorate


# --- The packages and the simulator in there -------------------------------------------------------------------------

def package(version=None, name="btc-priced"):
    """A package that `make deb` has built; with `version`, one to upgrade to."""
    found = [p for p in (ROOT / ".build" / "deb").glob(f"{name}_*.deb")]
    if not found:
        raise Skip("there is no package: make deb")
    if version is None:
        return found[0]
    folder = tempfile.mkdtemp(prefix="btc-priced-deb-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["dpkg-deb", "-R", found[0], f"{folder}/tree"], check=True)
    control = Path(folder, "tree", "DEBIAN", "control")
    control.write_text(re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text()))
    path = Path(folder, f"{name}_{version}.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", f"{folder}/tree", path], check=True, capture_output=True)
    return path


def current(machine, *arguments):
    done = machine.run("btcctl", "current", "--json", *arguments, check=False)
    return json.loads(done.stdout) if done.stdout else {}


def fresh_price(machine, seconds=10):
    return wait_until(
        lambda: (s := current(machine)).get("freshness") == "fresh" and s, seconds=seconds, every=0.05,
        what=lambda: f"a fresh price; {machine.run('journalctl', '--no-pager', '-n', '20', '-u', UNIT).stdout}")


def start_exchange(machine):
    # A new name each time, because systemd may not have released the last one yet.
    machine.exchange = f"exchange-{time.monotonic_ns()}"
    machine.sh(f"systemd-run -q --collect --unit={machine.exchange} /opt/exchange-simulator --port {PORT}")
    wait_until(lambda: "ready" in machine.journal("-u", machine.exchange), what="the exchange", every=0.05)


def stop_exchange(machine):
    machine.systemctl("stop", machine.exchange)


def configure(machine, text=CONFIGURATION):
    machine.write(CONFIGURATION_PATH, text)
