#!/usr/bin/env python3
"""What a packager gets: installation into chosen folders, a tarball, hardened files, and the list of what is linked."""

import os
import sys

from lib.btcpriced import *

PROGRAMS = ["btc-priced", "btcctl", "btc-price-http", "btc-price-fleet", "btc-price-alert"]


def shell(*arguments, **environment):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment})
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def need_git():
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True).returncode != 0:
        raise Skip("not a git checkout")


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if not path.is_dir())


def unpacked():
    """The packages' contents, in one folder."""
    folder = Path(tempfile.mkdtemp(prefix="btc-priced-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    found = [p for p in (ROOT / ".build/deb").glob("*.deb") if "dbgsym" not in p.name]
    if not found:
        raise Skip("there is no package: make deb")
    for package in found:
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return folder


@scenario("make install puts everything below the chosen folders, and the units name them; make uninstall removes it")
def _():
    with tempfile.TemporaryDirectory() as root:
        chosen = ["DESTDIR=" + root, "prefix=/opt/btc", "sysconfdir=/opt/btc/etc"]
        shell("make", "install", *chosen)
        assert all(name.startswith("opt/btc/") for name in files(root)), files(root)
        unit = Path(root, "opt/btc/lib/systemd/system/btc-priced.service").read_text()
        for line in ("ExecStart=/opt/btc/bin/btc-priced --config /opt/btc/etc/btc-priced/config.toml",
                     "ExecReload=/opt/btc/bin/btc-priced --config /opt/btc/etc/btc-priced/config.toml --reload $MAINPID",
                     "Environment=XDG_DATA_DIRS=/opt/btc/share"):
            assert line in unit.splitlines(), f"{line} in {unit}"
        # /lib64 is absent from Debian on arm64.
        for path in Path(root, "opt/btc/lib/systemd/system").glob("*.service"):
            for paths in re.findall(r"(?m)^ExecPaths=(.*)", path.read_text()):
                equal(re.sub(r"^/opt/btc/bin/btc-[\w-]+", "", paths), " -/usr/lib -/lib -/lib64 -/nix/store", path)
        texts = [path for path in Path(root).rglob("*") if path.is_file() and path.suffix in (".service", ".1", ".5", ".7", ".8", ".toml")]
        for path in texts:
            # The system's alerts have no other place.
            text = path.read_text() if path.name != "btc-price-alert.1" else re.sub(r"/etc/btc\\?-priced/alerts.toml", "", path.read_text())
            assert not re.search(r"/usr/bin/btc|(?<!/opt/btc)/etc/(btc\\?-priced|default/btc)|/usr/share/(doc/)?btc", text), path
        for name in PROGRAMS:
            equal(shell(f"{root}/opt/btc/bin/{name}", "--version"), f"{name} {FULL_VERSION}\n")
        # A changed configuration stays, at a second installation and at the removal.
        configuration = Path(root, "opt/btc/etc/btc-priced/config.toml")
        configuration.write_text("tick.interval-ms = 5000\n")
        assert f"kept: {configuration}" in shell("make", "install", *chosen)
        assert f"kept: {configuration}" in shell("make", "uninstall", *chosen)
        equal(files(root), ["opt/btc/etc/btc-priced/config.toml"])
        equal(configuration.read_text(), "tick.interval-ms = 5000\n")
        refused = subprocess.run(["make", "install", "DESTDIR=" + root, "prefix=/opt/my programs"], cwd=ROOT, capture_output=True, text=True)
        assert refused.returncode != 0 and "choose another prefix" in refused.stderr, refused.stderr
        equal(files(root), ["opt/btc/etc/btc-priced/config.toml"])
        return f"{len(texts)} texts"


@scenario("what Debian installs is what make install installs")
def _():
    with tempfile.TemporaryDirectory() as root:
        shell("make", "install", f"DESTDIR={root}", "prefix=/usr", "unitdir=/lib/systemd/system",
              "zshcompletiondir=/usr/share/zsh/vendor-completions")
        ours = {name for name in files(root) if "/licenses/" not in name}
    debians = {re.sub(r"(/man\d/.*)\.gz$", r"\1", name) for name in files(unpacked())}
    equal(ours - debians, set())
    equal({name for name in debians - ours if not re.search(r"/(changelog.*|copyright|NEWS.*)$|lintian/overrides", name)}, set())
    return f"{len(ours)} files"


@scenario("rpmbuild packs what make install installs, and its packages can be installed into an empty root")
def _():
    if not shutil.which("rpmbuild"):
        raise Skip("rpmbuild is absent")
    need_git()
    shell("scripts/dist")
    with tempfile.TemporaryDirectory() as folder:
        shell("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {folder}", "--define", f"_sourcedir {ROOT}/.build/dist", "--define",
              f"binaries {BINARIES}", "packaging/btc-priced.spec")
        built = sorted(Path(folder).glob("RPMS/*/*.rpm"))
        equal([re.sub(r"-\d.*", "", path.name) for path in built], ["btc-price-alert", "btc-price-fleet", "btc-price-http", "btc-priced"])
        assert all(f"-{VERSION}-1" in path.name for path in built), built
        needed = shell("rpm", "-qp", "--requires", built[-1])
        assert "libsqlite3.so.0" in needed and "libssl.so.3" in needed and "libsystemd.so.0" in needed, needed
        shell("rpm", "--root", f"{folder}/root", "--nodeps", "--noscripts", "-i", *built)
        shell("make", "install", f"DESTDIR={folder}/ours", "prefix=/usr")
        ours = set(files(f"{folder}/ours"))
        theirs = {re.sub(rf"(/man\d/.*)\.gz$|(?<=btc-price-)(http|fleet|alert)-{VERSION}(?=/)", r"\1\2", name) for name in files(f"{folder}/root")}
        equal({name for name in ours - theirs}, set())
        equal({name for name in theirs - ours if ".rpmdb/" not in name and not name.startswith("var/lib/rpm/")},
              {f"usr/share/licenses/btc-price-{part}/{name}" for part in ("http", "fleet", "alert") for name in ("LICENSE", "THIRD-PARTY")})
        equal(shell(f"{folder}/root/usr/bin/btcctl", "--version"), f"btcctl {FULL_VERSION}\n")
        return ", ".join(f"{path.name} {path.stat().st_size >> 10} KiB" for path in built)


@scenario("two tarballs of a commit have the same bytes, and have what scripts/generate makes")
def _():
    need_git()
    sums = []
    for mask in ("022", "077"):
        sums.append(shell("sh", "-c", f"umask {mask} && scripts/dist"))
        time.sleep(1)
    equal(sums[0], sums[1])
    tarball = next((ROOT / ".build/dist").glob("*.tar.gz"))
    names = shell("tar", "-tzf", tarball).splitlines()
    top = f"btc-priced-{VERSION}/"
    assert all(name.startswith(top) for name in names)
    for name in ("Package.swift", "Package.resolved", "generated/config.toml", "generated/man/btc-priced.toml.5", "generated/zsh/_btcctl"):
        assert top + name in names, name
    commit = shell("git", "log", "-1", "--format=%H").strip()
    product = shell("tar", "-xOzf", tarball, f"{top}Sources/BTCPriceSocket/Interface/Product.swift")
    assert f'"{commit}"' in product, "the commit is in the sources"
    return f"{len(names)} files, {tarball.stat().st_size >> 10} KiB"


@scenario("the packaged programs are hardened, and name no folder of the machine that built them")
def _():
    folder, found = unpacked(), []
    for name in PROGRAMS:
        path = folder / "usr/bin" / name
        header, segments = shell("readelf", "-hW", path), shell("readelf", "-lW", path)
        dynamic, comment = shell("readelf", "-dW", path), shell("readelf", "-SW", path)
        assert "DYN (" in header, f"{name} is not position independent"
        flags = re.findall(r"(?m)^  (\w+) +(?:0x\w+ +){5}([RWE ]{3})", segments)
        equal([f for f in flags if "W" in f[1] and "E" in f[1]], [], f"{name}: writable and executable")
        assert ("GNU_STACK", "RW ") in flags and any(kind == "GNU_RELRO" for kind, _ in flags), f"{name}: {flags}"
        equal({f[1] for f in flags if f[0] == "LOAD"}, {"R  ", "R E", "RW "}, f"{name}: code and data share no page")
        if "(NEEDED)" in dynamic:
            assert "BIND_NOW" in dynamic and "NOW" in re.search(r"FLAGS_1.*", dynamic)[0], f"{name}: {dynamic}"
        assert str(ROOT).encode() not in path.read_bytes(), f"{name} names {ROOT}"
        # The compiler's own constants: swiftlang/swift#91943.
        constants = re.search(r" \.rodata +PROGBITS +\w+ \w+ (\w+) \w+ +(\w+)", comment)
        found.append(f"{name}: {path.stat().st_size >> 10} KiB, .rodata {int(constants[1], 16) >> 10} KiB {constants[2]}")
    for name in ("btc-priced", "btc-price-http"):
        symbols = shell("readelf", "--dyn-syms", "-W", folder / "usr/bin" / name)
        assert "__stack_chk_fail" in symbols, f"{name} has no stack protector"
        assert re.search(r"__\w+_chk@", symbols.replace("__stack_chk_fail", "")), f"{name} has no checked functions of libc"
    return "; ".join(found)


@scenario("the list of what is linked is valid, complete, and each licence is in the copyright file")
def _():
    python = os.environ.get("VARLINK_PYTHON", str(ROOT / ".build/venv/bin/python3"))
    if subprocess.run([python, "-c", "import spdx_tools"], capture_output=True).returncode != 0:
        raise Skip("spdx-tools is absent: scripts/dependencies test")
    folder = unpacked()
    path = folder / "usr/share/doc/btc-priced/sbom.spdx.json"
    done = subprocess.run([python, "-c", """
import sys
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
for message in validate_full_spdx_document(parse_file(sys.argv[1])):
    print(message.validation_message)
""", path], capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, ""), done.stderr)
    document = json.loads(path.read_text())
    packages = {package["name"]: package for package in document["packages"]}
    links = {(r["spdxElementId"].removeprefix("SPDXRef-"), r["relatedSpdxElement"].removeprefix("SPDXRef-")) for r in document["relationships"]}
    # Of each kind: a package, code inside of one, the runtime, a static library, and what the loader finds.
    for program, name in (("btc-priced", "swift-nio-extras"), ("btc-price-http", "llhttp"),
                          ("btcctl", "swift-stdlib"), ("btcctl", "glibc"), ("btc-priced", "libsqlite3.so.0")):
        assert (program, name) in links, (program, name)
    unknown = {r["relatedSpdxElement"] for r in document["relationships"] if r["relationshipType"] == "STATIC_LINK"} & {
        package["SPDXID"] for package in document["packages"] if package["licenseConcluded"] == "NOASSERTION"}
    equal(unknown, set(), "linked, and not in the tables of scripts/sbom")
    assert ("btcctl", "swift-nio") not in links, "what is resolved and not linked is not listed"
    text = (folder / "usr/share/doc/btc-priced/copyright").read_text()
    linked = [name for name in packages if name not in PROGRAMS and packages[name]["licenseConcluded"] != "NOASSERTION"]
    for name in linked:
        assert f"\nFiles: linked/{name}/*\n" in text, f"{name} is not in the copyright file"
    notices = [path for path in (ROOT / ".build/checkouts").glob("*/NOTICE*") if path.parent.name.lower() in linked]
    for path in notices:
        for line in path.read_text().splitlines():
            assert f" {line.rstrip()}\n" in text or not line.strip(), f"{line} of {path} is not in the copyright file"
    for name in re.findall(r"(?m)^License: (.+)$", text):
        assert len(re.findall(rf"(?m)^License: {re.escape(name)}\n ", text)) == 1, f"the text of {name} is not there, or twice"
    return f"{len(packages)} packages, {len(linked)} linked statically, {len(notices)} notices"


@scenario("an image runs the daemon and the gateway as its own user, in namespaces, with no shell and a read-only root")
def _():
    if os.geteuid() != 0:
        raise Skip("a container needs root")
    if not shutil.which("umoci"):
        raise Skip("umoci is absent")
    said = shell("scripts/image")
    folder = Path(tempfile.mkdtemp(prefix="btc-priced-image-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    image = said.split(",")[0].strip()
    shell("umoci", "unpack", "--image", ROOT / image, folder / "bundle")
    config, root = json.loads((folder / "bundle/config.json").read_text()), folder / "bundle/rootfs"
    equal((config["process"]["user"]["uid"], config["process"]["args"]), (1000, ["/usr/bin/btc-priced"]))
    assert "/var/lib/btc-priced" in {mount["destination"] for mount in config["mounts"]}, config["mounts"]
    programs = {path.name for path in root.rglob("*") if path.is_file() and path.stat().st_mode & 0o111 and not re.search(r"\.so", path.name)}
    equal(programs, {"btc-priced", "btcctl", "btc-price-http"}, "programs in the image")
    for name in ("sbom.spdx.json", "libsqlite3-0/copyright", "libssl3/copyright", "libc6/copyright"):
        assert (root / "usr/share/doc" / name).stat().st_size > 0, name
    # Where OpenSSL looks for the authorities.
    authorities = root / os.readlink(root / "usr/lib/ssl/cert.pem").lstrip("/")
    assert "BEGIN CERTIFICATE" in authorities.read_text(), authorities
    volumes = {}
    for name in ("var/lib/btc-priced", "run/btc-priced"):
        volumes[name] = folder / name.replace("/", "-")
        volumes[name].mkdir()
        os.chown(volumes[name], 1000, 1000)
    mounts = "; ".join(f'mount --bind "{path}" "{root}/{name}"' for name, path in volumes.items())

    def contain(*command):
        """In namespaces of its own but for the network, as the image's user, with what the image's configuration sets."""
        script = (f'mount --bind "{root}" "{root}"; {mounts}; mount -t proc proc "{root}/proc"; mount -o remount,bind,ro "{root}"; '
                  f'exec chroot --userspec=1000:1000 "{root}" "$@"')
        return ["unshare", "--mount", "--ipc", "--uts", "sh", "-ec", script, "sh", *command]
    environment = dict(entry.split("=", 1) for entry in config["process"]["env"])
    host_port, simulator = free_port(), replaying("68901.23")
    daemon = spawn(
        contain("/usr/bin/btc-priced", "--sources", "binance,coinbase", "--source-binance-url", simulator.urls["binance"],
                "--source-coinbase-url", simulator.urls["coinbase"]), env={**os.environ, **environment, "PATH": os.environ["PATH"]})
    spawn(contain("/usr/bin/btc-price-http", "--listen", f"127.0.0.1:{host_port}"), env={**os.environ, **environment, "PATH": os.environ["PATH"]})

    def price():
        done = subprocess.run(contain("/usr/bin/btcctl", "current", "--raw", "--max-age", "5"), capture_output=True, text=True)
        return done.returncode == 0 and done.stdout
    equal(wait_until(price, what="the price in the container"), "68901.23\n")
    from lib.gateway import get
    reply = wait_until(lambda: (r := get(("127.0.0.1", host_port), "/v1/price")) and r.status == 200 and r, what="the gateway")
    equal(reply.json["price"], "68901.23")
    assert (volumes["var/lib/btc-priced"] / "last-quote.json").exists(), "the state is in the volume"
    equal(daemon.poll(), None)
    return said.strip()


main()
