#!/usr/bin/env python3
"""The alerts' package on a booted Debian: the user's service beside a notification server, reboots, the system's service, upgrade and removal.

    SUITES="bookworm trixie" Tests/System/255-alerts.py     on Debian 12 and 13; without SUITES, on Debian 12"""

from lib.btcpriced import *
from lib.machine import PORT, UNIT, configure, fresh_price, on_each, package, start_exchange

ALERT = "btc-price-alert.service"
FILE = "/home/alice/.config/btc-priced/alerts.toml"
STATE = "/home/alice/.local/state/btc-priced/alerts/state.json"


def faults(machine, script):
    """Sets the exchanges' faults: the price is 68,900 without any."""
    machine.run("python3", "-c", f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{PORT + 5}/faults', {script!r}.encode())")


def priced(machine, factor):
    faults(machine, f"* always price {68900 * factor:.0f}\n")


def alice(machine, *arguments, **options):
    return machine.run(
        "setpriv", "--reuid", "alice", "--regid", "alice", "--init-groups", *arguments,
        env={"HOME": "/home/alice", "XDG_RUNTIME_DIR": "/run/user/4321"}, **options)


def alert(machine, *arguments, **options):
    return alice(machine, "btcctl", "alert", *arguments, **options).stdout


def state_of(machine, unit=ALERT):
    return alice(machine, "systemctl", "--user", "is-active", unit, check=False).stdout.strip()


def journal(machine):
    return machine.journal("-o", "cat", "_SYSTEMD_USER_UNIT=" + ALERT)


def waits(machine, *names):
    def known():
        listed = alert(machine, "list")
        return all(re.search(rf"(?m)^{name}: .*\n  (waits|holds)", listed) for name in names)
    wait_until(known, what=lambda: f"{names} in {alert(machine, 'list')}", every=0.1)


class Desktop:
    """A notification server on the user's bus: that of python-dbusmock, which prints each call."""

    def __init__(self, machine):
        self.machine, self.lines = machine, []
        self.process = machine.start(
            "setpriv", "--reuid", "alice", "--regid", "alice", "--init-groups", "setpriv", "--pdeathsig", "KILL", "env", "HOME=/home/alice", "XDG_RUNTIME_DIR=/run/user/4321",
            "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/4321/bus", "PYTHONUNBUFFERED=1", "python3", "-m", "dbusmock", "--session",
            "--template", "notification_daemon", stdout=subprocess.PIPE, text=True)
        threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True).start()
        wait_until(lambda: "org.freedesktop.Notifications" in alice(machine, "busctl", "--user", "list", "--no-pager").stdout, what="the server", every=0.1)

    def shown(self, text):
        return [line for line in list(self.lines) if " Notify " in line and text in line]

    def shows(self, text, count=1):
        wait_until(lambda: len(self.shown(text)) >= count, seconds=60, what=lambda: f"{text!r}; {self.lines}; {journal(self.machine)}", every=0.1)
        time.sleep(1.5)
        equal(len(self.shown(text)), count, self.lines)
        return self.shown(text)[-1]


@on_each("the packages are installed; the first alert enables and starts the user's service, without a user manager it says how")
def _(machine):
    for name in ("btc-priced", "btc-price-alert"):
        shutil.copy(package(name=name), machine.root / "opt" / f"{name}.deb")
    start_exchange(machine)
    priced(machine, 1)
    machine.run("dpkg", "-i", "/opt/btc-priced.deb", "/opt/btc-price-alert.deb", timeout=120)
    configure(machine)
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    machine.sh("useradd --create-home --uid 4321 alice")
    contains(alert(machine, "add", "--below", "1000"), "run 'systemctl --user enable --now btc-price-alert' where you are logged in")
    contains(alert(machine, "remove", "below-1000"), "below-1000 is removed.")
    machine.systemctl("start", "user@4321")
    contains(alert(machine, "add", "--below", "65000"), "The service is started: journalctl --user -u btc-price-alert.service")
    equal(state_of(machine), "active")
    waits(machine, "below-65000")
    contains(alert(machine, "list"), "The alerts are kept while alice is logged in; 'loginctl enable-linger' keeps them always.")
    machine.run("loginctl", "enable-linger", "alice")
    contains(alert(machine, "list"), "The alerts are kept always: lingering is on for alice.")


