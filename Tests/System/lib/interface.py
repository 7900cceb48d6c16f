"""Reads the definitions of the interfaces, and compares replies with them.

Ours have one form: a comment before each member, each field of a type on a line of its own, and no structure in a structure.
Everything else is an error, so that no part is overlooked."""

import collections
import functools
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "Sources/BTCPriceSocket/Interface"
# `fields` and `reply` are lists of (name, type, comment). Only a method has a reply.
Member = collections.namedtuple("Member", "kind name comment fields reply")

TYPE = r"\??(?:\[\])?(?:\w+|\(\w+(?:, \w+)*\))"
FIELDS = rf"\((?:\n  )?(?:\w+: {TYPE}(?:,\s+\w+: {TYPE})*)?\n?\)"
LINE = rf"(?:  # .+\n)*  \w+: {TYPE}"
MEMBER = re.compile(
    rf"\n((?:# .+\n)+)(?:(type) (\w+) (\(\n{LINE}(?:,\n{LINE})*\n\))|(method) (\w+)({FIELDS}) -> ({FIELDS})|(error) (\w+) ({FIELDS}))\n")


def comment(text):
    return " ".join(re.findall(r"# (.*)", text))


def fields(text):
    return [(name, kind, comment(lines)) for lines, name, kind in re.findall(rf"((?:  # .+\n)*) *(\w+): ({TYPE})", text)]


class Interface:
    def __init__(self, text):
        head = re.match(r"(?:# .+\n)+interface (\S+)\n", text)
        assert head, "expected a comment and the interface's name"
        self.name, self.members, place = head[1], [], head.end()
        while place < len(text):
            found = MEMBER.match(text, place)
            assert found, f"line {text.count(chr(10), 0, place) + 1}: the next member is not in the form of the others"
            kind, name, *lists = [part for part in found.groups()[1:] if part is not None]
            self.members.append(Member(kind, name, comment(found[1]), *[fields(each) for each in lists], *[[]] * (2 - len(lists))))
            place = found.end()
        self.types, self.methods, self.errors = ({each.name: each for each in self.members if each.kind == kind} for kind in ("type", "method", "error"))
        for each in self.members:
            for names in ([name for name, _, _ in each.fields], [name for name, _, _ in each.reply], [m.name for m in self.members]):
                assert len(names) == len(set(names)), f"a name occurs twice: {names}"
            for _, kind, _ in each.fields + each.reply:
                word = kind.lstrip("?[]")
                assert word[0] == "(" or word in self.types or word in ("bool", "int", "string"), f"the type {word} is not defined"

    def check(self, value, kind, place):
        """Fails if a value is not of a type."""
        if kind[0] == "?":
            if value is None:
                return
            kind = kind[1:]
        if kind in self.types:
            self.check_fields(value, self.types[kind].fields, place)
        elif kind.startswith("[]"):
            assert isinstance(value, list), f"{place}: expected a list, not {value!r}"
            for index, each in enumerate(value):
                self.check(each, kind[2:], f"{place}[{index}]")
        elif kind[0] == "(":
            assert value in kind[1:-1].split(", "), f"{place}: expected {kind}, not {value!r}"
        else:
            assert type(value) is {"bool": bool, "int": int, "string": str}[kind], f"{place}: expected {kind}, not {value!r}"

    def check_fields(self, value, every, place):
        """Fails if an object has other members than these fields, which are in their order, or one of another type."""
        names = [name for name, _, _ in every]
        assert isinstance(value, dict) and list(value) == names, f"{place}: expected {names}, not {value!r}"
        for name, kind, _ in every:
            self.check(value[name], kind, f"{place}.{name}")


@functools.cache
def interfaces():
    """Those of the daemon by name, in the order of the documents, which need a comment for each field of a type."""
    every = [Interface((FOLDER / f"io.btcpriced.{name}.varlink").read_text()) for name in ("Price", "History")]
    bare = [f"{kind}.{name}" for each in every for kind, found in each.types.items() for name, _, meaning in found.fields if not meaning]
    assert not bare, f"without a comment: {bare}"
    return {each.name: each for each in every}


def checked(method, reply):
    """The reply to a method, or to one that ended with an error, whose parameters are those of the definition."""
    name, _, member = (reply.get("error") or method).rpartition(".")
    if found := interfaces().get(name):
        expected = found.errors[member].fields if "error" in reply else found.methods[member].reply
        found.check_fields(reply["parameters"], expected, f"{name}.{member}")
    return reply
