"""Brokers for the fleet's tests: mosquitto with the configuration of docs/fleet.md, and the satellites that use them."""

from .btcpriced import *
from .examples import of_page


def documented(name):
    """A file's text in docs/fleet.md: the block of code after the line that names it."""
    text = (ROOT / "docs/fleet.md").read_text()
    block = re.search(rf"`{re.escape(name)}`[^\n]*:\n\n```\n(.*?)```\n", text, re.S)
    assert block, f"docs/fleet.md has no {name}"
    return block[1]


def pasted(start):
    """The commands of docs/fleet.md that begin with these words."""
    found = [block for block in of_page(ROOT / "docs/fleet.md") if block.startswith(start)]
    assert len(found) == 1, f"docs/fleet.md has {len(found)} blocks that begin with {start}"
    return found[0]


class Broker:
    """mosquitto, root or leaf, as docs/fleet.md configures it."""

    def __init__(self, certificates, address="127.0.0.1", root=None, prefix=(), more=""):
        if not shutil.which("mosquitto"):
            raise Skip("mosquitto is absent")
        self.certificates, self.address, self.prefix = certificates, address, prefix
        self.folder = tempfile.mkdtemp(prefix="btc-priced-broker-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.port = free_port(address)
        name = "leaf" if root else "root"
        text = documented(f"/etc/mosquitto/conf.d/btcpriced-{name}.conf")
        certificate, key = certificates(f"broker-{self.port}", [address])
        known = {"listener 8883": f"listener {self.port} {address}", "/etc/mosquitto/btcpriced/ca.pem": certificates.authority,
                 "/etc/mosquitto/btcpriced/server.pem": certificate, "/etc/mosquitto/btcpriced/server.key": key,
                 "/etc/mosquitto/btcpriced/acl": f"{self.folder}/acl"}
        if root:
            bridge, bridge_key = certificates(f"leaf-{self.port}")
            known |= {"root.example:8883": f"{root.address}:{root.port}", "/etc/mosquitto/btcpriced/leaf.pem": bridge,
                      "/etc/mosquitto/btcpriced/leaf.key": bridge_key}
        for old, new in known.items():
            assert old in text, f"{old} is not in the documented configuration"
            text = text.replace(old, new)
        Path(f"{self.folder}/acl").write_text(documented(f"/etc/mosquitto/btcpriced/acl ({name})"))
        # It would become the user of the package, who can't read the files of the test.
        Path(f"{self.folder}/conf").write_text(text + more + ("user root\n" if os.geteuid() == 0 else ""))
        self.start()

    @property
    def url(self):
        return f"mqtts://{self.address}:{self.port}"

    def start(self):
        self.log = open(f"{self.folder}/log", "a")
        self.process = spawn([*self.prefix, "mosquitto", "-c", f"{self.folder}/conf"], stdout=self.log, stderr=self.log)
        wait_until(self.listens, what=lambda: f"the broker: {self.said()}")

    def listens(self):
        """Looked for in the system's table: it may be in another network namespace."""
        port = f":{self.port:04X} "
        return any(port in line and " 0A " in line for line in Path(f"/proc/{self.process.pid}/net/tcp").read_text().splitlines())

    def said(self):
        return Path(f"{self.folder}/log").read_text()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Fleet(Logged):
    """btc-price-fleet, publishing or following."""

    def __init__(self, mode, broker, certificates, name, *arguments, identity=None, url=None, prefix=()):
        certificate, key = identity or certificates(name)
        super().__init__(
            [*prefix, BINARIES / "btc-price-fleet", mode, "--broker", url or broker.url, "--ca-file", certificates.authority,
             "--certificate", certificate, "--key", key, *arguments])
        wait_until(lambda: self.said("Ready: ") or self.process.poll() is not None, what="the satellite")

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=20)


def ways(watches):
    """For each watch after the first: how much later it showed the prices that the first one showed, in seconds, in order."""
    def shown(watch):
        seen = {}
        for at, state in zip(watch.times, watch.states):
            seen.setdefault(state["quote"]["timestamp"], at)
        return seen
    first, *others = map(shown, watches)
    return [sorted(seen[time] - first[time] for time in seen.keys() & first.keys()) for seen in others]


def publisher(broker, certificates, name, place, *arguments, **options):
    """A publisher of the daemon at `place`."""
    return Fleet("publish", broker, certificates, name, "--socket", place.socket, "--name", name, *arguments, **options)


class Follower(Fleet):
    """A follower with a folder for its sockets."""

    def __init__(self, broker, certificates, publishers=(), name="host", **options):
        self.directory = tempfile.mkdtemp(prefix="btc-priced-fleet-")
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        names = ["--publishers", ",".join(publishers)] if publishers else []
        super().__init__("follow", broker, certificates, name, "--directory", self.directory, *names, **options)

    def place(self, publisher):
        """What stands for the publisher's daemon."""
        place = Place()
        place.socket = f"{self.directory}/{publisher}"
        return place
