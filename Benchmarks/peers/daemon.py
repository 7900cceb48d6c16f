#!/usr/bin/env python3
"""A small daemon that keeps the price: one kept connection to the exchange, a file, and a Unix socket.

    daemon.py URL FILE SOCKET MILLISECONDS [CA-FILE]

A client that sends `price` gets a line; one that sends `watch` gets one at each tick."""

import http.client
import json
import os
import selectors
import signal
import socket
import ssl
import sys
import threading
import time
from urllib.parse import urlsplit

url, file, path, milliseconds = sys.argv[1:5]
address = urlsplit(url)
if address.scheme == "https":
    trust = ssl.create_default_context(cafile=sys.argv[5] if len(sys.argv) > 5 else None)
    exchange = http.client.HTTPSConnection(address.hostname, address.port, timeout=1, context=trust)
else:
    exchange = http.client.HTTPConnection(address.hostname, address.port, timeout=1)
price = "-"
watchers = []
lock = threading.Lock()


def tick():
    global price
    try:
        exchange.request("GET", "/api/v3/ticker/price?symbol=BTCUSDT")
        response = exchange.getresponse()
        body = response.read()
        if response.status != 200:
            return
        price = json.loads(body)["price"]
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        # The next request opens a new connection.
        exchange.close()
        return
    with open(file + ".new", "w") as new:
        new.write(price + "\n")
    os.rename(file + ".new", file)
    line = f"{price}\n".encode()
    with lock:
        for watcher in list(watchers):
            try:
                watcher.send(line)
            except OSError:
                watchers.remove(watcher)


def serve(listener):
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                client = listener.accept()[0]
                client.setblocking(False)
                ready.register(client, selectors.EVENT_READ)
                continue
            try:
                word = key.fileobj.recv(64)
                if word.startswith(b"watch"):
                    with lock:
                        watchers.append(key.fileobj)
                if word:
                    key.fileobj.send(f"{price}\n".encode())
            except OSError:
                word = b""
            if not word:
                ready.unregister(key.fileobj)
                with lock:
                    if key.fileobj in watchers:
                        watchers.remove(key.fileobj)
                key.fileobj.close()


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
listener = socket.socket(socket.AF_UNIX)
if os.path.exists(path):
    os.unlink(path)
listener.bind(path)
listener.listen(128)
threading.Thread(target=serve, args=(listener,), daemon=True).start()
interval = int(milliseconds) / 1000
due = time.monotonic()
while True:
    tick()
    due = max(due + interval, time.monotonic())
    time.sleep(max(0, due - time.monotonic()))
