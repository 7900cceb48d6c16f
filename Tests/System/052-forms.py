#!/usr/bin/env python3
"""Every verb of btcctl with every format and exit status, on the built binary. The texts and JSON are in 052-forms.golden.

UPDATE_GOLDEN=1 writes them again: read the difference before you commit it."""

import fcntl
import os
import struct
import sys
import termios

from lib.btcpriced import *

golden = Golden(__file__)
PRICE = "68901.225"
FORMS = ([], ["--json"], ["--raw"], ["--format", "{price} at {time} from {source}"], ["--utc", "--iso"], ["--bar", "waybar"],
         ["--bar", "i3blocks"], ["--bar", "polybar"])
# What a verb needs to be run for a moment.
WORDS = {"at": ["now"], "wait": ["--timeout", "1"], "source": ["binance", "on"]}


def shown(place, *arguments, environment=None):
    """A command, its output, and its status."""
    done = btcctl(place, *arguments, environment=environment)
    if "--json" in arguments:
        printed.extend(done.out.splitlines())
    words = " ".join(f"'{word}'" if re.search(r"[ {$]", word) else word for word in arguments)
    lines = [f"$ btcctl {words}"] + done.out.splitlines() + [f"2> {line}" for line in done.err.splitlines()] + [f"-> {done.status}"]
    return normal("\n".join(lines), place) + "\n"


# Every line printed with --json in this script.
printed = []


def daemon_with_price():
    place = Place()
    simulator = replaying(PRICE)
    daemon = Daemon(place, simulator.urls)
    settled(place)
    return place, simulator, daemon


def forms(place):
    text = "".join(shown(place, "current", *form) for form in FORMS)
    text += "".join(shown(place, "convert", *form) for form in (
        [], ["0.05btc"], ["250usd", "100000sat", "1sat", "$0.5"], ["0.05btc", "250usd", "--raw"], ["7sat", "--json"]))
    return text


def bytes_in(descriptor):
    """The number of bytes in a pipe (FIONREAD)."""
    return struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0]


def why(text):
    """Replaces the text that depends on the number of a source's failures so far."""
    return re.sub(r"\b(binance|coinbase): [^\"\n]*", r"\1: <why>", text)


@scenario("every format of a fresh price, of a stale one, and without a price")
def _():
    place, simulator, daemon = daemon_with_price()
    text = forms(place) + shown(place, "current", "--refresh", "--raw") + shown(place, "current", "--no-cache", "--raw")
    text += shown(place, "current", "--max-age", "60", "--raw") + shown(place, "convert", "1btc", "--max-age", "60", "--refresh")
    text += shown(place, "current", "--format", "{{{value}}}") + shown(place, "current", "--format", "")
    golden.check("fresh", text)
    simulator.faults("* always status 500")
    wait_until(lambda: btcctl(place, "current", "--json").json["freshness"] == "stale", what="stale")
    text = forms(place) + shown(place, "current", "--max-age", "0") + shown(place, "current", "--max-age", "0", "--json")
    text += shown(place, "convert", "--max-age", "0") + shown(place, "current", "--no-cache") + shown(place, "current", "--no-cache", "--json")
    golden.check("stale", why(text))
    daemon.stop()
    empty = Place()
    daemon = Daemon(empty, sources=["coinbase"])
    wait_until(lambda: btcctl(empty, "status", "--json").json["status"]["ticks"]["failed"] >= 1, what="a failed tick")
    golden.check("none", why(forms(empty)))
    daemon.stop()


def format_fields():
    """The names of the fields of --format, which btcctl lists if one is unknown."""
    return re.search(r"there are: ([\w, ]+)\.", btcctl(None, "current", "--format", "{x}").err)[1].split(", ")


@scenario("every field of --format has a value, and is in the manual")
def _():
    place, simulator, daemon = daemon_with_price()
    names = format_fields()
    values = btcctl(place, "current", "--format", "|".join("{%s}" % name for name in names)).out.rstrip("\n").split("|")
    equal(len(values), len(names), values)
    found = dict(zip(names, values))
    for name, value in {"price": "$68,901.22", "value": PRICE, "source": "binance", "market": "BTC/USDT", "currency": "USD", "freshness": "fresh",
                        "confirmation": "confirmed", "failure": "", "warning": "", "direction": "flat", "sats": "1451"}.items():
        equal(found[name], value, name)
    assert re.fullmatch(r"[A-Z][a-z]{2} \d+, \d\d:\d\d", found["time"]) and re.fullmatch(r"\d(\.\d)? s", found["age"]), found
    assert 0 <= int(found["ageMs"]) < 2500 and int(found["tick"]) > 0 and abs(int(found["timestamp"]) / 1000 - time.time()) < 5, found
    manual = (ROOT / "packaging/man/btcctl.1").read_text()
    for name in names:
        assert re.search(rf"(?m)^\.It Cm (.* )?{name}\b", manual), f"{{{name}}} is not in the manual"
    watch = spawn([BINARIES / "btcctl", "watch", "--format", "{tick} {direction} {freshness}", "--socket", place.socket],
                  stdout=subprocess.PIPE, text=True)
    lines = [watch.stdout.readline().split() for _ in range(3)]
    equal([line[1:] for line in lines], [["flat", "fresh"]] * 3, lines)
    equal(int(lines[2][0]) - int(lines[0][0]), 2, "a line a tick")
    watch.kill()
    daemon.stop()


