#!/usr/bin/env python3
"""The way to a real exchange: TLS, with its certificate looked at."""

import http.server
import os
import ssl
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403


class Exchange:
    """A TLS server on loopback that answers as Binance does, with a certificate for `name` by an authority of its own."""

    def __init__(self, name="127.0.0.1"):
        self.folder = tempfile.mkdtemp(prefix="btc-priced-tls-")
        atexit.register(shutil.rmtree, self.folder, True)
        self.authority = f"{self.folder}/ca.pem"
        kind = "IP" if name[0].isdigit() else "DNS"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                      "-subj", "/CN=An authority of this test", "-keyout", "ca.key", "-out", "ca.pem")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                      "-keyout", "server.key", "-out", "server.csr")
        with open(f"{self.folder}/extensions", "w") as file:
            file.write(f"subjectAltName={kind}:{name}\n")
        self._openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                      "2", "-extfile", "extensions", "-out", "server.pem")
        exchange = self
        self.connections = 0
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                exchange.connections += 1
                super().setup()

            def do_GET(self):
                exchange.requests.append((self.request_version, self.path, self.headers["User-Agent"]))
                body = b'{"symbol":"BTCUSDT","price":"68901.23000000"}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self.folder}/server.pem", f"{self.folder}/server.key")
        # Both are offered: that HTTP/1.1 is spoken is the client's choice.
        context.set_alpn_protocols(["h2", "http/1.1"])

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # A client that refuses our certificate.

            def finish_request(self, request, address):
                secured = context.wrap_socket(request, server_side=True)
                super().finish_request(secured, address)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)


@scenario("over TLS one connection is kept, HTTP/1.1 is spoken, and the client names itself")
def _():
    exchange, place = Exchange(), Place()
    daemon = Daemon(place, {"binance": exchange.url}, "--tls-ca-file", exchange.authority, sources=["binance"])
    equal(fresh(place)["quote"]["value"], "68901.23")
    wait_until(lambda: len(exchange.requests) >= 4, what="four requests")
    equal(exchange.connections, 1, "connections")
    equal({request[0] for request in exchange.requests}, {"HTTP/1.1"})
    equal({request[1] for request in exchange.requests}, {"/api/v3/ticker/price?symbol=BTCUSDT"})
    assert all(request[2].startswith("btc-priced/0.1.0") for request in exchange.requests), exchange.requests[0]
    daemon.stop()


@scenario("a certificate by nobody we know, or for somebody else, is refused")
def _():
    unknown = "TLS: its certificate can't be verified: not valid now, or by an authority that is not trusted here"
    another = "TLS: its certificate is for another host"
    for exchange, trusted, reason in ((Exchange(), False, unknown), (Exchange("valid.example"), True, another)):
        place = Place()
        arguments = ["--tls-ca-file", exchange.authority] if trusted else []
        daemon = Daemon(place, {"binance": exchange.url}, *arguments, sources=["binance"])
        wait_until(
            lambda: daemon.said(f"binance gave no price: not reached: {reason}"),
            what=lambda: f"the refusal; {daemon.lines}")
        equal(exchange.requests, [], "requests")
        equal(btcctl(place, "current").status, 1)
        daemon.stop()


main()
