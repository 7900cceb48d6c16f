"""What the numbered scripts share: the built binaries as processes, their sockets, and a report of what held.

Only Python's standard library, so that nothing has to be installed to run them.
"""

import atexit
import contextlib
import faulthandler
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

from . import interface
from .choosing import choose
from .certificates import Certificates

ROOT = Path(__file__).resolve().parents[3]
# As a terminal's programs have it: a shell's job in the background has it ignored, and so would all that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup(1) has it ignored, and daemons would take that over.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

BINARIES = Path(os.environ.get("BINARIES", ROOT / ".build" / "release"))
# The environment of a program that inherits nothing else. An emulator finds the libraries by the second one.
BARE = {name: os.environ[name] for name in ("PATH", "QEMU_LD_PREFIX") if name in os.environ}
SHARED = ROOT.parent / "shared"
SOCKET_NAME = "io.btcpriced.Price"
# That of the packages is that of the programs.
VERSION = re.search(r"\((.*?)\)", (ROOT / "packaging/debian/changelog").read_text())[1]
# What --version prints. In the sources of a tarball, the commit is known. SOURCES are the programs' own, if not these.
SOURCES = Path(os.environ.get("SOURCES", ROOT))
COMMIT = re.search(r'commit = "(\w*)', (SOURCES / "Sources/BTCPriceSocket/Interface/Product.swift").read_text())[1][:12]
FULL_VERSION = f"{VERSION} ({COMMIT})" if COMMIT else VERSION
# For tests that wait until the daemon has looked at every source: they need not wait for the usual ten seconds each.
LOOKS_OFTEN = ("--validation-observe-interval-ms", "1000")


def patient(*sources):
    """Settings with which a busy machine does not look like slow sources, where time is not what is tested."""
    return ("--tick-budget-ms", "10000", *(word for source in sources for word in (f"--source-{source}-timeout-ms", "10000")))


# Nothing that the developer has set may reach the binaries.
for name in list(os.environ):
    if name.startswith("BTC_PRICED_"):
        del os.environ[name]
os.environ["TZ"] = "UTC"


# --- Processes -------------------------------------------------------------------------------------------------------

_children = []


def end_children():
    for child in _children:
        if child.poll() is None:
            child.kill()
            child.wait()


atexit.register(end_children)


def spawn(arguments, **options):
    """Starts a process that is gone when the script is."""
    child = subprocess.Popen([str(a) for a in arguments], **options)
    _children.append(child)
    return child


def wait_until(condition, seconds=30, what="it", every=0.005):
    """Waits for a condition; its value. The time is a bound for a broken program, not a measure of a sound one."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(every)
    raise AssertionError(f"{what() if callable(what) else what} did not happen within {seconds} s")


def ended(process, seconds=30):
    """Waits for the end of a process; its status. If it does not end, the error says what each thread waits for."""
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        threads = []
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            try:
                status = dict(re.findall(r"(?m)^(Name|State|\w*Pnd|SigBlk|SigIgn|SigCgt):\t(.+)$", (task / "status").read_text()))
                threads.append((status, (task / "wchan").read_text(), (task / "syscall").read_text().strip()))
            except OSError:
                continue
        raise AssertionError(f"process {process.pid} did not end within {seconds} s: {threads}") from None


class Simulator:
    """exchange-simulator with all its venues."""

    def __init__(self, *arguments, faults="", secure=False, prefix=(), environment=None):
        self.certificates = Certificates() if secure else None
        self.authority = self.certificates and self.certificates.authority
        if secure:
            self.certificates.for_simulator(None)
            arguments += ("--certificates", self.certificates.folder)
        self.process = spawn(
            [*prefix, BINARIES / "exchange-simulator", *arguments], stdout=subprocess.PIPE, text=True,
            env=environment and {**os.environ, **environment})
        self.urls = {}
        for line in self.process.stdout:
            if line == "ready\n":
                break
            name, value = line.split()
            self.urls[name] = value
        assert "control" in self.urls, "the simulator did not start"
        if faults:
            self.faults(faults)

    def control(self, path, script=None):
        """The lines of a response. The timeout is a bound for a broken simulator, not for a busy one."""
        data = None if script is None else script.encode()
        return urllib.request.urlopen(f"{self.urls['control']}/{path}", data, timeout=30).read().decode().splitlines()

    def faults(self, script):
        """Sets a fault script; requests and time count anew. An empty one: nothing goes wrong."""
        for fault in re.findall(r"certificate (\S+)", script):
            self.certificates.for_simulator(fault)
        self.control("faults", script)
        # A port is closed a moment after the script is set.
        for venue, *rule in (line.split() for line in script.splitlines()):
            if rule == ["always", "refuse"]:
                venues = self.urls.keys() - {"control", "seed"} if venue == "*" else [venue]
                for name in venues:
                    wait_until(lambda: not self._accepts(name), what=f"the closed port of {name}")

    def _accepts(self, venue):
        host, port = self.urls[venue].rsplit("/", 1)[1].rsplit(":", 1)
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def requests(self):
        return {name: int(count) for name, count in (line.split() for line in self.control("requests"))}

    def limits(self):
        """What each venue has seen, beside the limits that the real one publishes."""
        return dict(line.split(" ", 1) for line in self.control("limits"))

    def streams(self):
        """The counts of each venue's streams: open, opened, messages, received, refused."""
        counts = {}
        for name, *words in (line.split() for line in self.control("streams")):
            counts[name] = {word: int(count) for word, count in zip(words[::2], words[1::2])}
        return counts

    def stop(self):
        self.process.terminate()
        ended(self.process)