@scenario("wait for a condition: the exit status shows which one became true")
def _():
    place, simulator, daemon = daemon_with_price()
    text = "".join(shown(place, "wait", *words, "--timeout", "5") for words in (
        [], ["--raw"], ["--above", "68901.22"], ["--below", "70000", "--json"], ["--above", "1", "--below", "2"],
        ["--above", "70000", "--below", "69000"], ["--above", "70000", "--below", "69000", "--json"],
        ["--below", "70000", "--format", "{source} {value}"]))
    text += shown(place, "wait", "--above", "68901.225", "--timeout", "0.3") + shown(place, "wait", "--change", "0.01%", "--timeout", "0.3", "--json")
    golden.check("wait", text)
    # The condition becomes true later.
    for words, price, status in ((["--change", "0.05%"], "68950", 0), (["--change", "40"], "69000", 0), (["--below", "68980"], "68970", 0),
                                 (["--above", "69500", "--change", "0.05%"], "69010", 12), (["--below", "68000", "--above", "69020"], "69030", 10),
                                 (["--below", "69000", "--above", "69500"], "68990", 11)):
        waiting = spawn([BINARIES / "btcctl", "wait", *words, "--raw", "--socket", place.socket], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        equal(waiting.poll(), None, words)
        simulator.faults(f"* always price {price}")
        equal((waiting.wait(timeout=10), waiting.stdout.read()), (status, f"{price}\n"), words)
    daemon.stop()


@scenario("the errors without a daemon and for an invalid command line")
def _():
    place = Place()
    text = "".join(shown(place, verb, *WORDS.get(verb, []), *form) for form in ([], ["--json"]) for verb in ("current", "wait"))
    text += "".join(shown(place, "current", "--bar", bar) for bar in ("waybar", "i3blocks", "polybar"))
    golden.check("no daemon", text)
    for form in ([], ["--json"]):
        error = btcctl(place, "current", *form)
        for verb in verbs():
            # wait waits for the daemon, and is in the golden file; check has the statuses of monitors, why says what is wrong, mcp
            # waits for requests, and top needs a terminal.
            if verb not in ("wait", "check", "why", "mcp", "top") and (not form or has_option(verb, "--json")):
                found = btcctl(place, verb, *WORDS.get(verb, []), *form)
                equal((found.status, found.out, found.err), (error.status, error.out, error.err), verb)
    text = "".join(shown(place, *line.split()) for line in (
        "current --json --raw", "current --format {x}", "current --format {price", "current --bar bar", "current --bar waybar --raw",
        "watch --above 5", "watch --exec true --json", "watch --color blue", "wait --above -1", "wait --above 1,00", "wait --change x%",
        "convert 5", "convert 1xyz --json", "convert 1btc --raw --json", "dance", "current --refresh --no-cache", "current --max-age x",
        "current --json --dance", "watch --refresh", "wait --timeout soon", "wait --timeout -1 --json", "sources -x"))
    golden.check("wrong command lines", text.replace(", ".join(format_fields()), "<fields>"))


@scenario("every verb, option and exit status in the help is in the manual, and its examples and width are right")
def _():
    source = (ROOT / "packaging/man/btcctl.1").read_text()
    manual = subprocess.run(["mandoc", "-Tascii"], input=source, capture_output=True, text=True).stdout
    manual = re.sub(r".\x08", "", manual)
    statuses = {}
    for words in ([], *([verb] for verb in verbs())):
        done = btcctl(None, *words, "--help")
        equal(done.status, 0, words)
        equal(done.out, btcctl(None, "help", *words).out, words)
        assert not words or f"\n.It Cm {words[0]}\n" in source, f"{words} is not in the manual"
        for option in re.findall(r"--[a-z-]+", done.out.split("\nOptions:")[1].split("\nCommands:")[0]):
            assert option in manual, f"{words} {option} is not in the manual"
        # Options may stand before the verb, if their values are not taken for it.
        for option in re.findall(r"(--[a-z-]+) <", done.out.split("\nOptions:")[1]):
            assert "no command" not in btcctl(None, option, "1", *words, "--help").err, f"{option} before {words}"
        overview = done.out.split("\nUsage:")[0]
        statuses |= dict.fromkeys(re.findall(r"\b\d+\b", overview.split("Exit status: ")[1]))
        assert words == ["check"] or "64 for a wrong" in re.sub(r"\s+", " ", overview), overview
        for verb, rest in re.findall(r"(?m)^  (?:sudo )?btcctl (\w+)(.*)", overview):
            assert verb in verbs(), overview
            for option in re.findall(r" (--[a-z-]+)", rest):
                assert has_option(verb, option), f"{verb} has no {option}"
        assert all(len(line) <= 80 for line in done.out.splitlines()), done.out
    equal(sorted(map(int, statuses)), [int(status) for status in re.findall(r"(?m)^\.It (\d+)$", source)], "exit statuses in the manual")


@scenario("on a full disk every verb that prints has exit status 74")
def _():
    place, simulator, daemon = daemon_with_price()
    commands = [[verb, *WORDS.get(verb, []), *form] for verb in verbs() for form in ([], ["--json"])
                # pause, resume and source print nothing but JSON, top prints on terminals only, and nothing has happened.
                if verb != "events" and (has_option(verb, "--json") if form else verb not in ("pause", "resume", "source", "top"))]
    for words in (*commands, ["current", "--bar", "polybar"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [BINARIES / "btcctl", *words, "--socket", place.socket], stdout=full, stderr=subprocess.PIPE, text=True,
                input='{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        equal((done.returncode, NOTE.sub("", done.stderr)), (74, "btcctl: cannot write: No space left on device\n"), words)
    daemon.stop()


@scenario("closed descriptors, a daemon that hangs, and one that this user may not use")
def _():
    place, simulator, daemon = daemon_with_price()
    for verb in ("wait", "watch", "current"):
        done = subprocess.run(["sh", "-c", f"{BINARIES}/btcctl {verb} --socket {place.socket} <&- >&-"], capture_output=True, text=True, timeout=10)
        equal((done.returncode, NOTE.sub("", done.stderr)), (74, "btcctl: cannot write: Bad file descriptor\n"), verb)
    equal(btcctl(place, "wait", "--timeout", "0").status, 0, "what lies ready is taken without any time")
    # A reader that has stopped does not prevent the end of a watch, whatever the state of the pipe.
    read, write = os.pipe()
    os.set_blocking(write, False)
    watch = spawn(["sh", "-c", f"exec {BINARIES}/btcctl watch --json --socket {place.socket}"], stdout=write)
    fcntl.fcntl(write, 1031, 4096)  # F_SETPIPE_SZ
    wait_until(lambda: bytes_in(read) > 3500, what="a full pipe")
    time.sleep(1.2)
    watch.terminate()
    equal(watch.wait(timeout=10), -signal.SIGTERM)
    os.close(read)
    os.close(write)
    # There is no reader, and no output.
    btcctl(place, "pause")
    watch = spawn([BINARIES / "btcctl", "watch", "--socket", place.socket], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch.stdout.readline()
    watch.stdout.close()
    equal(watch.wait(timeout=10), -signal.SIGPIPE)
    told = NOTE.sub("", watch.stderr.read()).splitlines()
    equal([line for line in told if not line.startswith("Paused")], [], "it ends quietly")
    btcctl(place, "resume")
    fresh(place)
    suspend(daemon.process)
    waiting = spawn([BINARIES / "btcctl", "wait", "--timeout", "7", "--socket", place.socket], stderr=subprocess.PIPE, text=True)
    reporting = spawn([BINARIES / "btcctl", "status", "--watch", "--socket", place.socket], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    reporting.send_signal(signal.SIGWINCH)
    time.sleep(0.2)
    equal(reporting.poll(), None, "a terminal of another size ends nothing")
    reporting.terminate()
    equal((reporting.wait(timeout=3), reporting.stderr.read()), (-signal.SIGTERM, ""))
    result = btcctl(place, "current")
    assert "The daemon is running but does not respond" in result.err, result
    equal(waiting.wait(timeout=10), 75)
    told = waiting.stderr.read()
    assert told.startswith("btcctl: waiting: ") and told.count("no answer") == 1 and "btc-priced has not responded" in told, told
    daemon.process.send_signal(signal.SIGCONT)
    daemon.stop()
    result = btcctl(None, "current", "--socket", "")
    assert "not a valid socket path" in result.err and result.status == 69, result


@scenario("everything printed with --json conforms to the schema, which accepts nothing else")
def _():
    python = os.environ.get("VARLINK_PYTHON")
    if not python:
        raise Skip("VARLINK_PYTHON names no Python with the jsonschema package")
    program = """if True:
        import json, jsonschema, sys
        schema = json.load(open(sys.argv[1]))
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        for line in sys.stdin:
            validator.validate(json.loads(line))
            broken = json.loads(line)
            broken["version"] = 2
            assert not validator.is_valid(broken), broken
        print("good")
    """
    place, simulator, daemon = daemon_with_price()
    for verb in verbs():
        # watch does not end, and prints what wait prints.
        if verb == "watch" or not has_option(verb, "--json"):
            continue
        done = btcctl(place, verb, *WORDS.get(verb, []), "--json")
        equal(done.status, 0, done)
        printed.extend(done.out.splitlines())
    printed.extend(btcctl(place, "at", "now", "0.05btc", "--json").out.splitlines())
    daemon.stop()
    done = subprocess.run([python, "-c", program, ROOT / "docs" / "btcctl.schema.json"], input="\n".join(printed), capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, "good\n"), done.stderr)
    return f"{len(printed)} lines"


main()
