"""Prints the reports of the thread sanitizer in a log, but for one kind: both accesses inside of `Mutex.withLock`.

Where a Mutex is contended it is taken inside of Swift's library, which is not built with the sanitizer: that the one access came before the
other is not seen then, now and then.

    Tests/sanitizer-reports.py LOG        status 1 where there is a report
"""

import re
import sys
from pathlib import Path

ACCESS = re.compile(r"^  (?:Previous )?(?:atomic )?(?:read|write|modifying access|Read|Write) .*:$", re.I)
FRAME = re.compile(r"^    #(\d+) .* (/\S+\.swift):(\d+)(?::\d+)? ")


def is_locked(stack):
    """Whether one of the innermost frames is a call of withLock."""
    for frame in stack[:4]:
        found = FRAME.match(frame)
        if found and "withLock" in Path(found[2]).read_text().splitlines()[int(found[3]) - 1]:
            return True
    return False


def stacks(report):
    found = []
    for line in report:
        if ACCESS.match(line):
            found.append([])
        elif not line.strip():
            found.append(None)
        elif found and found[-1] is not None:
            found[-1].append(line)
    return [stack for stack in found if stack]


def main():
    reports, report = [], None
    for line in Path(sys.argv[1]).read_text(errors="replace").splitlines():
        if line.startswith("WARNING: ThreadSanitizer"):
            report = []
        if report is not None:
            report.append(line)
            if line.startswith("SUMMARY: ThreadSanitizer"):
                reports.append(report)
                report = None
    if report:
        reports.append(report)
    blind = [report for report in reports if len(stacks(report)) == 2 and all(map(is_locked, stacks(report)))]
    shown = [report for report in reports if report not in blind]
    for report in shown:
        print("\n".join(report))
    print(f"{len(shown)} reports, and {len(blind)} of what is under a Mutex on both sides, which the sanitizer does not see")
    sys.exit(1 if shown else 0)


main()
