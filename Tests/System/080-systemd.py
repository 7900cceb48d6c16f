#!/usr/bin/env python3
"""The interface to systemd: notifications, passed sockets, the watchdog, credentials, the unit."""

import os

from lib.btcpriced import *


class Manager:
    """systemd's end of the notification socket."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="btc-priced-notify-")
        self.path = f"{self.folder}/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.messages = []
        threading.Thread(target=self._read, daemon=True).start()
        atexit.register(shutil.rmtree, self.folder, True)

    def _read(self):
        while True:
            message = self.socket.recv(65536).decode()
            self.messages.append((time.monotonic(), message))

    def got(self, text):
        return [message for _, message in list(self.messages) if text in message]


@scenario("READY once the socket listens and the stored quote is loaded, without waiting for the network")
def _():
    place, simulator, daemon = running()
    daemon.stop()
    manager = Manager()
    # Exchanges that accept connections and never respond.
    simulator.faults("* always dark")
    begun = time.monotonic()
    # With this timeout no source has failed by then.
    patience = [f"--{key}-ms" for key in ("tick-budget", "source-binance-timeout", "source-binance-hedge")]
    daemon = Daemon(
        place, simulator.urls, *[word for key in patience for word in (key, "60000")],
        environment={"NOTIFY_SOCKET": manager.path}, wait=False)
    ready = wait_until(lambda: manager.got("READY=1"), what="READY=1")
    seconds = next(moment for moment, message in manager.messages if "READY=1" in message) - begun
    assert "STATUS=Stale, last value " in ready[0], ready
    equal(btcctl(place, "current").status, 0, "a client right after READY")
    assert not daemon.said("gave no price"), daemon.lines
    equal(daemon.stop()[0], 0)
    assert manager.got("STOPPING=1"), manager.messages
    return f"READY=1 after {seconds * 1000:.0f} ms"


@scenario("STATUS follows the price, and has a time, not an age")
def _():
    place, simulator, manager = Place(), Simulator("--seed", "1"), Manager()
    daemon = Daemon(place, simulator.urls, environment={"NOTIFY_SOCKET": manager.path})
    wait_until(lambda: manager.got(" USD from binance at 20"), what="the price")
    simulator.faults("binance always status 500")
    wait_until(lambda: manager.got(" USD from coinbase at 20"), what="the fallback")
    simulator.faults("* always status 500")
    wait_until(lambda: manager.got("STATUS=Stale, last value "), what="stale")
    simulator.faults("")
    count = len(manager.messages)
    wait_until(lambda: any(" USD from binance" in m for _, m in manager.messages[count:]), what="recovery")
    assert not any("\n" in message for _, message in manager.messages if message.startswith("STATUS")), manager.messages
    assert len(manager.messages) < 12, "a change, or ten seconds: not every tick"
    daemon.stop()


@scenario("WATCHDOG=1 is sent while the daemon runs, with exchanges down or not, and not while it is stopped")
def _():
    place, manager = Place(), Manager()
    daemon = Daemon(place, environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "900000"})
    wait_until(lambda: len(manager.got("WATCHDOG=1")) >= 5, what="five signs of life")
    suspend(daemon.process)
    time.sleep(0.2)
    count = len(manager.got("WATCHDOG=1"))
    time.sleep(1.5)
    equal(len(manager.got("WATCHDOG=1")), count, "signs of life while stopped")
    daemon.process.send_signal(signal.SIGCONT)
    wait_until(lambda: len(manager.got("WATCHDOG=1")) > count, what="life again")
    daemon.stop()


def unread(path):
    """A datagram socket whose queue is full, so that a send to it waits. The caller keeps it."""
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind(path)
    fill_queue(path, b"x")
    return receiver


@scenario("a journal that is not read holds up neither READY=1 nor WATCHDOG=1, nor the end")
def _():
    if os.geteuid() != 0:
        raise Skip("a mount namespace needs root")
    place, simulator, manager = Place(), Simulator("--seed", "1"), Manager()
    journal = unread(f"{manager.folder}/socket")
    # The place of the journal's socket (sd_journal_sendv(3)), and what shows that standard error is the journal.
    script = (f'mount -t tmpfs none /run && mkdir -p /run/systemd/journal && mount --bind {manager.folder} /run/systemd/journal && '
              'export JOURNAL_STREAM="$(stat -L -c %d:%i /proc/self/fd/2)" && exec "$@"')
    daemon = Daemon(
        place, simulator.urls, environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "900000"},
        prefix=("unshare", "-m", "sh", "-c", script, "sh"), wait=False)
    wait_until(lambda: manager.got("READY=1") or daemon.process.poll() is not None, what="READY=1")
    if daemon.process.poll() is not None:
        daemon._reader.join()
        assert daemon.lines[0].startswith(("unshare:", "mount:")), daemon.lines
        raise Skip(daemon.lines[0])
    fresh(place)
    count = len(manager.got("WATCHDOG=1"))
    wait_until(lambda: len(manager.got("WATCHDOG=1")) >= count + 3, what="signs of life")
    equal(daemon.lines, [], "all lines are the journal's")
    equal(daemon.stop()[0], 0)
    journal.close()


@scenario("a notification socket that is not read holds up neither ticks, clients, the log nor the end")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    manager = unread(f"{place.state}/notify")
    daemon = Daemon(
        place, simulator.urls, environment={"NOTIFY_SOCKET": f"{place.state}/notify", "WATCHDOG_USEC": "900000"})
    tick = fresh(place)["tick"]
    wait_until(lambda: btcctl(place, "current", "--json").json["tick"] > tick + 1, what="two ticks")
    equal(daemon.stop()[0], 0)
    assert daemon.said("Stopped."), daemon.lines
    manager.close()


@scenario("a socket passed by systemd is served and not removed")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place.socket)
    listener.listen(16)

    def pass_socket():
        os.dup2(listener.fileno(), 3)
        os.environ["LISTEN_PID"] = str(os.getpid())
    # The shell does the exec of systemd, because LISTEN_PID must be the daemon's.
    command = f'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
    daemon = spawn(
        ["/bin/sh", "-c", command, "sh", BINARIES / "btc-priced", "--state-directory", place.state,
         "--runtime-directory", place.runtime, "--sources", "binance", "--source-binance-url", simulator.urls["binance"]],
        preexec_fn=pass_socket, close_fds=False, stderr=subprocess.DEVNULL)
    fresh(place)
    daemon.terminate()
    equal(daemon.wait(timeout=10), 0)
    assert os.path.exists(place.socket), "the socket's file is systemd's"
    listener.close()


@scenario("CryptoCompare is requested with the credential; without one it is skipped, and reported once")
def _():
    place, simulator = Place(), Simulator("--seed", "1", faults="binance always status 500")
    sources = ["binance", "cryptocompare"]
    daemon = Daemon(place, simulator.urls, sources=sources)
    time.sleep(2.5)
    equal(len([l for l in daemon.lines if "cryptocompare is skipped: it needs a key" in l]), 1)
    equal(simulator.requests()["cryptocompare"], 0)
    daemon.stop()
    with open(f"{place.state}/cryptocompare-api-key", "w") as file:
        file.write("secret-of-a-test\n")
    # Its servers cache a response for ten seconds, so three equal ones would take long.
    known_price(place, "68900", source="coinbase")
    daemon = Daemon(place, simulator.urls, sources=sources, environment={"CREDENTIALS_DIRECTORY": place.state})
    state = wait_until(
        lambda: (lambda s: s if s["freshness"] == "fresh" else None)(btcctl(place, "current", "--json").json),
        what="a price")
    equal((state["quote"]["source"], state["quote"]["market"]), ("cryptocompare", "BTC/USD"))
    with open(f"/proc/{daemon.process.pid}/cmdline") as file:
        assert "secret" not in file.read()
    assert not daemon.said("secret"), daemon.lines
    daemon.stop()


main()
