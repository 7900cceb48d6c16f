"""The HTTP gateway: requests per second compared with nginx and the same bytes, and the memory of a thousand event streams."""

import re
import resource
import socket
import statistics
import subprocess
import tempfile
import time

from lib.gateway import Gateway, free_port
from measuring import ON_LOAD, ON_MEASURED, Row, atexit, private_memory, ratios, running_daemon, shutil, spawn, wait_until

PAIRS = 8
SECONDS = 2
STREAMS = 1000


def nginx(body):
    """Starts nginx with one worker on the first processor, which serves these bytes from a file. Returns the port."""
    folder = tempfile.mkdtemp(prefix="btc-priced-nginx-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    port = free_port()
    with open(f"{folder}/price", "wb") as file:
        file.write(body)
    with open(f"{folder}/conf", "w") as file:
        file.write(f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; user root;\n"
                   f"events {{ worker_connections 1024; }} http {{ access_log off; keepalive_requests 10000000; default_type application/json;\n"
                   f"client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d;\n"
                   f"scgi_temp_path {folder}/e; server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n")
    process = spawn([*ON_MEASURED, "nginx", "-c", f"{folder}/conf"], stderr=subprocess.DEVNULL)
    wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, what="nginx")
    return port, process


def requests(port, path):
    """Thousands of requests per second over 50 kept connections, from the other processor."""
    done = subprocess.run([*ON_LOAD, "wrk", "-t1", "-c50", f"-d{SECONDS}s", f"http://127.0.0.1:{port}{path}"],
                          capture_output=True, text=True, check=True)
    assert "Non-2xx" not in done.stdout, done.stdout
    return float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1]) / 1000


def streams(gateway):
    """The private memory of an event stream, KiB."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    before = private_memory(gateway.process)
    clients = []
    for _ in range(STREAMS):
        client = socket.create_connection(("127.0.0.1", gateway.port))
        client.sendall(b"GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
        clients.append(client)
    time.sleep(5)
    got = 0
    for client in clients:
        client.settimeout(5)
        got += b"event: price" in client.recv(65536)
    assert got == STREAMS, got
    grown = private_memory(gateway.process) - before
    for client in clients:
        client.close()
    return grown / STREAMS


def measure():
    place, simulator, daemon = running_daemon()
    gateway = Gateway(place.socket, prefix=ON_MEASURED)
    port, server = nginx(gateway.get("/v1/price").body)
    theirs, ours = zip(*[(requests(port, "/price"), requests(gateway.port, "/v1/price")) for _ in range(PAIRS)])
    each = streams(gateway)
    for part in (gateway, daemon, simulator):
        part.stop()
    server.terminate()
    server.wait()
    return [Row("HTTP `/v1/price`, thousands/s", statistics.median(ours), "nginx, a file", statistics.median(theirs),
                ratios(ours, theirs), ratio_at_least=0.4),
            Row("HTTP event stream, KiB", each, at_most=24)]
