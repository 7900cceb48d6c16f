"""`btcctl current` as a whole process, compared with a minimal client in C and with redis-cli."""

import shutil
import subprocess

from measuring import BINARIES, BUILT, compiled, paired, ratios, redis, resident, running_daemon, spread, table

RUNS = 500


def stripped():
    """btcctl as in the package: stripped."""
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / "btcctl"
    subprocess.run(["strip", "-o", f"{program}.part", BINARIES / "btcctl"], check=True)
    # Copied in one go, as by dpkg: a file that strip has written piece by piece costs more page faults while it is cached.
    shutil.copyfile(f"{program}.part", program)
    program.chmod(0o755)
    return program


def measure():
    place, _, daemon = running_daemon()
    path, server = redis()
    subprocess.run(["redis-cli", "-s", path, "set", "price", "68901.23"], check=True, capture_output=True)
    commands = {
        "C client": [str(compiled("current.c")), place.socket],
        "btcctl current": [str(stripped()), "current", "--socket", place.socket],
        **{f"btcctl current {' '.join(form)}": [str(stripped()), "current", *form, "--socket", place.socket]
           for form in (["--json"], ["--raw"], ["--bar", "waybar"])},
        "redis-cli get": [shutil.which("redis-cli"), "-s", path, "get", "price"],
    }
    seconds = paired(commands, RUNS)
    rows = []
    for name, values in seconds.items():
        rows.append([name, spread(values), f"{ratios(values, seconds['C client']):.2f}", f"{ratios(values, seconds['redis-cli get']):.2f}",
                     f"{resident(commands[name]) / 1024:.1f}"])
    daemon.stop()
    server.terminate()
    server.wait()
    return (f"## The client\n\nA whole process from its start to its end, {RUNS} runs of each in turn on one processor.\n\n"
            + table(["", "milliseconds: median (middle half)", "over the C client", "over redis-cli", "peak resident MiB"], rows))
