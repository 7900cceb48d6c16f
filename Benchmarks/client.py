"""`btcctl current` as a whole process, compared with a minimal client in C."""

import os
import shutil
import statistics
import subprocess
import time

from measuring import BINARIES, BUILT, LOAD, Row, compiled, ratios, running_daemon

RUNS = 500
FORMS = {"": [], " --json": ["--json"], " --raw": ["--raw"], " --bar waybar": ["--bar", "waybar"]}


def stripped():
    """btcctl as in the package: stripped."""
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / "btcctl"
    subprocess.run(["strip", "-o", f"{program}.part", BINARIES / "btcctl"], check=True)
    # Copied in one go, as by dpkg: a file that strip has written piece by piece costs more page faults while it is cached.
    shutil.copyfile(f"{program}.part", program)
    program.chmod(0o755)
    return program


def once(command):
    """Runs a process to its end. Returns the milliseconds."""
    begun = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"{command}: {status}"
    return (time.perf_counter() - begun) * 1000


def measure():
    place, simulator, daemon = running_daemon()
    program, before = str(stripped()), os.sched_getaffinity(0)
    commands = {name: [program, "current", *form, "--socket", place.socket] for name, form in FORMS.items()}
    commands["C"] = [str(compiled("current.c")), place.socket]
    os.sched_setaffinity(0, {LOAD})
    runs = [{name: once(command) for name, command in commands.items()} for _ in range(RUNS + 10)][10:]
    os.sched_setaffinity(0, before)
    daemon.stop()
    simulator.stop()
    took = {name: [run[name] for run in runs] for name in commands}
    middle = {name: statistics.median(values) for name, values in took.items()}
    return [Row(f"`btcctl current{name}`, ms", middle[name], "C client", middle["C"], ratios(took[name], took["C"]), ratio_at_most=1.6)
            for name in FORMS]
