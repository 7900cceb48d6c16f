"""Instructions and allocations of a running program, counted by callgrind: what a time would say, without the noise."""

import collections
import glob
import re
import shutil
import subprocess
import tempfile

from . import btcpriced
from .btcpriced import *

ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"}


class Callgrind:
    """What a program is started with, to be counted while it is told to."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="btc-priced-counted-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.prefix = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", "--demangle=no", "--dump-instr=yes",
                       f"--callgrind-out-file={self.folder}/out"]
        self.dumps = 0
        # What callgrind wrote last.
        self.text = ""

    def stripped(self, name):
        """A folder with this program of ours without its debug information, which valgrind would read for minutes."""
        subprocess.run(["strip", "--strip-debug", "-o", f"{self.folder}/{name}", BINARIES / name], check=True)
        return Path(self.folder)

    def _control(self, pid, *words):
        subprocess.run(["callgrind_control", *words, str(pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def during(self, pid, work):
        """The instructions of all threads while `work` runs, how many blocks of memory they asked for, and what `work` returns."""
        self._control(pid, "-i", "on")
        result = work()
        self._control(pid, "-i", "off")
        # callgrind takes its orders at its leisure, and numbers what it writes.
        self.dumps += 1
        self._control(pid, "-d")

        def written():
            texts = [Path(path).read_text() for path in glob.glob(f"{self.folder}/out*.{self.dumps}")]
            return [text for text in texts if re.search(r"^totals: \d+", text, re.M)]
        self.text = wait_until(written, what="callgrind's figures")[0]
        return int(re.search(r"^totals: (\d+)", self.text, re.M)[1]), self._allocations(self.text), result

    def lines(self, times):
        """The lines of code, of 64 bytes, of which an instruction ran at least so many times in the last count: what the caches hold."""
        found, address, is_call = set(), 0, False
        for line in self.text.splitlines():
            if line.startswith("calls="):
                is_call = True
            elif position := re.match(r"(0x[0-9a-f]+|[+-]\d+|\*) \S+ (\d+)$", line):
                # An address is absolute, or relative to the last one.
                if position[1].startswith("0x"):
                    address = int(position[1], 16)
                elif position[1] != "*":
                    address += int(position[1])
                # The line after a call has the costs of what was called.
                if not is_call and int(position[2]) >= times:
                    found.add(address // 64)
                is_call = False
        return len(found)

    @staticmethod
    def _allocations(text):
        names, calls = {}, collections.Counter()
        for line in text.splitlines():
            if found := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line):
                if found[3]:
                    names[found[2]] = found[3]
                called = found[2]
            elif line.startswith("calls="):
                calls[called] += int(line[6:].split()[0])
        return sum(count for number, count in calls.items() if names[number] in ALLOCATORS)


class Counted:
    """A daemon under callgrind."""

    def __init__(self, secure, *options, sources=("binance",)):
        self.simulator = Simulator("--seed", "1", secure=secure)
        self.place = Place()
        known_price(self.place, "68000")
        self.callgrind = Callgrind()
        trust = ["--tls-ca-file", self.simulator.authority] if secure else []
        kept, btcpriced.BINARIES = btcpriced.BINARIES, self.callgrind.stripped("btc-priced")
        try:
            self.daemon = Daemon(self.place, self.simulator.urls, *trust, *options, sources=sources, prefix=self.callgrind.prefix, wait=False)
        finally:
            btcpriced.BINARIES = kept
        wait_until(lambda: can_connect(self.place.socket), seconds=60, what="the socket")

    def state(self):
        client = Varlink(self.place.socket)
        state = client.call("io.btcpriced.Price.GetPrice")["parameters"]["state"]
        client.close()
        return state

    def change(self, verb):
        equal(btcctl(self.place, verb, timeout=60).status, 0)

    def settled(self, ticks):
        """Once it has done so many fresh ticks, and what only the first of them need is over."""
        wait_until(lambda: self.state()["freshness"] == "fresh" and self.state()["tick"] >= ticks, seconds=60, what=f"{ticks} ticks", every=0.2)

    def during(self, work):
        return self.callgrind.during(self.daemon.process.pid, work)

    def stop(self):
        self.daemon.stop()
        self.simulator.stop()


def count_of_tick(secure, ticks=40, interval=250):
    """Of a steady tick with one source: instructions, blocks of memory asked for, and lines of code that three ticks of four run."""
    counted = Counted(secure, "--tick-interval-ms", str(interval), "--tick-budget-ms", "2000")
    counted.settled(8)
    # callgrind begins and ends to count with a delay, in which there must be no ticks.
    counted.change("pause")
    begun = counted.state()["tick"]

    def tick():
        counted.change("resume")
        # A call would be counted, too.
        time.sleep(ticks * interval / 1000)
        wait_until(lambda: counted.state()["tick"] >= begun + ticks, seconds=60, what="the ticks", every=ticks * interval / 1000 / 4)
        counted.change("pause")
        return counted.state()["tick"] - begun
    instructions, allocations, done = counted.during(tick)
    counted.stop()
    return instructions / done, allocations / done, counted.callgrind.lines(done * 3 // 4)


def count_of_call(calls=2000):
    """Of the commonest call in its commonest bytes, while the ticks stand still: instructions, and blocks of memory asked for."""
    counted = Counted(False)
    counted.settled(2)
    counted.change("pause")
    client = Varlink(counted.place.socket)

    def ask():
        for _ in range(calls):
            client.send(b'{"method":"io.btcpriced.Price.GetPrice"}\0')
            client.receive()
    ask()
    instructions, allocations, _ = counted.during(ask)
    client.close()
    counted.stop()
    return instructions / calls, allocations / calls
