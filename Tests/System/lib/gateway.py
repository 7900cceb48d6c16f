"""The HTTP gateway as a process, and clients of it."""

import http.client
import socket
import threading

from .btcpriced import BINARIES, Logged, free_port, json, wait_until


class Gateway(Logged):
    """btc-price-http, at a port of its own."""

    def __init__(self, path, *arguments, listen=None, prefix=(), **options):
        self.port = free_port()
        addresses = [f"--listen={address}" for address in listen or [f"127.0.0.1:{self.port}"]]
        super().__init__([*prefix, BINARIES / "btc-price-http", "--socket", path, *addresses, *arguments], **options)
        wait_until(lambda: self.said("Ready: ") or self.process.poll() is not None, what="the gateway")

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=10)

    def get(self, path, method="GET", timeout=10, **headers):
        return get(("127.0.0.1", self.port), path, method, timeout, **headers)


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        # Numbers as they are written.
        return json.loads(self.body, parse_float=str, parse_int=str)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:500]}"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def get(address, path, method="GET", timeout=10, **headers):
    """A request on a connection of its own. `Host` and others by keyword, with _ for -."""
    connection = _UnixConnection(address, timeout) if isinstance(address, str) else http.client.HTTPConnection(*address, timeout=timeout)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return Reply(connection.getresponse())
    finally:
        connection.close()


class Events:
    """A client of an event stream."""

    def __init__(self, port, path="/v1/watch", **headers):
        self.socket = socket.create_connection(("127.0.0.1", port))
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}"] + [f"{n.replace('_', '-')}: {v}" for n, v in headers.items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.text = ""
        self.is_closed = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while part := self.socket.recv(65536):
                self.text += part.decode()
        except OSError:
            pass
        self.is_closed = True

    @property
    def events(self):
        """The whole events: name, id, data. The framing of chunks lies on lines of its own."""
        found = []
        for block in self.text.replace("\r", "").split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0].isalpha())
            if "event" in fields and "data" in fields:
                found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
        return found

    @property
    def states(self):
        return [data for name, _, data in self.events if name == "price"]

    def stop(self):
        self.socket.close()
