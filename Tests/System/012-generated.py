#!/usr/bin/env python3
"""What is made from the descriptions of the interface and of the configuration is up to date."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from btcpriced import *  # noqa: E402, F403


@scenario("the pages and schemas are what Tests/generate makes")
def _():
    done = subprocess.run([ROOT / "Tests/generate", "--check"], capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, ""), done.stderr)

main()
