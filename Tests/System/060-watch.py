#!/usr/bin/env python3
"""btcctl watch on pipes, across restarts and stops. 062-terminal.py tests it on a terminal."""

import fcntl
import os
import pty
import socket
import termios

from lib.btcpriced import *


@scenario("watch survives a restart of the daemon")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls)
    text, objects = Watch(place), Watch(place, "--json")
    wait_until(lambda: len(text.lines) >= 2 and len(objects.lines) >= 2, what="lines")
    instances = {objects.states[-1]["instance"]}
    for end in (lambda: daemon.stop(), lambda: daemon.kill()):
        end()
        wait_until(
            lambda: sum("can't be reached" in line for line in text.errors) == len(instances),
            what="the word that the daemon is gone")
        count = len(text.lines), len(objects.lines)
        daemon = Daemon(place, simulator.urls)
        wait_until(lambda: len(text.lines) >= count[0] + 2 and len(objects.lines) >= count[1] + 3, what="new lines")
        instances.add(objects.states[-1]["instance"])
    equal(len(instances), 3, "instances")
    equal(len([line for line in text.errors if "can't be reached" in line]), 2, text.errors)
    equal([line["error"] for line in objects.objects if "error" in line], ["unreachable"] * 2)
    equal(objects.errors, [])
    equal(text.process.poll(), None)
    daemon.stop()


@scenario("a stopped and continued watch shows the newest state at once")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "100", "--tick-budget-ms", "100")
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 3, what="lines")
    suspend(watch.process)
    time.sleep(2)
    before = len(watch.lines)
    newest = btcctl(place, "current", "--json").json["tick"]
    watch.process.send_signal(signal.SIGCONT)
    wait_until(lambda: len(watch.lines) > before + 1, what="a line")
    following = [state["tick"] for state in watch.states[before:]]
    daemon.stop()
    # A state that it was handling when it was stopped may be shown first.
    stragglers = [tick for tick in following if tick < newest]
    assert len(stragglers) <= 1, f"newest {newest}, shown {following}"
    return f"newest {newest}, shown {following[:3]}"


@scenario("a reader that is slow gets at most ten old lines on a pipe or a socket, then the newest", beside=True)
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "100", "--tick-budget-ms", "100")

    def newest():
        return btcctl(place, "current", "--json").json["tick"]

    told = []
    for words in ("--json",), ("--format", "{tick}"), ("--bar", "plain"):
        for kind in "pipe", "socket":
            mine, its = os.pipe() if kind == "pipe" else (end.detach() for end in socket.socketpair())
            watch = spawn([BINARIES / "btcctl", "watch", *words, "--socket", place.socket], stdout=its, stderr=subprocess.DEVNULL)
            os.close(its)
            before = newest()
            wait_until(lambda: newest() >= before + 30, every=0.1, what="thirty ticks")
            with os.fdopen(mine, "rb", buffering=0) as reader:
                waiting, later = reader.read(1 << 16).splitlines(), b""
                assert 2 <= len(waiting) <= 11, f"{words} on a {kind}: {len(waiting)} lines waited"
                while later.count(b"\n") < 3:
                    later += reader.read(1 << 16)
            if words[0] != "--bar":
                first = later.splitlines()[0]
                tick = json.loads(first)["tick"] if words == ("--json",) else int(first)
                assert tick >= before + 30, f"{words} on a {kind}: tick {tick} followed, the newest was {before + 30}"
            watch.terminate()
            told.append(len(waiting))
    daemon.stop()
    return f"{told} lines waited"


