#!/usr/bin/env python3
"""The files generated from the descriptions of the interface and the configuration are up to date, and the tools say what they do not know."""

from lib.btcpriced import *


@scenario("the pages and schemas match the output of Tests/generate")
def _():
    done = subprocess.run([ROOT / "Tests/generate", "--check"], capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, ""), done.stderr)
    if done.stderr:
        raise Skip(done.stderr.strip())


@scenario("the formatter's file names each rule: a rule that it leaves out is off")
def _():
    rules = json.loads(subprocess.run(["swift", "format", "dump-configuration"], capture_output=True, text=True, check=True).stdout)["rules"]
    equal(sorted(json.loads((ROOT / ".swift-format").read_text())["rules"]), sorted(rules))


def refused(*command):
    """What a command prints that names a test that does not exist."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    equal((done.returncode, done.stdout), (2, ""), done.stderr)
    return done.stderr


@scenario("a scenario, script or scene that does not exist is an error with the nearest names, and --list prints those that do")
def _():
    scripts = ROOT / "Tests/System"
    assert "no scenario has 'recovry' in its name; the nearest: " in refused(scripts / "010-scenarios.py", "recovry")
    assert "no script has the number '011'; the nearest: " in refused(scripts / "run", "010", "011")
    assert "no scene has the name 'calmm'; the nearest: calm" in (text := refused(BINARIES / "rehearsal", "scenes", "calmm")), text
    assert "no trial has the name 'Z111'; the nearest: " in (text := refused(BINARIES / "rehearsal", "trials", "Z111")), text
    refused(BINARIES / "rehearsal", "incidents", "1999")
    refused(BINARIES / "rehearsal", "weak")
    listed = subprocess.run([scripts / "run", "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    scenes = subprocess.run([BINARIES / "rehearsal", "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in listed:
        assert re.fullmatch(r"\d{3}-\w+\.py: .+", line), line
    assert len({line[:3] for line in listed}) == len(list(scripts.glob("[0-9]*.py"))), "each script"
    return f"{len(listed)} scenarios, {len(scenes)} scenes"


@scenario("each target imports what it depends on: what is only linked is built for nothing")
def _():
    if not shutil.which("swift"):
        raise Skip("swift is absent")
    package = json.loads(subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    superfluous = []
    for target in (target for target in package["targets"] if target["type"] != "system"):
        folder = ROOT / (target.get("path") or ("Tests/" if target["type"] == "test" else "Sources/") + target["name"])
        text = "\n".join(path.read_text() for path in folder.rglob("*.swift"))
        imported = set(re.findall(r"(?m)^(?:@\w+(?:\([^)]*\))? )*(?:\w+ )?import (?:struct |enum |func |class )?(\w+)", text))
        for dependency in target["dependencies"]:
            name = next(dependency[kind] for kind in ("product", "byName", "target") if kind in dependency)[0]
            if name.replace("-", "_") not in imported:
                superfluous.append(f"{target['name']}: {name}")
    equal(superfluous, [])
    return f"{len(package['targets'])} targets"


main()