def free_port(address="127.0.0.1"):
    """A port where nobody listens, and that the kernel gives to nobody who asks for any (ip_local_port_range begins at 32768): a simulator
    of another script must not be given it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
                return port
            except OSError:
                pass


def unused_url():
    """An address where nobody listens."""
    return f"http://127.0.0.1:{free_port()}"


class Place:
    """The directories of one daemon, over its restarts. The runtime directory is on a tmpfs, as /run is."""

    def __init__(self):
        self.state = tempfile.mkdtemp(prefix="btc-priced-state-")
        volatile = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.runtime = tempfile.mkdtemp(prefix="btc-priced-run-", dir=volatile)
        self.socket = f"{self.runtime}/{SOCKET_NAME}"
        atexit.register(lambda: [shutil.rmtree(d, ignore_errors=True) for d in (self.state, self.runtime)])

    def share(self):
        """Lets other users reach the socket."""
        os.chmod(self.runtime, 0o755)


class Logged:
    """A process whose lines on the standard error are kept."""

    def __init__(self, command, **options):
        self.lines = []
        self.process = spawn(command, stderr=subprocess.PIPE, text=True, **options)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def said(self, text):
        return any(text in line for line in self.lines)

    def says(self, text):
        """Waits for a line: it comes a moment after what it tells of."""
        wait_until(lambda: self.said(text), what=lambda: f"{text!r} in {self.lines}")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Daemon(Logged):
    """btc-priced, pointed at a simulator or at nothing."""

    def __init__(self, place, urls=None, *arguments, sources=("binance", "coinbase"), streams=(), peers=None, rates="", environment=None,
                 wait=True, level="info", prefix=(), backfill=False, **options):
        """`streams`: those of the `sources` whose streams are the simulator's; the others have none. `peers`: the places of other
        daemons by their names, requested before the `sources`. `rates`: the sources of reference rates. `backfill`: whether the exchanges are requested for candles, too, which
        counts as requests."""
        self.place = place
        peers = peers or {}
        command = [*prefix, BINARIES / "btc-priced", "--state-directory", place.state, "--runtime-directory", place.runtime,
                   "--log-level", level, "--sources", ",".join([*peers, *sources]), "--history-backfill", "true" if backfill else "false",
                   "--reference-rates", rates]
        for name, peer in peers.items():
            command += [f"--source-{name}-socket", peer.socket]
        for venue in sources:
            command += [f"--source-{venue}-url", urls[venue] if urls else unused_url()]
        for venue in streams:
            command += [f"--source-{venue}-stream-url", urls[venue].replace("http", "ws", 1)]
        # A variable that is None is absent.
        variables = {name: value for name, value in {**os.environ, **(environment or {})}.items() if value is not None}
        super().__init__([*command, *arguments], env=variables, **options)
        if wait:
            wait_until(lambda: can_connect(place.socket) or self.process.poll() is not None, what="the socket")

    def stop(self):
        """Stops it as systemd does; the exit status, and the seconds it took."""
        begun = time.monotonic()
        self.process.terminate()
        status = ended(self.process)
        self._reader.join(timeout=5)
        return status, time.monotonic() - begun


def stop(*processes):
    for process in processes:
        process.stop()


def memory(process):
    """The private memory of a process, in KiB."""
    return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1])


def can_connect(path):
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
            return True
        except OSError:
            return False


class Result:
    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"status {self.status}, out {self.out!r}, err {self.err!r}"


def btcctl(place, *arguments, timeout=60, environment=None):
    """Runs btcctl to its end. `place` None: its own search for the socket."""
    command = [str(BINARIES / "btcctl"), *arguments]
    if place is not None:
        command += ["--socket", place.socket]
    return Result(subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(environment or {})}))


def verbs():
    """The verbs of btcctl, from its help: a test of every verb need not be told of a new one. Without alert, which is another program."""
    return [verb for verb in re.findall(r"(?m)^  (\w+) {2,}", btcctl(None, "--help").out.split("\nCommands:")[1]) if verb != "alert"]


def has_option(verb, option):
    return bool(re.search(rf"(?m)^  (-\w, )?{option}\b", btcctl(None, verb, "--help").out.split("\nOptions:")[1]))


def replaying(*prices, **options):
    """A simulator that gives these prices, a request each, the last one for ever."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
        file.write("close\n" + "".join(f"{price}\n" for price in prices))
    atexit.register(os.unlink, file.name)
    return Simulator("--replay", file.name, **options)