@scenario("a watch ends soon after its reader has gone, whatever that is, and takes no processor time for it", beside=True)
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls)
    settled(place)
    command = [BINARIES / "btcctl", "watch", "--raw", "--socket", place.socket]
    folder = tempfile.mkdtemp(prefix="btc-priced-readers-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def watch(output, **options):
        return spawn(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, **options)

    def first(reader):
        assert os.read(reader, 100), "a price"

    def pair(mine, its):
        process = watch(its)
        os.close(its)
        first(mine)
        return process, lambda: os.close(mine)

    def tcp():
        with socket.create_server(("127.0.0.1", 0)) as server:
            its = socket.create_connection(server.getsockname())
            return pair(server.accept()[0].detach(), its.detach())

    def terminal():
        mine, its = pty.openpty()
        process = spawn(command, stdin=its, stdout=its, stderr=its, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(its)
        first(mine)
        return process, lambda: os.close(mine)

    def below(reader):
        """A reader that starts the watch itself, and is killed."""
        mark = f"{folder}/{len(os.listdir(folder))}"
        parent = spawn([*reader, mark], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        pid = int(wait_until(lambda: os.path.exists(mark) and Path(mark).read_text().strip(), what="the watch"))
        time.sleep(1.5)
        return pid, parent.kill

    def file(path):
        with open(path, "a") as output:
            process = watch(output)
        return process, process.terminate

    def closed():
        return watch(None, preexec_fn=lambda: os.close(1)), lambda: None

    def hung():
        mine, its = os.pipe()
        process = watch(its)
        os.close(its)
        fcntl.fcntl(mine, fcntl.F_SETPIPE_SZ, 4096)
        time.sleep(3)
        return process, process.terminate

    node = """const { spawn } = require("node:child_process"), fs = require("node:fs");
        const child = spawn(process.argv[1], process.argv.slice(2, -1), { stdio: ["ignore", "pipe", "ignore"], detached: true });
        child.stdout.on("data", () => {}); fs.writeFileSync(process.argv.at(-1), String(child.pid));"""
    python = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:-1], stdout=subprocess.PIPE, start_new_session=True); open(sys.argv[-1], 'w').write(str(p.pid)); p.stdout.read()"
    readers = {
        "pipe": lambda: pair(*os.pipe()), "socketpair": lambda: pair(*(end.detach() for end in socket.socketpair())), "TCP": tcp,
        "terminal": terminal, "a program that is killed": lambda: below([sys.executable, "-c", python, *command]),
        "file": lambda: file(f"{folder}/file"), "full disk": lambda: file("/dev/full"), "/dev/null": lambda: file("/dev/null"),
        "closed": closed, "hung": hung,
    }
    if shutil.which("node"):
        readers["Node.js"] = lambda: below(["node", "-e", node, *command])
    told = []
    for name, start in readers.items():
        process, leave = start()
        pid = process if isinstance(process, int) else process.pid
        leave()
        begun = time.monotonic()
        gone = (lambda: not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0] == "Z") \
            if isinstance(process, int) else (lambda: process.poll() is not None)
        used = 0
        while not gone():
            assert time.monotonic() < begun + 5, f"{name}: it runs on"
            try:
                used = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[11:13])) * 10
            except (FileNotFoundError, ProcessLookupError):
                pass
            time.sleep(0.02)
        assert used < 200, f"{name}: {used} ms of processor time"
        told.append(f"{name} {time.monotonic() - begun:.1f} s{'' if isinstance(process, int) else f' ({process.returncode})'}")
    daemon.stop()
    return ", ".join(told)


@scenario("a frozen daemon and its return are reported")
def _():
    place, simulator, daemon = running()
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 2, what="lines")
    suspend(daemon.process)
    wait_until(lambda: watch.objects[-1].get("error") == "unreachable", what="the word that it is silent")
    daemon.process.send_signal(signal.SIGCONT)
    wait_until(lambda: watch.objects[-1].get("freshness") == "fresh", what="its return")
    daemon.stop()


@scenario("with ticks slower than the client's time-out nothing is reported twice or wrongly")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "7000")
    fresh(place)
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 2, what="two ticks")
    ticks = [line.get("tick") for line in watch.objects]
    equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "a line a tick")
    daemon.stop()


@scenario("a watch stays with its first daemon")
def _():
    place, simulator, daemon = running()
    home = tempfile.mkdtemp(prefix="btc-priced-home-")
    atexit.register(shutil.rmtree, home, True)
    os.mkdir(f"{home}/btc-priced")
    os.symlink(place.socket, f"{home}/btc-priced/{SOCKET_NAME}")
    watch = spawn([BINARIES / "btcctl", "watch", "--json"], stdout=subprocess.PIPE, text=True,
                  env={**os.environ, "XDG_RUNTIME_DIR": home})
    watch.stdout.readline()
    daemon.stop()
    # Only this path is named. Before the first connection, the system's path was tried too.
    complaint = ""
    while "error" not in complaint:
        complaint = watch.stdout.readline()
    assert home in complaint and "/run/btc-priced" not in complaint, complaint


