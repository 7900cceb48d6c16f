#!/usr/bin/env python3
"""The socket with other programs' clients, and with hostile ones."""

import os
import resource

from lib.btcpriced import *

PRICE = "io.btcpriced.Price"


@scenario("python3 -m varlink.cli (varlink 31.0.0) reads info, help and call GetPrice")
def _():
    python = os.environ.get("VARLINK_PYTHON")
    if not python:
        raise Skip("VARLINK_PYTHON names no Python with varlink 31.0.0")
    place, simulator, daemon = running()

    def cli(*arguments):
        done = subprocess.run([python, "-m", "varlink.cli", *arguments], capture_output=True, text=True, timeout=30)
        equal((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout
    version = subprocess.run([python, "-m", "pip", "show", "varlink"], capture_output=True, text=True).stdout
    assert "Version: 31.0.0" in version, version
    info = cli("info", f"unix:{place.socket}")
    for text in ("Vendor: ", "Product: btc-priced", f"Version: {VERSION}", "org.varlink.service", PRICE):
        assert text in info, info
    described = cli("help", f"unix:{place.socket}/{PRICE}")
    for text in (f"interface {PRICE}", "method GetPrice(", "error FetchFailed"):
        assert text in described, described
    state = json.loads(cli("call", f"unix:{place.socket}/{PRICE}.GetPrice", "{}"))["state"]
    equal((state["freshness"], state["quote"]["source"]), ("fresh", "binance"))
    state = json.loads(cli("call", f"unix:{place.socket}/{PRICE}.GetPrice", '{"cachePolicy": "remoteFirst"}'))["state"]
    equal(state["freshness"], "fresh")
    for name in ("org.varlink.service", "io.btcpriced.History"):
        assert f"interface {name}" in cli("help", f"unix:{place.socket}/{name}"), name
    daemon.stop()


@scenario("every method takes the parameters of its definition and no other, and responds as defined")
def _():
    place, simulator, daemon = running()
    required = {"time": 1_724_596_200_000, "times": [1_724_596_200_000, 0], "source": "binance", "enabled": True}
    for found in interface.interfaces().values():
        for method in found.methods.values():
            name, more = f"{found.name}.{method.name}", method.name == "WatchPrice"
            parameters = {field: required.get(field) for field, _, _ in method.fields}
            connection = Varlink(place.socket)
            connection.send({"method": name, "parameters": parameters, "more": more})
            reply = interface.checked(name, connection.receive())
            assert "error" not in reply and reply.get("continues", False) == more, (name, reply)
            connection = Varlink(place.socket)
            connection.send({"method": name, "parameters": {**parameters, "other": None}, "more": more})
            equal(connection.receive(), {"error": "org.varlink.service.InvalidParameter", "parameters": {"parameter": "other"}}, name)
    daemon.stop()


@scenario("no part of interface 0.1.0 is removed or has another type; new fields are nullable and last")
def _():
    place, simulator, daemon = running()
    found = Varlink(place.socket).call(
        "org.varlink.service.GetInterfaceDescription", interface=PRICE)["parameters"]["description"]
    daemon.stop()
    promised = interface.Interface((Path(__file__).parent / "interface-0.1.0.varlink").read_text()).members
    equal(len(promised), 22, "declarations of 0.1.0")
    present = {(member.kind, member.name): member for member in interface.Interface(found).members}
    for before in promised:
        now = present.get((before.kind, before.name))
        assert now, f"{before.name} has vanished"
        # A method's parameters may grow too.
        for old, new in ((before.fields, now.fields), (before.reply, now.reply)):
            kept, added = ([(name, kind) for name, kind, _ in part] for part in (new[:len(old)], new[len(old):]))
            equal(kept, [(name, kind) for name, kind, _ in old], before.name)
            assert all(kind[0] == "?" for _, kind in added), f"{before.name}: a field of {added} is not nullable"
    return f"{len(promised)} declarations"


@scenario("a price that is too old is an error with its age, and ends a watch")
def _():
    place, simulator, daemon = running()
    connection, watch = Varlink(place.socket), Varlink(place.socket)
    equal(connection.call(f"{PRICE}.GetPrice", maxAgeMs=30_000)["parameters"]["state"]["freshness"], "fresh")
    equal(connection.call(f"{PRICE}.GetPrice", maxAgeMs=-1)["error"], "org.varlink.service.InvalidParameter")
    watch.send({"method": f"{PRICE}.WatchPrice", "parameters": {"maxAgeMs": 3000}, "more": True})
    equal(watch.receive()["parameters"]["state"]["freshness"], "fresh")
    simulator.faults("* always refuse")
    reply = watch.receive()
    while "error" not in reply:
        reply = watch.receive()
    equal(reply["error"], f"{PRICE}.TooOld")
    assert reply["parameters"]["ageMs"] > 3000 and reply["parameters"]["reason"], reply
    try:
        raise AssertionError(watch.receive())
    except EOFError:
        pass
    reply = connection.call(f"{PRICE}.GetPrice", maxAgeMs=3000)
    equal(reply["error"], f"{PRICE}.TooOld")
    assert reply["parameters"]["ageMs"] > 3000 and reply["parameters"]["reason"], reply
    daemon.stop()


@scenario("with too many connections of one user the others are served, and the ticks continue")
def _():
    place, simulator = Place(), Simulator("--seed", "1")
    daemon = Daemon(place, simulator.urls, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    watch = Watch(place, "--json")
    wait_until(lambda: len(watch.lines) >= 2, what="lines")
    crowd = []
    for _ in range(200):
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        try:
            connection.connect(place.socket)
        except BlockingIOError:
            break
        crowd.append(connection)
    count = len(watch.lines)
    wait_until(lambda: len(watch.lines) >= count + 3, what="more lines")
    [connection.close() for connection in crowd]
    wait_until(lambda: btcctl(place, "current").status == 0, what="room again")
    daemon.says("A client of user")
    equal({state["freshness"] for state in watch.states[1:]}, {"fresh"})
    daemon.stop()


main()