def fill_queue(path, message):
    """Fills the queue of a datagram socket that is not read, so that the next send to it waits."""
    sent = 1
    # One sender may fill its own buffer before the queue.
    while sent:
        sent = 0
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            try:
                while True:
                    sender.sendto(message, path)
                    sent += 1
            except BlockingIOError:
                pass


def suspend(process):
    """Stops it with SIGSTOP, and waits until each of its threads stands: on a busy machine one would run on for a while."""
    process.send_signal(signal.SIGSTOP)

    def standing():
        stats = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/stat")]
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)
    wait_until(standing, what="all threads to stop")


def switches(pid):
    """How often the threads of a process went to sleep. What a busy machine takes from them does not count."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as status:
            total += number(status.read(), r"\nvoluntary_ctxt_switches:\s+(\d+)")
    return total


def delayed(*processes):
    """The seconds for which the threads of processes were ready to run and had no processor."""
    total = 0
    for path in (path for process in processes for path in Path(f"/proc/{process.pid}/task").glob("*/schedstat")):
        with contextlib.suppress(OSError):
            total += int(path.read_text().split()[1])
    return total / 1e9


def known_price(place, price, source="binance"):
    """Has an earlier run of the daemon keep a price of a source: the next one need not have its first confirmed."""
    simulator = replaying(price)
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "100", "--tick-budget-ms", "1000", sources=[source])
    fresh(place)
    daemon.stop()
    simulator.stop()


def state_in(place, currency):
    """The state of the price in a currency."""
    client = Varlink(place.socket)
    reply = client.call("io.btcpriced.Price.GetPrice", currency=currency)
    client.close()
    return reply["parameters"]["state"]


def contains(text, part):
    assert part in text, f"{part!r} is not in {text!r}"


def fresh(place):
    """The state as btcctl shows it, once it is fresh."""
    def look():
        result = btcctl(place, "current", "--json")
        return result.json if result.status == 0 and result.json["freshness"] == "fresh" else None
    return wait_until(look, what="a fresh price")


def settled(place):
    """The state as btcctl shows it, once it is fresh and not unconfirmed."""
    return wait_until(
        lambda: (lambda s: s if s["confirmation"] != "unconfirmed" else None)(fresh(place)), what="a price that is not unconfirmed")


# What `watch` says first of prices that are a simulator's.
NOTE = re.compile(r"Not from the exchanges' own addresses .*\n")


def running():
    """A place, a simulator and a daemon that has a price."""
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls)
    fresh(place)
    return place, simulator, daemon


class Watch:
    """btcctl watch on pipes, its lines with the times they came in."""

    def __init__(self, place, *arguments):
        self.process = spawn(
            [BINARIES / "btcctl", "watch", *arguments, "--socket", place.socket], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.lines, self.times, self.errors = [], [], []
        for stream, take in ((self.process.stdout, self._line), (self.process.stderr, self._error)):
            threading.Thread(target=self._read, args=(stream, take), daemon=True).start()

    def _read(self, stream, take):
        for line in stream:
            take(line.rstrip("\n"))

    def _line(self, line):
        self.times.append(time.monotonic())
        self.lines.append(line)

    def _error(self, line):
        self.errors.append(line)

    @property
    def objects(self):
        """With --json: every line."""
        return [json.loads(line) for line in list(self.lines)]

    @property
    def states(self):
        """With --json: every state, errors left out."""
        return [line for line in self.objects if "error" not in line]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Varlink:
    """A raw connection to the socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.rest = b""

    def send(self, message):
        self.socket.sendall(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\0")

    def receive(self):
        while b"\0" not in self.rest:
            part = self.socket.recv(65536)
            if not part:
                raise EOFError
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        """The reply, which is as defined."""
        self.send({"method": method, "parameters": parameters})
        return interface.checked(method, self.receive())

    def close(self):
        self.socket.close()


# --- Report ----------------------------------------------------------------------------------------------------------

class Skip(Exception):
    """What a scenario needs is not there."""


_scenarios = []


def scenario(name, beside=False):
    """Names a function as a scenario. `beside`: it mostly waits and shares nothing that it changes, so it runs beside the others."""
    def note(function):
        _scenarios.append((name, function, beside))
        return function
    return note


# The longest scenario takes less than two minutes. One that hangs is a failure with a name.
LIMIT = float(os.environ.get("SCENARIO_LIMIT", "600"))


def main():
    """Runs the script's scenarios and reports them in order; the exit status is 1 if one failed. Arguments choose scenarios by parts of
    their names; --list prints all names."""
    names = [name for name, *_ in _scenarios]
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        sys.exit()
    wanted = choose(sys.argv[1:], names, "scenario")
    chosen = [scenario for scenario in _scenarios if scenario[0] in wanted]
    running, finished = {}, []

    def run(name, function):
        begun = running[name] = time.monotonic()
        try:
            figures = function()
            word, detail = "ok", f": {figures}" if figures else ""
        except Skip as reason:
            word, detail = "skipped", f": {reason}"
        except Exception as error:
            word, detail = "FAILED", f": {error!r}\n{traceback.format_exc()}"
        finally:
            del running[name]
        finished.append((word, f"{word} {name} ({time.monotonic() - begun:.1f} s){detail}"))
        return finished[-1]

    def watch():
        while True:
            time.sleep(1)
            late = [name for name, begun in list(running.items()) if time.monotonic() - begun > LIMIT]
            if late:
                for _, text in finished:
                    print(text)
                for name in late:
                    print(f"FAILED {name} ({LIMIT:.0f} s): it did not end", flush=True)
                faulthandler.dump_traceback(all_threads=True)
                end_children()
                os._exit(1)
    threading.Thread(target=watch, daemon=True).start()
    with ThreadPoolExecutor(max_workers=8) as pool:
        beside = [pool.submit(run, name, function) for name, function, is_beside in chosen if is_beside]
        in_order = [run(name, function) for name, function, is_beside in chosen if not is_beside]
        results = [beside.pop(0).result() if is_beside else in_order.pop(0) for *_, is_beside in chosen]
    for _, text in results:
        print(text, flush=True)
    sys.exit(any(word == "FAILED" for word, _ in results))


class Golden:
    """Texts that are kept in a file beside the script, a section each: `== name` and what was seen. With UPDATE_GOLDEN set they are
    written anew, and the diff is to be read."""

    def __init__(self, script):
        self.path = Path(script).with_suffix(".golden")
        self.kept, self.seen = {}, {}
        text = self.path.read_text() if self.path.exists() else ""
        for section in ("\n" + text).split("\n== ")[1:]:
            name, body = section.split("\n", 1)
            self.kept[name] = body.rstrip("\n") + "\n"

    def check(self, name, text):
        self.seen[name] = text.rstrip("\n") + "\n"
        if os.environ.get("UPDATE_GOLDEN"):
            merged = {**self.kept, **self.seen}
            self.path.write_text("\n".join(f"== {n}\n{t}" for n, t in merged.items()))
        else:
            equal(self.seen[name], self.kept.get(name), name)


def normal(text, place):
    """A text without what differs from run to run: times, ages, counts, ports, and what depends on the moment of the request."""
    text = text.replace(place.state, "<state>").replace(place.runtime, "<runtime>")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:<port>", text)
    text = re.sub(r"[0-9a-f]{16}", "<instance>", text)
    text = re.sub(r"\b\d{13}\b", "<ms>", text)
    text = re.sub(r"\b[A-Z][a-z]{2} \d{1,2}, \d\d:\d\d", "<local time>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)", r"<time>\1", text)
    text = re.sub(r"<?\b\d+(\.\d+)? s (ago|old)\b", r"<age> \2", text)
    text = re.sub(r"\bup \d+(\.\d)? s\b", "up <age>", text)
    text = re.sub(r"\b\d+ ms\b", "<ms>", text)
    text = re.sub(r"\bcooldown for \d+ s\b", "cooldown for <n> s", text)
    text = re.sub(r"\bpid \d+", "pid <pid>", text)
    text = re.sub(r"\b\d+ (done|watching|call|tick)s?\b", r"<n> \1", text)
    # Columns are as wide as their content.
    text = re.sub(r" {2,}", "  ", text)
    text = re.sub(r"(?m)(  (?:68,901\.23|-)  (?:(?:poll|stream|-)  )?)(?:\d+(?:\.\d)? s)  ", r"\1<age>  ", text)
    text = re.sub(r"(?m)(?:  \d+ B)?  \d+ %$", lambda found: ("  <size>" if " B" in found[0] else "") + "  <n> %", text)
    # Measured some seconds after the start.
    text = re.sub(r"(?m)^USDT +: .*$", "USDT : <rate>", text)
    text = re.sub(r'"tetherRate":(null|\{.*?\})', '"tetherRate":<rate>', text)
    # Whether another source is known yet depends on the moment.
    text = re.sub(r" (?:±|\+/-) [\d.,]+ \(\d markets\)", "", text)
    text = re.sub(r'"verdict":"(agrees|notNeeded|skipped)"', '"verdict":"<seen>"', text)
    text = re.sub(r',"low":"[\d.]+","high":"[\d.]+","inVote":\w+,"contradictedBy":\[\]|(?m:^  in the vote: .*\n)', "", text)
    text = re.sub(r'"uncertainty":(null|\{.*?\})', '"uncertainty":<uncertainty>', text)
    text = re.sub(
        r'"(pid|tick|done|confirmed|calls|requests|made|answers|most|heldCandles|bodyBytes|coveredMinutes|(?:uptime|age|p\d\d)Ms|\w*[Bb]oottime)":\d+', r'"\1":<n>', text)
    # A new member is null in most replies. 052-forms.py checks that none is missing.
    return re.sub(r'(?<=\{)"\w+":null,|,"\w+":null\b', "", text)


def each_tick(ticks, late=0):
    """Checks that the ticks are in order and none is missing, except `late` of them: a watcher that reads two ticks late gets the newest,
    which happens on a busy machine if they are a tenth of a second apart."""
    assert all(one < other for one, other in itertools.pairwise(ticks)), f"not in order: {ticks}"
    missing = sorted(set(range(ticks[0], ticks[-1])) - set(ticks))
    assert len(missing) <= late, f"missing: {missing}"


def equal(found, expected, what=""):
    assert found == expected, f"{what}: found {found!r}, expected {expected!r}"


def within(limits):
    """Whether no span of a limit's period saw more requests than the limit: `total 9, most in 1 s 4 of 10`."""
    return all(int(most) <= int(limit) for text in limits.values() for most, limit in re.findall(r"(\d+) of (\d+)", text))


def interface_fields(name):
    """The names of the fields of a type of io.btcpriced.Price, in their order."""
    return [field for field, _, _ in interface.interfaces()["io.btcpriced.Price"].types[name].fields]


def rehearse(*arguments):
    """What `rehearsal` prints: the shipped core on virtual time."""
    done = subprocess.run([BINARIES / "rehearsal", *map(str, arguments)], capture_output=True, text=True, timeout=800)
    equal(done.returncode, 0, done.stderr)
    assert "failed:" not in done.stdout, done.stdout
    return done.stdout


def number(text, pattern):
    """The whole number that a pattern finds in a text."""
    found = re.search(pattern, text)
    assert found, f"no {pattern!r} in {text}"
    return int(found.group(1))


def seeded():
    """A random generator whose seed is printed; SEED in the environment repeats a run."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"seed {seed}", flush=True)
    return random.Random(seed)


def shared(path):
    """A file of ../shared; the scenario is skipped where it is absent."""
    file = SHARED / path
    if not file.exists():
        raise Skip(f"../shared/{path} is absent")
    return file