@scenario("a watch that the daemon ends says why")
def _():
    place = Place()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place.socket)
    listener.listen()
    quote = {"value": "60000", "currency": "EUR", "timestamp": int(time.time() * 1000), "source": "kraken", "market": "BTC/EUR"}
    state = {"instance": "i", "tick": 3, "freshness": "fresh", "quote": quote, "observedBoottime": None, "confirmation": "single",
             "failure": None, "currency": "EUR"}
    ended = {"parameters": {"currency": "EUR", "known": ["USD"]}, "error": "io.btcpriced.Price.UnknownCurrency"}

    def serve():
        replies = [{"parameters": {"state": state}, "continues": True}, ended]
        while True:
            connection, _ = listener.accept()
            connection.recv(4096)
            connection.sendall(b"".join(json.dumps(reply).encode() + b"\0" for reply in replies))
            connection.close()
            # The next watch is refused at once.
            replies = [ended]
    threading.Thread(target=serve, daemon=True).start()
    watch = Watch(place, "--json", "-c", "EUR")
    wait_until(lambda: len(watch.lines) >= 2, what="the reason")
    time.sleep(1)
    equal([line.get("error") for line in watch.objects], [None, "usage"], "once")
    assert watch.objects[1]["message"].startswith("The price is not kept in EUR, only in USD."), watch.objects
    watch.stop()


@scenario("a watch prints no price that is not as required, says when that begins and is over, and tells a doubt before its line", beside=True)
def _():
    place, simulator = Place(), replaying("68901.23")
    known_price(place, "68901.23")
    daemon = Daemon(place, simulator.urls, "--validation-observe-interval-ms", "1000", sources=("binance", "coinbase"))
    wait_until(lambda: btcctl(place, "current", "--json").json["confirmation"] == "confirmed", what="a confirmed price")
    confirmed, exact = Watch(place, "--raw", "--confirmed"), Watch(place, "--max-uncertainty", "1%")
    bar, young = Watch(place, "--bar", "plain", "--confirmed"), Watch(place, "--raw", "--max-age", "2")
    both = spawn([BINARIES / "btcctl", "watch", "--format", "{confirmation}", "--socket", place.socket],
                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    watches = (confirmed, exact, bar, young)
    for watch in watches:
        wait_until(lambda: watch.lines, what="a price")
    simulator.faults("binance always price x1.2")
    for watch, reason in ((confirmed, "is unconfirmed"), (exact, "has an un"), (bar, "is unconfirmed")):
        wait_until(lambda: any(line.startswith(f"btcctl: No price is printed: the price in USD {reason}") for line in watch.errors),
                   what=lambda: f"the refusal; {watch.errors}")
    wait_until(lambda: bar.lines[-1] == "-", what="the bar's line without a price")
    # A line may still be on its way.
    tick = btcctl(place, "current", "--json").json["tick"]
    wait_until(lambda: btcctl(place, "current", "--json").json["tick"] >= tick + 1, what="a tick")
    before = len(confirmed.lines), len(exact.lines)
    tick = btcctl(place, "current", "--json").json["tick"]
    wait_until(lambda: btcctl(place, "current", "--json").json["tick"] >= tick + 2, what="two ticks")
    equal((len(confirmed.lines), len(exact.lines)), before)
    heard = {watch: len(watch.errors) for watch in watches}
    simulator.faults("")
    for watch in watches[:3]:
        wait_until(lambda: "The price in USD is printed again." in watch.errors[heard[watch]:], what=lambda: f"the end; {watch.errors}")
    wait_until(lambda: bar.lines[-1] == "$68,901.23", what="the bar's price")
    equal(set(confirmed.lines), {"68901.23"})
    simulator.faults("* always status 500")
    wait_until(lambda: any("more than 2 s" in line for line in young.errors), what=lambda: f"the age; {young.errors}")
    before = len(young.lines)
    tick = btcctl(place, "current", "--json").json["tick"]
    wait_until(lambda: btcctl(place, "current", "--json").json["tick"] >= tick + 2, what="two ticks")
    equal(len(young.lines), before)
    for watch in watches:
        watch.stop()
    both.terminate()
    lines = both.communicate()[0].splitlines()
    doubtful, over = lines.index("unconfirmed"), lines.index("The price is no longer in doubt.")
    assert lines[doubtful - 1].startswith("Unconfirmed: ") and "unconfirmed" not in lines[over:over + 2], lines
    assert any(line.startswith("Failed to update value.") for line in lines[over:]), lines
    daemon.stop()


main()
