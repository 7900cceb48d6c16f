#!/usr/bin/env python3
"""org.varlink.certification: our client and server with our Varlink library, against those of Python and Go."""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403

OURS = BINARIES / "varlink-certification"
GO_SOURCE = "/usr/share/gocode"


def python():
    path = os.environ.get("VARLINK_PYTHON")
    if not path:
        raise Skip("VARLINK_PYTHON names no Python with varlink 31.0.0")
    return [path, "-m", "varlink.tests.test_certification"]


def go():
    """Builds the Go program once, into the build folder. Debian ships it as source."""
    target = BINARIES.parent / "varlink-go-certification"
    if target.exists():
        return [target]
    if not shutil.which("go") or not os.path.isdir(f"{GO_SOURCE}/src/github.com/varlink/go"):
        raise Skip("golang-go and golang-github-varlink-go-dev are absent")
    folder = tempfile.mkdtemp(prefix="btc-priced-go-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = {
        **os.environ, "GO111MODULE": "off", "GOPATH": f"{folder}:{GO_SOURCE}", "GOCACHE": f"{folder}/cache", "GOFLAGS": ""}
    subprocess.run(
        ["go", "build", "-o", target, "github.com/varlink/go/cmd/varlink-go-certification"], check=True, env=environment)
    return [target]


def ours_as(role):
    return lambda path: [OURS, role, path]


def theirs_as(command, role):
    client = ["--client"] if role == "client" else []
    return lambda path: [*command(), *client, f"--varlink=unix:{path}"]


def certify(server, client):
    folder = tempfile.mkdtemp(prefix="btc-priced-certification-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/socket"
    (server_command, client_command) = (server(path), client(path))
    process = spawn(server_command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: can_connect(path), what="the server")
    done = subprocess.run(client_command, capture_output=True, text=True, timeout=30)
    process.kill()
    process.wait()
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    # Go's client prints only the result of the last call, and stops at the first failure.
    assert "Certification passed" in said or "End: 'true'" in said, said


PAIRS = [
    ("our client, our server", ours_as("server"), ours_as("client")),
    ("our client, Python's server", theirs_as(python, "server"), ours_as("client")),
    ("our client, Go's server", theirs_as(go, "server"), ours_as("client")),
    ("Python's client, our server", ours_as("server"), theirs_as(python, "client")),
    ("Go's client, our server", ours_as("server"), theirs_as(go, "client")),
]


def define(name, server, client):
    @scenario(f"Varlink's certification: {name}")
    def _():
        certify(server, client)


for pair in PAIRS:
    define(*pair)

main()
