#!/bin/sh
# ledger 3.3.0 (Debian 12): a value in a currency is shown without its cents until an amount of the journal has some.
#
# Expected: the digits of the price directive, as hledger shows.
# Seen: half of 70,550.16 USD is "35275 USD"; after any amount such as 1.00 USD in the journal it is "35275.08 USD". The value is the same.
set -eu
version=3.3.0-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq download "ledger=$version" >/dev/null
dpkg -x ledger_*.deb .
cat >main.journal <<'JOURNAL'
P 2026-08-25 BTC 70550.16 USD

2026-08-01 bought
    assets:btc    0.5 BTC
    equity
JOURNAL
worth() { usr/bin/ledger -f main.journal balance assets:btc -X USD --now 2026-08-26 | tr -s ' '; }
before=$(worth)
printf '\n2026-08-02 paid\n    expenses    1.00 USD\n    equity\n' >>main.journal
after=$(worth)
echo "ledger $version: before:$before; after:$after"
case $before in *35275.*) exit 1 ;; *35275*) ;; *) exit 1 ;; esac
case $after in *35275.08*) ;; *) exit 1 ;; esac
