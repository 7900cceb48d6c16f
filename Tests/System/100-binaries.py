#!/usr/bin/env python3
"""The contents of the release binaries."""

import os
import re

from lib.btcpriced import *


def output(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return done.stdout + done.stderr


def symbols(binary):
    names = output("nm", "--defined-only", BINARIES / binary)
    assert len(names) > 100_000, f"{binary} has its symbols: {names[:200]}"
    return names


def linked(binary):
    """The shared libraries that it names, of whichever processor it is. None is Swift's."""
    libraries = " ".join(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", BINARIES / binary)))
    assert not re.search("libFoundation|libswift|libicu", libraries), libraries
    return libraries


def size(binary):
    return f"{os.path.getsize(BINARIES / binary) / 1e6:.1f} MB with symbols"


@scenario("the client contains neither full Foundation, NIO, libsystemd nor regular expressions")
def _():
    equal(linked("btcctl"), "")
    names = symbols("btcctl")
    for symbol in ("sd_notify", "NIOCore", "NIOPosix", "$s10Foundation", "18BTCPriceNetworking", "17_StringProcessing", "12_RegexParser"):
        assert not re.search(rf" \S*{re.escape(symbol)}", names), symbol
    return size("btcctl")


@scenario("the client is a static-pie: its addresses are randomised")
def _():
    headers = output("readelf", "-hld", BINARIES / "btcctl")
    assert re.search(r"Type:\s+DYN", headers) and "INTERP" not in headers, headers[:800]


def is_bare(program):
    names = symbols(program)
    # ICU's own functions and data.
    equal(re.findall(r" [TtDdRrBb] ((?:u_|ucnv_|ucol_|uloc_|unorm2?_|udat_|icudt)\w*)", names), [], "symbols of ICU")
    for symbol in ("10Foundation", "FoundationEssentials", "17_StringProcessing", "12_RegexParser"):
        assert not re.search(rf" \S*{symbol}", names), (program, symbol)
    assert "libsystemd.so" in linked(program)


@scenario("the daemon's binary contains no ICU, Foundation or regular expressions, and links libsystemd but no Swift library")
def _():
    is_bare("btc-priced")
    return size("btc-priced")


@scenario("the satellites' binaries contain none of them either")
def _():
    for program in ("btc-price-http", "btc-price-fleet", "btc-price-alert"):
        is_bare(program)
    return size("btc-price-http")


@scenario("the fleet's binary links libmosquitto and libsystemd, but no Swift library; daemon and client contain no MQTT")
def _():
    libraries = linked("btc-price-fleet")
    for library in ("libsystemd.so", "libmosquitto.so"):
        assert library in libraries, libraries
    for binary in ("btc-priced", "btcctl", "btc-price-http"):
        assert "mosquitto" not in symbols(binary), binary
    return size("btc-price-fleet")


main()