@on_each("each condition fires once and is shown on the desktop, the next time in place of the last one; without a desktop it is in the journal")
def _(machine):
    desktop = Desktop(machine)
    for words in ("--above 72000", "--change 5% --within 1h", "--when-stale 20s", "--when-unsure --for 5s"):
        alert(machine, "add", *words.split())
    waits(machine, "above-72000", "change-5", "stale", "unsure")
    priced(machine, 0.9)
    first = desktop.shows("Bitcoin is below $65,000.00: $62,010.00.")
    contains(first, 'Notify "btc-priced" 0 ')
    desktop.shows('"Bitcoin: change-5"')
    priced(machine, 1.1)
    desktop.shows("Bitcoin is above $72,000.00: $75,790.00.")
    faults(machine, "* always status 503\n")
    desktop.shows("There has been no fresh price in USD for 20 s: last $75,790.00.")
    priced(machine, 1)
    fresh_price(machine)
    priced(machine, 0.9)
    again = desktop.shows("Bitcoin is below $65,000.00: $62,010.00.", 2)
    assert not re.search(r'Notify "btc-priced" 0 ', again), again
    # One exchange against another: nobody knows which is right.
    faults(machine, "binance always price 62010\ncoinbase always price 66000\n")
    desktop.shows('"Bitcoin: unsure" "The price in USD is unsure: ')
    desktop.process.kill()
    desktop.process.wait()
    priced(machine, 1)
    time.sleep(12)
    count = journal(machine).count("below-65000: Bitcoin is below")
    priced(machine, 0.9)
    wait_until(lambda: journal(machine).count("below-65000: Bitcoin is below") > count, seconds=60, what=lambda: journal(machine), every=0.2)
    wait_until(lambda: "below-65000: no desktop notification: no notification server" in journal(machine), what=lambda: journal(machine), every=0.2)
    wait_until(lambda: "\n  ! no desktop notification: no notification server\n" in alert(machine, "list"), what="the list", every=0.2)
    field = machine.journal("-o", "json", "BTC_ALERT=below-65000", "-n", "1")
    assert re.fullmatch(r"below-65000-\d{13}", json.loads(field)["BTC_ID"]), field
    return f"{len(desktop.shown(''))} notifications"


@on_each("a restart of the daemon, of the service and of the machine repeats nothing and loses nothing")
def _(machine):
    def told():
        return re.findall(r"(?m)^\S+: (?:Bitcoin|There|The price) .*$", journal(machine))
    for name in ("above-72000", "change-5", "stale", "unsure"):
        alert(machine, "remove", name)
    priced(machine, 1)
    time.sleep(3)
    before = len(told())
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    alice(machine, "systemctl", "--user", "restart", ALERT)
    waits(machine, "below-65000")
    time.sleep(2)
    equal(told()[before:], [])
    # Off for an hour, in which the price fell.
    alice(machine, "systemctl", "--user", "stop", ALERT)
    machine.sh(f"""python3 -c "
import json
state = json.load(open('{STATE}'))
for each in state['seen']: each['time'] -= 3600_000
json.dump(state, open('{STATE}', 'w'))" && sed -i 's/^sources/history.enabled = false\\nsources/' /etc/btc-priced/config.toml && systemctl stop {UNIT}""")
    machine.reboot()
    start_exchange(machine)
    priced(machine, 0.9)
    machine.systemctl("restart", UNIT)
    fresh_price(machine)
    wait_until(lambda: len(told()) > 0 and "went below" in told()[-1], seconds=60, what=lambda: journal(machine), every=0.2)
    time.sleep(3)
    assert re.search(r"below-65000: Bitcoin went below \$65,000.00, between .* and .*: \$62,010.00\.$", told()[-1]), told()
    equal(sum("went below" in line for line in told()), 1)
    message = told()[-1]
    machine.reboot()
    start_exchange(machine)
    priced(machine, 0.9)
    fresh_price(machine, seconds=30)
    wait_until(lambda: state_of(machine) == "active", what="the service after a boot", every=0.1)
    waits(machine, "below-65000")
    time.sleep(2)
    equal(sum("went below" in line for line in told()), 1)
    return message


