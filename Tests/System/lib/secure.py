"""An exchange behind TLS, with a certificate for whom a test likes."""

import http.server
import ssl

from .btcpriced import *

ANOTHER_HOST = "TLS: its certificate is for another host"


class Exchange:
    """A TLS server on loopback that answers as Binance does, with a certificate for `name` by an authority of its own."""

    def __init__(self, name="127.0.0.1"):
        certificates = Certificates()
        self.authority = certificates.authority
        certificate = certificates("exchange", [name])
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
        context.load_cert_chain(*certificate)
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

    def expect(self, place, daemon, refused=None):
        """That the daemon has its price from here, or says for what reason it refuses to, before anything was asked."""
        if refused:
            wait_until(lambda: daemon.said(f"binance gave no price: not reached: {refused}"), what=lambda: f"the refusal; {daemon.lines}")
            equal(self.requests, [], "requests")
        else:
            equal(fresh(place)["quote"]["value"], "68901.23")
