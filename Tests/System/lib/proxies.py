"""Proxies, through which an exchange on loopback has another name and address."""

import select
import socket
import socketserver
import struct
import threading

# This machine is never requested through a proxy. The address is one for documentation (RFC 5737).
NAME, ADDRESS = "exchange.test", "192.0.2.1"


class Proxy:
    """An HTTP proxy (CONNECT and absolute addresses) or a SOCKS5 one, with the requested hosts."""

    def __init__(self, kind, host="127.0.0.1"):
        proxy = self
        self.targets = []

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                getattr(proxy, kind)(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass  # The client has closed the connection.
        self.server = Server((host, 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"{'socks5' if kind.startswith('socks5') else 'http'}://{host}:{self.server.server_address[1]}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def http(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            part = client.recv(65536)
            if not part:
                return
            head += part
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        if method == "CONNECT":
            self.targets.append(target)
            server = self.reach(*target.rsplit(":", 1))
            # The text of tinyproxy and others.
            client.sendall(b"HTTP/1.0 200 Connection established\r\n\r\n")
        else:
            authority = target.split("/")[2]
            self.targets.append(authority)
            server = self.reach(*authority.rsplit(":", 1))
            server.sendall(head.replace(target.encode(), ("/" + target.split("/", 3)[3]).encode(), 1))
        self.relay(client, server)

    def socks5(self, client):
        version, count = client.recv(2)
        client.recv(count)
        client.sendall(b"\x05\x00")
        _, _, _, kind = client.recv(4)
        if kind == 1:
            host = socket.inet_ntoa(client.recv(4))
        else:
            host = client.recv(client.recv(1)[0]).decode()
        port = struct.unpack(">H", client.recv(2))[0]
        self.targets.append(f"{host}:{port}")
        server = self.reach(host, port)
        client.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        self.relay(client, server)

    def refusing(self, client):
        client.recv(65536)
        client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    def demanding(self, client):
        client.recv(65536)
        client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    def lingering(self, client):
        client.recv(65536)
        # As with old proxies: the page ends with the connection, which stays open for long.
        client.sendall(b"HTTP/1.0 403 Forbidden\r\nContent-Type: text/html\r\n\r\n<html>")
        client.recv(65536)

    def endless(self, client):
        client.recv(65536)
        client.sendall(b"HTTP/1.1 200 OK\r\n" + 10_000 * b"X-Padding: 0123456789\r\n")

    def garbage(self, client):
        client.recv(65536)
        client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    def socks5_demanding(self, client):
        client.recv(65536)
        client.sendall(b"\x05\xff")

    def socks5_refusing(self, client):
        client.recv(65536)
        client.sendall(b"\x05\x00")
        client.recv(65536)
        client.sendall(b"\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00")

    @staticmethod
    def reach(host, port):
        # A name and an address that only the proxy knows.
        return socket.create_connection(("127.0.0.1" if host in (NAME, ADDRESS) else host, int(port)))

    @staticmethod
    def relay(one, other):
        while True:
            for ready in select.select([one, other], [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return
                (other if ready is one else one).sendall(data)
