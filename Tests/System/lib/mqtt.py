"""A subscriber that shares no code with libmosquitto: MQTT 3.1.1, as its specification has it."""

import asyncio
import ssl
import time


def text(word):
    return len(word.encode()).to_bytes(2, "big") + word.encode()


def packet(kind, body):
    """A control packet with its remaining length (section 2.2.3)."""
    length, digits = len(body), b""
    while True:
        length, digit = divmod(length, 128)
        digits += bytes([digit | 0x80 if length else digit])
        if not length:
            return bytes([kind]) + digits + body


async def read(reader):
    """The next packet: its first byte and its body."""
    first = (await reader.readexactly(1))[0]
    length = shift = 0
    while True:
        digit = (await reader.readexactly(1))[0]
        length |= (digit & 0x7F) << shift
        shift += 7
        if digit < 0x80:
            return first, await reader.readexactly(length)


class Subscriber:
    """One connection. `accepted` is when CONNACK came; `take(topic, payload, retained)` gets every message."""

    def __init__(self, address, port, context, name, filters, take, keep_alive=30):
        self.address, self.port, self.context, self.name = address, port, context, name
        self.filters, self.take, self.keep_alive = filters, take, keep_alive
        self.accepted = None
        self.bytes = 0

    async def run(self):
        reader, writer = await asyncio.open_connection(self.address, self.port, ssl=self.context, server_hostname=self.address)
        try:
            writer.write(packet(0x10, text("MQTT") + bytes([4, 2]) + self.keep_alive.to_bytes(2, "big") + text(self.name)))
            kind, body = await read(reader)
            assert kind == 0x20 and body[1] == 0, f"refused: {kind:#x} {body}"
            self.accepted = time.monotonic()
            writer.write(packet(0x82, (1).to_bytes(2, "big") + b"".join(text(f) + b"\0" for f in self.filters)))
            pinging = asyncio.create_task(self._ping(writer))
            try:
                while True:
                    kind, body = await read(reader)
                    if kind >> 4 == 3:
                        self.bytes += len(body) + 2 + (len(body) >= 128)
                        end = 2 + int.from_bytes(body[:2], "big")
                        # Quality of service 0 only: no packet identifier.
                        self.take(body[2:end].decode(), body[end:], bool(kind & 1))
            finally:
                pinging.cancel()
        finally:
            writer.close()

    async def _ping(self, writer):
        while True:
            await asyncio.sleep(self.keep_alive / 2)
            writer.write(packet(0xC0, b""))


def context(authority, certificate, key):
    made = ssl.create_default_context(cafile=authority)
    made.load_cert_chain(certificate, key)
    return made
