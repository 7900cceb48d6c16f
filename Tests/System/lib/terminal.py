"""A real terminal: tmux, into which a test types and whose screen it reads."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .btcpriced import BINARIES, atexit, equal, wait_until


class Terminal:
    """A shell in a terminal of its own, into which one types and whose screen one reads."""

    def __init__(self, shell="bash --noprofile --rcfile {rc} -i", columns=80, rows=12, ready="$", **environment):
        self.folder = tempfile.mkdtemp(prefix="btc-priced-tmux-")
        self.server = ["tmux", "-S", f"{self.folder}/socket", "-f", "/dev/null"]
        variables = {"PS1": "$ ", "LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "",
                     "PATH": f"{BINARIES}:{os.environ['PATH']}", **environment}
        Path(self.folder, "rc").write_text("".join(f"export {name}='{value}'\n" for name, value in variables.items()))
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, shell.format(rc=f"{self.folder}/rc"))
        atexit.register(self.close)
        wait_until(lambda: ready in self.screen(), what="the shell")

    def tmux(self, *words):
        done = subprocess.run([*self.server, *map(str, words)], capture_output=True, text=True, timeout=20, env={**os.environ, "LC_ALL": "C.UTF-8"})
        equal(done.returncode, 0, done.stderr)
        return done.stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def run(self, line):
        self.type(line, "Enter")

    def screen(self, colors=False):
        """What stands there, empty lines at the end left out."""
        return self.tmux("capture-pane", "-p", *(["-e"] if colors else [])).rstrip("\n") + "\n"

    def shows(self, *texts, colors=False):
        """Waits until all of them stand there at once; the screen."""
        return wait_until(
            lambda: (lambda s: s if all(text in s for text in texts) else None)(self.screen(colors)), every=0.02,
            what=lambda: f"{texts} in {self.screen(colors)}")

    def lacks(self, text):
        return wait_until(
            lambda: (lambda s: s if text not in s else None)(self.screen()), every=0.02,
            what=lambda: f"no {text!r} in {self.screen()}")

    def resize(self, columns):
        self.tmux("resize-window", "-x", columns)

    def close(self):
        subprocess.run([*self.server, "kill-server"], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)
