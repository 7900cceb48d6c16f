#!/bin/sh
# ledger 3.3.0 (Debian 12): with a commodity that has decimal commas, a price with a point is an error or a thousand times too much,
# depending on the number of digits after the point.
#
# Expected: a point that can't be a decimal mark is an error, always.
# Seen: two digits are an error ("Incorrect use of thousand-mark period"), three are read as thousands: 59411.021 is 59,411,021.
set -eu
version=3.3.0-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq download "ledger=$version" >/dev/null
dpkg -x ledger_*.deb .
worth() {
    cat >main.journal <<JOURNAL
D 1.000,00 EUR
P 2026-08-25 BTC $1 EUR

2026-08-01 bought
    assets:btc    1 BTC
    equity
JOURNAL
    usr/bin/ledger -f main.journal balance assets:btc -X EUR --now 2026-08-26 2>&1 | tail -1 | tr -s ' '
}
two=$(worth 59411.02) three=$(worth 59411.021)
echo "ledger $version: two digits:$two; three digits:$three"
[ "${two#*Incorrect use of thousand-mark period}" != "$two" ] && [ "$three" = " 59.411.021,00 EUR assets:btc" ]
