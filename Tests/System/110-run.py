#!/usr/bin/env python3
"""`make run` and `make demo` with built binaries, in a terminal, ended by Ctrl-C."""

import os
import pty

from lib.btcpriced import *


def processes_of(home):
    """The processes with `home` in their command line."""
    found = []
    # Without a glob, which fails if a process ends meanwhile.
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if home in Path(f"/proc/{process}/cmdline").read_text():
                found.append(process)
        except OSError:
            pass
    return found


def in_terminal(*arguments):
    home = tempfile.mkdtemp(prefix="btc-priced-home-")
    atexit.register(shutil.rmtree, home, True)
    environment = {**os.environ, "HOME": home, "XDG_RUNTIME_DIR": home, "TMPDIR": home, "TERM": "dumb"}
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    pid, master = pty.fork()
    if pid == 0:
        os.execve(ROOT / "scripts" / "run", ["run", *arguments], environment)
    screen = b""
    begun = time.monotonic()
    try:
        while screen.count(b" - $") < 3:
            assert time.monotonic() - begun < 30, screen.decode()
            screen += os.read(master, 4096)
        # The printed command for another terminal works there.
        command = re.search(r"In another terminal:\s+(\S.*btcctl current --socket \S+)", screen.decode()).group(1)
        other = subprocess.run(command.split(), capture_output=True, text=True, timeout=10)
        assert other.returncode == 0 and " - $" in other.stdout, (command, other)
        os.write(master, b"\x03")
        while True:
            screen += os.read(master, 4096)
    except OSError:
        pass
    _, status = os.waitpid(pid, 0)
    text = screen.decode().replace("\r\n", "\n")
    equal(processes_of(home), [], f"processes left; {text}")
    equal(os.waitstatus_to_exitcode(status), 130, text)
    return text, home


@scenario("make run shows the price, offline too, and Ctrl-C ends daemon and watch")
def _():
    text, home = in_terminal()
    if "SIMULATED PRICES" in text:
        assert "No exchange answers from here:" in text and "Going on against the simulator." in text, text
        assert text.index("SIMULATED PRICES") < text.index(" - $"), text
        assert os.path.exists(f"{home}/.local/state/btc-priced-simulated/last-quote.json")
        assert not os.path.exists(f"{home}/.local/state/btc-priced/last-quote.json"), "no simulated price among the real"
        return "no exchange answered: simulated"
    return "an exchange answered"


@scenario("make demo uses the simulator at once")
def _():
    text, home = in_terminal("--demo")
    assert text.index("SIMULATED PRICES") < text.index(" - $"), text
    assert "No exchange" not in text, text


main()
