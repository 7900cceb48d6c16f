#!/usr/bin/env python3
"""The price of a bitcoin from btc-priced: one file without dependencies, for Python 3.9. Copy it into your program.

    import btc_priced
    price = btc_priced.get("EUR", max_age=60, confirmed=True)     # raises PriceError
    for price in btc_priced.watch(): ...                          # for ever, also while the daemon restarts

As a program, it prints the price, or with --watch each one.
"""

import dataclasses
import datetime
import decimal
import json
import os
import socket
import sys
import time


class PriceError(Exception):
    """There is no price that is as required. `kind` is unreachable, noPrice, tooOld, unconfirmed, or the daemon's name of the error."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


@dataclasses.dataclass(frozen=True)
class Price:
    value: decimal.Decimal
    currency: str
    time: datetime.datetime
    fresh: bool  # whether the daemon's last attempt brought it; otherwise `failure` says why not
    observed: "int | None"  # milliseconds of CLOCK_BOOTTIME; None if that is not known, as after a reboot
    confirmation: "str | None"  # confirmed, single (no other exchange has a say) or unconfirmed
    plus_minus: "decimal.Decimal | None"  # how far the middle of the markets may be from it
    source: str
    warning: "str | None"
    failure: "str | None"

    @property
    def age(self):
        """In seconds now, by a clock that nobody sets; None if it is not known."""
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        return None if self.observed is None or self.observed > now + 1000 else max(0, now - self.observed) / 1000


def places():
    """Where the daemon's socket may be, in the order of interface.md."""
    if named := os.environ.get("BTC_PRICED_SOCKET"):
        return [named]
    base, uid = os.environ.get("XDG_RUNTIME_DIR"), os.getuid()
    own = [f"{base}/btc-priced"] if base else [f"/run/user/{uid}/btc-priced", f"/tmp/btc-priced-{uid}"]
    # Others may have made a directory of that name.
    own = [folder for folder in own if os.path.isdir(folder) and os.lstat(folder).st_uid == uid]
    return [f"{folder}/io.btcpriced.Price" for folder in own + ["/run/btc-priced"]]


def _connect(path, timeout):
    failures = []
    for place in [path] if path else places():
        daemon = socket.socket(socket.AF_UNIX)
        daemon.settimeout(timeout)
        try:
            daemon.connect(place)
            return daemon
        except OSError as error:
            daemon.close()
            failures.append(f"{place}: {error.strerror or error}")
    raise PriceError("unreachable", "btc-priced can't be reached: " + "; ".join(failures))


def _states(daemon, method, parameters, more=False):
    call = {"method": f"io.btcpriced.Price.{method}", "parameters": parameters}
    daemon.sendall(json.dumps({**call, "more": True} if more else call).encode() + b"\0")
    rest = b""
    while True:
        while b"\0" not in rest:
            part = daemon.recv(65536)
            if not part:
                raise PriceError("unreachable", "btc-priced closed the connection")
            rest += part
        message, rest = rest.split(b"\0", 1)
        reply = json.loads(message)
        if name := reply.get("error"):
            kind = name.rsplit(".", 1)[1]
            raise PriceError(kind[0].lower() + kind[1:], f"{kind}: {json.dumps(reply.get('parameters') or {})}")
        yield reply["parameters"]["state"]


def _price(state):
    quote = state.get("quote")
    if not quote:
        raise PriceError("noPrice", f"there is no price: {state.get('failure') or 'no tick has finished yet'}")
    uncertainty = state.get("uncertainty")
    return Price(
        decimal.Decimal(quote["value"]), quote["currency"],
        datetime.datetime.fromtimestamp(quote["timestamp"] / 1000, datetime.timezone.utc), state["freshness"] == "fresh",
        state.get("observedBoottime"), state.get("confirmation"), uncertainty and decimal.Decimal(uncertainty["plusMinus"]),
        quote["source"], state.get("warning"), state.get("failure"))


def get(currency=None, max_age=None, confirmed=False, path=None, timeout=5):
    """The price, in the daemon's first currency if none is named.

    `max_age`: refuses a price that is older, in seconds, or whose age is not known. `confirmed`: refuses one that no other exchange
    confirms. Raises PriceError.
    """
    parameters = {"currency": currency, "maxAgeMs": None if max_age is None else int(max_age * 1000)}
    try:
        with _connect(path, timeout) as daemon:
            state = next(_states(daemon, "GetPrice", {name: value for name, value in parameters.items() if value is not None}))
    except OSError as error:
        raise PriceError("unreachable", f"btc-priced does not respond: {error}") from error
    price = _price(state)
    if confirmed and price.confirmation != "confirmed":
        raise PriceError("unconfirmed", f"the price is {price.confirmation}: {price.warning or 'no other exchange confirms it'}")
    return price


def watch(currency=None, path=None, silence=30):
    """Each price, for ever. While the daemon can't be reached, the last one comes again as not fresh, once; then each second is a try.

    `silence`: after so many seconds without a message the connection is made anew. It is longer than the daemon's ticks are apart.
    Raises PriceError only if `currency` is not kept, or the call is wrong.
    """
    last = None
    while True:
        try:
            with _connect(path, silence) as daemon:
                for state in _states(daemon, "WatchPrice", {"currencies": [currency]} if currency else {}, more=True):
                    if state.get("quote"):
                        last = _price(state)
                        yield last
        except (OSError, PriceError) as error:
            # Limits are over sometime, and a reload that drops a currency only ends a watch of the others.
            if isinstance(error, PriceError) and (error.kind == "invalidParameter" or currency and error.kind == "unknownCurrency"):
                raise
            if last and last.fresh:
                last = dataclasses.replace(last, fresh=False, failure=str(error))
                yield last
        time.sleep(1)


def main():
    for price in watch() if "--watch" in sys.argv[1:] else [get()]:
        age = "age unknown" if price.age is None else f"{price.age:.1f} s old"
        print(price.value, price.currency, age, "fresh" if price.fresh else f"NOT CURRENT: {price.failure}", price.confirmation, flush=True)


if __name__ == "__main__":
    try:
        main()
    except PriceError as error:
        sys.exit(f"btc_priced: {error}")
    except KeyboardInterrupt:
        pass