@on_each("the system's alerts: root's file, a user of its own, hardened, a credential for the command")
def _(machine):
    machine.sh("install -d -m 700 /etc/credstore && printf 'secret' | install -m 600 /dev/stdin /etc/credstore/ntfy")
    machine.write("/usr/local/bin/tell", '#!/bin/sh\nlogger -t tell "$(id -u) $(cat "$CREDENTIALS_DIRECTORY/ntfy") $BTCCTL_MESSAGE"\n')
    machine.sh("chmod 755 /usr/local/bin/tell")
    priced(machine, 1)
    contains(machine.run("btcctl", "alert", "add", "--system", "--below", "65000", "--exec", "/usr/local/bin/tell").stdout, "The service is started")
    equal(machine.systemctl("is-active", ALERT).stdout.strip(), "active")
    wait_until(lambda: "\n  waits;" in machine.run("btcctl", "alert", "list", "--system").stdout, what="a checked price", every=0.1)
    priced(machine, 0.9)
    told = wait_until(lambda: machine.journal("-o", "cat", "-t", "tell").strip(), seconds=60, what=lambda: machine.journal("-u", ALERT), every=0.2)
    assert re.fullmatch(r"[1-9]\d+ secret Bitcoin is below \$65,000.00: \$62,010.00\.", told), told
    machine.run("btcctl", "alert", "pause", "--system", "below-65000")
    contains(machine.run("btcctl", "alert", "list", "--system").stdout, "\n  paused;")
    machine.sh("chmod 666 /etc/btc-priced/alerts.toml")
    contains(machine.run("btcctl", "alert", "list", "--system", check=False).stderr, "others than root can write it")
    wait_until(lambda: "others than root can write it" in machine.journal("-u", ALERT), what="that the service refuses it", every=0.2)
    machine.sh("chmod 644 /etc/btc-priced/alerts.toml")
    text = machine.run("systemd-analyze", "security", "--no-pager", ALERT, check=False).stdout
    exposure = float(re.search(r"Overall exposure level for .*: ([\d.]+)", text)[1])
    assert exposure <= 2.5, text
    verified = machine.sh(f"systemd-analyze verify --man=no /lib/systemd/system/{ALERT}; "
                          f"systemd-analyze verify --man=no --user /usr/lib/systemd/user/{ALERT}", check=False)
    equal([line for line in (verified.stdout + verified.stderr).splitlines() if "btc-price" in line], [])
    contains(machine.run("btcctl", "alert", "remove", "--system", "below-65000").stdout, "It was the last one: the service is stopped.")
    equal(machine.systemctl("is-enabled", ALERT, check=False).stdout.strip(), "disabled")
    return f"exposure {exposure}"


@on_each("an upgrade keeps the alerts, and a removal stops the service and leaves the user's files")
def _(machine):
    text = machine.sh(f"cat {FILE}").stdout
    before = alice(machine, "systemctl", "--user", "show", "--value", "-p", "MainPID", ALERT).stdout
    shutil.copy(package(f"{VERSION}+1", "btc-price-alert"), machine.root / "opt" / "newer.deb")
    machine.run("dpkg", "-i", "/opt/newer.deb", timeout=120)
    equal((machine.sh(f"cat {FILE}").stdout, state_of(machine)), (text, "active"))
    wait_until(lambda: alice(machine, "systemctl", "--user", "show", "--value", "-p", "MainPID", ALERT).stdout not in ("0\n", before),
               what="the new program", every=0.1)
    waits(machine, "below-65000")
    contains(alert(machine, "remove", "below-65000"), "It was the last one: the service is stopped.")
    equal(state_of(machine), "inactive")
    alert(machine, "add", "--below", "65000")
    machine.run("dpkg", "--purge", "btc-price-alert", timeout=120)
    assert state_of(machine) != "active"
    contains(machine.sh(f"cat {FILE}").stdout, "[alert.below-65000]")
    done = alice(machine, "btcctl", "alert", "list", check=False)
    equal((done.returncode, "apt install btc-price-alert" in done.stderr), (69, True))


main()
