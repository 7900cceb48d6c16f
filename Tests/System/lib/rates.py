"""A server of reference rates."""

import datetime
import http.server
import json
import threading
import urllib.parse

from .btcpriced import ROOT

BUILT_IN = ROOT / "Sources/BTCPriceNetworking/Exchanges/reference-rates.toml"
RATES = {"USD": "1.1628", "HUF": "390.25", "PLN": "4.22", "RON": "5.09", "CZK": "24.527", "AED": "4.2704", "BRL": "3.4884", "MXN": "34.884"}


def day():
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


class RateServer:
    """The two sources of reference rates: the ECB's file, and Frankfurter's rows."""

    def __init__(self, rates=None):
        self.rates = {"ecb": dict(rates or RATES), "frankfurter": dict(rates or RATES)}
        self.status = {"ecb": 200, "frankfurter": 200}
        self.requests = {"ecb": 0, "frankfurter": 0}
        # The queries for past days.
        self.past = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
                name = "ecb" if "eurofxref" in self.path else "frankfurter"
                if "from" in query:
                    server.past.append(self.path)
                    body = server.history(*(query[key][0] for key in ("from", "to", "quotes"))).encode()
                else:
                    server.requests[name] += 1
                    body = getattr(server, name)().encode()
                self.send_response(server.status[name])
                if server.status[name] in (301, 302):
                    self.send_header("Location", "https://moved.example/")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ecb(self):
        rows = "".join(f"<Cube currency='{code}' rate='{rate}'/>\n" for code, rate in self.rates["ecb"].items() if code != "AED")
        return f"<?xml version='1.0'?>\n<gesmes:Envelope><Cube><Cube time='{day()}'>\n{rows}</Cube></Cube></gesmes:Envelope>\n"

    def frankfurter(self):
        return json.dumps([{"date": day(), "base": "EUR", "quote": code, "rate": float(rate)}
                           for code, rate in self.rates["frankfurter"].items()])

    @staticmethod
    def past_rate(code, date):
        """The rate of a working day, which differs from day to day; None at weekends."""
        return None if date.weekday() > 4 else round(float(RATES[code]) * (1 + date.toordinal() % 10 / 1000), 6)

    def history(self, start, end, quotes):
        start, end = (datetime.date.fromisoformat(text) for text in (start, end))
        days = [start + datetime.timedelta(number) for number in range((end - start).days + 1)]
        return json.dumps([{"date": each.isoformat(), "base": "EUR", "quote": code, "rate": self.past_rate(code, each)}
                           for each in days for code in quotes.split(",") if self.past_rate(code, each)])

    def tables(self):
        """The descriptions that are built in, at this server."""
        url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return BUILT_IN.read_text().replace("https://www.ecb.europa.eu", url).replace("https://api.frankfurter.dev", url)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
