#!/usr/bin/env python3
"""The connection to a real exchange: TLS, with a check of the certificate."""

import subprocess

from lib.btcpriced import *
from lib.secure import ANOTHER_HOST, Exchange


@scenario("over TLS one connection is kept, with HTTP/1.1 and the client's User-Agent")
def _():
    exchange, place = Exchange(), Place()
    daemon = Daemon(place, {"binance": exchange.url}, "--tls-ca-file", exchange.authority, sources=["binance"])
    equal(fresh(place)["quote"]["value"], "68901.23")
    wait_until(lambda: len(exchange.requests) >= 4, what="four requests")
    equal(exchange.connections, 1, "connections")
    equal({request[0] for request in exchange.requests}, {"HTTP/1.1"})
    equal({request[1] for request in exchange.requests}, {"/api/v3/ticker/price?symbol=BTCUSDT"})
    assert all(request[2].startswith(f"btc-priced/{VERSION}") for request in exchange.requests), exchange.requests[0]
    daemon.stop()


@scenario("the system's authorities are trusted: those in a file, a directory with the links of openssl rehash, or both")
def _():
    exchange, folder = Exchange(), tempfile.mkdtemp(prefix="btc-priced-authorities-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    few, many = f"{folder}/few", f"{folder}/many"
    os.mkdir(few)
    shutil.copy(exchange.authority, f"{few}/ours.pem")
    subprocess.run(["openssl", "rehash", few], check=True)
    shutil.copytree(few, many, symlinks=True)
    # As many as a distribution has: then the directory is used alone.
    for number in range(60):
        os.link(f"{many}/ours.pem", f"{many}/{number:08x}.0")
    for environment, refused in (({"SSL_CERT_FILE": exchange.authority}, False), ({"SSL_CERT_DIR": few}, False), ({"SSL_CERT_DIR": many}, False),
                                 ({"SSL_CERT_FILE": "/dev/null", "SSL_CERT_DIR": folder}, True)):
        place, exchange.requests = Place(), []
        daemon = Daemon(place, {"binance": exchange.url}, sources=["binance"], environment={"SSL_CERT_FILE": None, "SSL_CERT_DIR": None, **environment})
        exchange.expect(place, daemon, "TLS: its certificate is not from a trusted authority" if refused else None)
        daemon.stop()


@scenario("an authority that only the system's file has is trusted from the second request on, also after a reload")
def _():
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    script = 'mount --bind "$0" ' + bundle + ' && exec "$@"'
    for added_later in (False, True):
        exchange, place = Exchange(), Place()
        file = tempfile.NamedTemporaryFile("w", suffix=".crt")
        atexit.register(file.close)
        file.write(open(bundle).read())
        authority = open(exchange.authority).read()
        if not added_later:
            file.write(authority)
        file.flush()
        daemon = Daemon(place, {"binance": exchange.url}, sources=["binance"], environment={"SSL_CERT_FILE": None, "SSL_CERT_DIR": None},
                        prefix=["unshare", "--mount", "sh", "-c", script, file.name])
        if added_later:
            exchange.expect(place, daemon, "TLS: its certificate is not from a trusted authority")
            file.write(authority)
            file.flush()
            daemon.process.send_signal(signal.SIGHUP)
            equal(btcctl(place, "retry").status, 0)
        exchange.expect(place, daemon)
        daemon.stop()


@scenario("a name needs a certificate for that name, not one for its address")
def _():
    for name, refused in (("localhost", None), ("127.0.0.1", ANOTHER_HOST)):
        exchange, place = Exchange(name), Place()
        url = exchange.url.replace("127.0.0.1", "localhost")
        daemon = Daemon(place, {"binance": url}, "--tls-ca-file", exchange.authority, sources=["binance"])
        exchange.expect(place, daemon, refused)
        daemon.stop()


main()
