#!/bin/sh
# hledger 1.25 (Debian 12): of several prices of one day, the one in the last line counts, whatever its time.
#
# Expected: the price with the latest time, which ledger uses; the times are accepted without a word.
# Seen: the line of 09:00, which comes after that of 18:00, is the day's price.
set -eu
version=1.25-2+b5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq download "hledger=$version" >/dev/null
dpkg -x hledger_*.deb .
cat >main.journal <<'JOURNAL'
P 2026-08-25 18:00:00 BTC 200.00 USD
P 2026-08-25 09:00:00 BTC 100.00 USD

2026-08-01 bought
    assets:btc    1 BTC
    equity
JOURNAL
seen=$(usr/bin/hledger -f main.journal balance assets:btc --value=2026-08-25,USD -N | tr -s ' ')
echo "hledger $version:$seen"
[ "$seen" = " 100.00 USD assets:btc" ]
