#!/usr/bin/env python3
"""The output for Waybar, i3blocks and polybar: a valid line and exit status 0, whatever fails."""

from lib.btcpriced import *

BARS = ("waybar", "i3blocks", "polybar")
UP, DOWN, STALE, ERROR = "#46954a", "#e5534b", "#c69026", "#b083f0"


def markup(text):
    """Whether Pango accepts it: no bare ampersand, no tag."""
    return not re.search(r"<|>|&(?!(amp|lt|gt);)", text)


def checked(bar, out):
    """Checks a line against the bar's contract. Returns the shown text and its classes."""
    assert out.endswith("\n") and out.count("\n") == 1, out
    line = out.rstrip("\n")
    if bar == "waybar":
        # waybar-custom(5), return-type json: text, alt, tooltip, class (a string or an array), percentage.
        value = json.loads(line)
        assert set(value) <= {"text", "alt", "tooltip", "class", "percentage"}, value
        assert all(isinstance(value[key], str) for key in ("text", "alt", "tooltip")) and markup(value["text"]) and markup(value["tooltip"]), value
        assert isinstance(value["class"], list) and all(isinstance(name, str) for name in value["class"]), value
        equal(value["alt"], value["class"][0])
        return value["text"], value["class"]
    if bar == "i3blocks":
        # A block of the i3bar protocol: full_text is required and not empty, or it is not shown. Private names begin with an underscore.
        value = json.loads(line)
        assert set(value) <= {"full_text", "short_text", "color", "_class"}, value
        assert all(isinstance(member, str) and member for member in value.values()), value
        assert re.fullmatch(r"#[0-9a-f]{6}", value.get("color", "#000000")), value
        return value["full_text"], value["_class"].split()
    # polybar, custom/script: a line of text with closed formatting tags.
    found = re.fullmatch(r"%\{F(#[0-9a-f]{6})\}([^%]+)%\{F-\}|([^%]+)", line)
    assert found, line
    text = found[2] or found[3]
    classes = {None: ["ok"], UP: ["ok", "up"], DOWN: ["ok", "down"], STALE: ["stale"], ERROR: ["error"]}[found[1]]
    return text, classes


def current(place, bar, *arguments, timeout=20):
    done = btcctl(place, "current", "--bar", bar, *arguments, timeout=timeout)
    equal((done.status, done.err), (0, ""), done)
    return checked(bar, done.out)


@scenario("current for a bar: a fresh, a stale and no price, an absent and a silent daemon, and invalid options")
def _():
    place, simulator = Place(), replaying("68901.23")
    known_price(place, "68901.23")
    daemon = Daemon(place, simulator.urls)
    settled(place)
    for bar in BARS:
        equal(current(place, bar), ("$68,901.23", ["ok"]), bar)
    simulator.faults("* always status 500")
    wait_until(lambda: btcctl(place, "current", "--json").json["freshness"] == "stale", what="stale")
    for bar in BARS:
        text, classes = current(place, bar)
        equal(classes, ["stale"])
        assert re.fullmatch(r"\$68,901\.23 \([A-Z][a-z]{2} \d+, \d\d:\d\d\)", text), text
        equal(current(place, bar, "--max-age", "0"), ("-", ["error"]), "older than it may be")
        equal(current(place, bar, "--no-cache"), ("-", ["error"]), "no source answers")
        for wrong in (["--dance"], ["--json"], ["--max-age", "x"]):
            done = btcctl(place, "current", "--bar", bar, *wrong)
            equal(done.status, 0, wrong)
            equal(checked(bar, done.out), ("-", ["error"]), wrong)
    # btcctl waits for a daemon, but a bar must not wait that long.
    suspend(daemon.process)
    begun = time.monotonic()
    equal(current(place, "waybar"), ("-", ["error"]))
    seconds = time.monotonic() - begun
    assert seconds < 4, seconds
    daemon.process.send_signal(signal.SIGCONT)
    daemon.stop()
    for bar in BARS:
        equal(current(place, bar), ("-", ["error"]), "gone")
    empty = Place()
    daemon = Daemon(empty, sources=["binance"])
    for bar in BARS:
        equal(current(empty, bar), ("-", ["error"]), "never had a price")
    daemon.stop()
    return f"a silent daemon costs {seconds:.1f} s"


@scenario("watch for a bar: a line at each change, from before the start of the daemon until after its end")
def _():
    place, simulator = Place(), replaying("68000")
    known_price(place, "68000")
    processes = {bar: spawn([BINARIES / "btcctl", "watch", "--bar", bar, "--socket", place.socket], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True) for bar in BARS}
    seen = {bar: [] for bar in BARS}

    def read(bar):
        for line in processes[bar].stdout:
            shown = checked(bar, line)
            # Once a minute the data of the day grows, which is in Waybar's tooltip.
            if bar != "waybar" or shown not in seen[bar][-1:]:
                seen[bar].append(shown)

    for bar in BARS:
        threading.Thread(target=read, args=(bar,), daemon=True).start()

    def every(text, classes):
        wait_until(lambda: all(seen[bar] and seen[bar][-1] == (text, classes) for bar in BARS),
                   what=lambda: f"{text} {classes}, not {[seen[bar][-1:] for bar in BARS]}")

    every("-", ["error"])
    daemon = Daemon(place, simulator.urls, "--tick-interval-ms", "200", "--tick-budget-ms", "1000")
    every("$68,000.00", ["ok"])
    time.sleep(1)
    simulator.faults("* always price 68010")
    every("$68,010.00", ["ok", "up"])
    simulator.faults("* always price 68005")
    every("$68,005.00", ["ok", "down"])
    simulator.faults("* always status 500")
    wait_until(lambda: all(seen[bar][-1][1] == ["stale"] for bar in BARS), what="stale")
    simulator.faults("* always price 68005")
    every("$68,005.00", ["ok", "down"])
    daemon.stop()
    wait_until(lambda: all(seen[bar][-1][1] == ["stale"] for bar in BARS), what="stale, since the daemon is gone")
    # Before its first tick the daemon has the stored price, which a bar may see.
    for lines in seen.values():
        if lines[1][1] == ["stale"]:
            del lines[1]
    equal({bar: len(lines) for bar, lines in seen.items()}, {bar: 7 for bar in BARS}, f"a line at each change, and no other; {seen}")
    for process in processes.values():
        equal(process.poll(), None)
        process.terminate()
        equal((process.wait(timeout=5), process.stderr.read()), (-signal.SIGTERM, ""))


@scenario("a watch ends quietly after the end of its bar")
def _():
    place, simulator, daemon = running()
    watch = spawn([BINARIES / "btcctl", "watch", "--bar", "waybar", "--socket", place.socket], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch.stdout.readline()
    watch.stdout.close()
    equal((watch.wait(timeout=10), watch.stderr.read()), (-signal.SIGPIPE, ""))
    daemon.stop()


main()
