#!/bin/sh
# hledger 1.25 (Debian 12): a price file that is included by a journal with decimal commas takes the journal's decimal mark.
#
# Expected: a price directive in another file means what it means alone, or the number is refused.
# Seen: `P 2026-08-25 BTC 59411.02 EUR` is 5,941,102 EUR if the including journal has `commodity 1.000,00 EUR`: a hundred times too much,
# without a warning. `decimal-mark .` as the first line of the price file makes it right, and leaves the journal's own mark alone.
# With -f main -f prices, each file stands alone and both are right.
set -eu
version=1.25-2+b5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq download "hledger=$version" >/dev/null
dpkg -x hledger_*.deb .
cat >main.journal <<'JOURNAL'
commodity 1.000,00 EUR
include prices.journal

2026-08-01 bought
    assets:btc    1 BTC
    equity
JOURNAL
worth() { usr/bin/hledger -f main.journal balance assets:btc --value=2026-08-25,EUR -N | tr -s ' '; }
echo 'P 2026-08-25 BTC 59411.02 EUR' >prices.journal
without=$(worth)
printf 'decimal-mark .\nP 2026-08-25 BTC 59411.02 EUR\n' >prices.journal
with=$(worth)
echo "hledger $version: without decimal-mark:$without; with it:$with"
[ "$without" = " 5.941.102,00 EUR assets:btc" ] && [ "$with" = " 59.411,02 EUR assets:btc" ]
