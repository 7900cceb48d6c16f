#!/usr/bin/env python3
"""The files generated from the descriptions of the interface and the configuration are up to date."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403


@scenario("the pages and schemas match the output of Tests/generate")
def _():
    done = subprocess.run([ROOT / "Tests/generate", "--check"], capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, ""), done.stderr)
    if done.stderr:
        raise Skip(done.stderr.strip())


main()
