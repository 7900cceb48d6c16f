"""Which tests a command line names. One that does not exist is an error: otherwise a typo would look like a test that passes."""

import difflib
import sys


def nearest(word, names):
    """At most three names that a wrong word may have meant."""
    def likeness(name):
        parts = [name, *name.split()]
        return max(difflib.SequenceMatcher(None, word.lower(), part.lower()).ratio() for part in parts)
    return sorted(names, key=likeness, reverse=True)[:3]


def refuse(message, names, word):
    """Ends the program with status 2 because nothing has this name, and prints the nearest names."""
    print(f"{message}; the nearest: " + "; ".join(nearest(word, names)), file=sys.stderr, flush=True)
    sys.exit(2)


def choose(words, names, kind):
    """The names that contain one of the words; all of them without a word."""
    for word in words:
        if not any(word in name for name in names):
            refuse(f"no {kind} has '{word}' in its name", names, word)
    return [name for name in names if not words or any(word in name for word in words)]
