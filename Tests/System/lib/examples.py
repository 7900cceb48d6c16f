"""The examples of README, docs and manuals: what a reader would type in, as it stands there."""

import re

from .btcpriced import ROOT

MANUALS = sorted((ROOT / "packaging" / "man").iterdir())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def of_page(path):
    """Its fenced blocks without a language."""
    return [text for language, text in re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", path.read_text()) if not language]


def of_manual(path):
    """Its literal displays (mdoc(7)), without the escapes of roff(7)."""
    found = re.findall(r"(?ms)^\.Bd -literal.*?\n(.*?)^\.Ed$", path.read_text())
    for escape, text in ((r"\-", "-"), (r"\(aq", "'"), (r"\(dq", '"'), (r"\&", ""), (r"\e", "\\")):
        found = [example.replace(escape, text) for example in found]
    return found


def every():
    """All of them, each with the name of its page."""
    return [(page.name, example) for page in PAGES for example in of_page(page)] + [(page.name, example) for page in MANUALS for example in of_manual(page)]
