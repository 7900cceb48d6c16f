"""The examples of README and manuals: what a reader would type in, as it stands there."""

import re

from btcpriced import ROOT

MANUALS = sorted((ROOT / "packaging" / "man").iterdir())


def of_readme():
    """Its fenced blocks."""
    return re.findall(r"(?ms)^```\n(.*?)^```$", (ROOT / "README.md").read_text())


def of_manual(path):
    """Its literal displays (mdoc(7)), without the escapes of roff(7)."""
    found = re.findall(r"(?ms)^\.Bd -literal.*?\n(.*?)^\.Ed$", path.read_text())
    for escape, text in ((r"\-", "-"), (r"\(aq", "'"), (r"\(dq", '"'), (r"\&", ""), (r"\e", "\\")):
        found = [example.replace(escape, text) for example in found]
    return found


def every():
    """All of them, each with the name of its page."""
    return [("README.md", example) for example in of_readme()] + [(page.name, example) for page in MANUALS for example in of_manual(page)]
