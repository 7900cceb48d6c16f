"""An authority of a test and the certificates that it signs, made by openssl."""

import atexit
import ipaddress
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

DAY = 86_400
# What exchange-simulator is reached by.
SIMULATOR = ("localhost", "exchange.test", "127.0.0.1", "::1")

CONFIGURATION = """[ca]
default_ca = this
[this]
database = {folder}/index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
x509_extensions = leaf
[any]
commonName = supplied
[leaf]
basicConstraints = CA:FALSE
authorityKeyIdentifier = none
subjectAltName = {names}
"""


class Certificates:
    """Calling it gives the files of a certificate and of its key. Those of a name are made once."""

    def __init__(self, name="An authority of this test"):
        self.folder = tempfile.mkdtemp(prefix="btc-priced-certificates-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.authority = f"{self.folder}/ca.pem"
        self._made = {}
        self._lock = threading.RLock()
        Path(f"{self.folder}/index").touch()
        self._run("req", "-x509", *self._new_key("ca"), "-subj", f"/CN={name}", "-days", "2", "-out", self.authority)

    def __call__(self, name, hosts=("127.0.0.1",), begins=-DAY, ends=DAY, by=None):
        """`hosts`: the names and addresses that it is for. `begins`, `ends`: when it is valid, seconds from now. `by`: another
        authority that signs it."""
        by = by or self
        with self._lock, by._lock:
            if name not in self._made:
                self._made[name] = self._make(name, hosts, begins, ends, by)
            return self._made[name]

    def for_simulator(self, fault):
        """The certificate that `certificate FAULT` in a fault script means."""
        match fault:
            case "expired": return self(fault, SIMULATOR, ends=-3600)
            case "not-yet-valid": return self(fault, SIMULATOR, begins=3600)
            case "other-host": return self(fault, ["exchange.example"])
            case "forged": return self(fault, SIMULATOR, by=Certificates())
            case _: return self("server", SIMULATOR)

    def _make(self, name, hosts, begins, ends, by):
        certificate, key, request, configuration = (f"{self.folder}/{name}.{kind}" for kind in ("pem", "key", "csr", "cnf"))
        self._run("req", *self._new_key(name), "-subj", f"/CN={name}", "-out", request)
        Path(configuration).write_text(CONFIGURATION.format(folder=by.folder, names=",".join(map(alternative_name, hosts))))
        start, end = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds)) for seconds in (begins, ends))
        self._run("ca", "-batch", "-notext", "-config", configuration, "-cert", by.authority, "-keyfile", f"{by.folder}/ca.key", "-in",
                  request, "-startdate", start, "-enddate", end, "-out", certificate)
        return certificate, key

    def _new_key(self, name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{self.folder}/{name}.key"]

    def _run(self, *arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, f"openssl {' '.join(arguments)}: {done.stderr}"


def alternative_name(host):
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"
