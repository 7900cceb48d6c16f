"""Instructions of the running daemon, counted by callgrind: what a time would say, without the noise."""

import glob
import re
import shutil
import subprocess
import tempfile

import btcpriced
from btcpriced import *  # noqa: F403


def countable():
    """A folder with the daemon without its debug information, which valgrind would read for minutes."""
    folder = tempfile.mkdtemp(prefix="btc-priced-countable-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["strip", "--strip-debug", "-o", f"{folder}/btc-priced", BINARIES / "btc-priced"], check=True)
    return Path(folder)


class Counted:
    """A daemon under callgrind, which counts nothing until it is told to."""

    def __init__(self, secure, *options, sources=("binance",)):
        self.simulator = Simulator("--seed", "1", secure=secure)
        self.place = Place()
        known_price(self.place, "68000")
        self.folder = countable()
        trust = ["--tls-ca-file", self.simulator.authority] if secure else []
        command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", "--demangle=no", f"--callgrind-out-file={self.folder}/out"]
        kept, btcpriced.BINARIES = btcpriced.BINARIES, self.folder
        try:
            self.daemon = Daemon(self.place, self.simulator.urls, *trust, *options, sources=sources, prefix=command, wait=False)
        finally:
            btcpriced.BINARIES = kept
        wait_until(lambda: can_connect(self.place.socket), seconds=60, what="the socket")
        self.pid, self.dumps = self.daemon.process.pid, 0

    def state(self):
        client = Varlink(self.place.socket)
        state = client.call("io.btcpriced.Price.GetPrice")["parameters"]["state"]
        client.close()
        return state

    def settled(self, ticks):
        """Once it has done so many fresh ticks, and what only the first of them need is over."""
        wait_until(lambda: self.state()["freshness"] == "fresh" and self.state()["tick"] >= ticks, seconds=60, what=f"{ticks} ticks", every=0.2)

    def _control(self, *words):
        subprocess.run(["callgrind_control", *words, str(self.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def during(self, work):
        """The instructions of all threads while `work` runs, and what it returns."""
        self._control("-i", "on")
        result = work()
        self._control("-i", "off")
        # callgrind takes its orders at its leisure, and numbers what it writes.
        self.dumps += 1
        self._control("-d")

        def written():
            texts = [Path(path).read_text() for path in glob.glob(f"{self.folder}/out*.{self.dumps}")]
            return [int(number) for text in texts for number in re.findall(r"^totals: (\d+)", text, re.M)]
        return wait_until(written, what="callgrind's figures")[0], result

    def stop(self):
        self.daemon.stop()
        self.simulator.stop()


def instructions_of_tick(secure, ticks=40, interval=250):
    """Of a steady tick with one source."""
    counted = Counted(secure, "--tick-interval-ms", str(interval), "--tick-budget-ms", "2000")
    counted.settled(8)

    def tick():
        begun = counted.state()["tick"]
        wait_until(lambda: counted.state()["tick"] >= begun + ticks, seconds=60, what="the ticks", every=ticks * interval / 1000 / 4)
        return counted.state()["tick"] - begun
    instructions, done = counted.during(tick)
    counted.stop()
    return instructions / done


def instructions_of_call(calls=2000):
    """Of the commonest call in its commonest bytes, while the ticks stand still."""
    counted = Counted(False)
    counted.settled(2)
    equal(btcctl(counted.place, "pause").status, 0)
    client = Varlink(counted.place.socket)

    def ask():
        for _ in range(calls):
            client.send(b'{"method":"io.btcpriced.Price.GetPrice"}\0')
            client.receive()
    ask()
    instructions, _ = counted.during(ask)
    client.close()
    counted.stop()
    return instructions / calls
