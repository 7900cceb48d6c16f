#!/bin/sh
# beancount 3.2.3 (PyPI): of two prices of one day in different files, the one on the higher line number counts.
#
# Expected: an error, or the price that is read last.
# Seen: the price on line 9 of the file that is included first wins over the one on line 1 of the file that is included last, and
# bean-check says nothing.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip --quiet --disable-pip-version-check install beancount==3.2.3
printf '\n\n\n\n\n\n\n\n2026-08-25 price BTC 100.00 USD\n' >first.beancount
printf '2026-08-25 price BTC 200.00 USD\n' >last.beancount
printf 'include "first.beancount"\ninclude "last.beancount"\n' >main.beancount
venv/bin/bean-check main.beancount
seen=$(venv/bin/python3 - <<'PYTHON'
import datetime
from beancount import loader
from beancount.core import prices
entries, errors, options = loader.load_file("main.beancount")
print(len(errors), prices.get_price(prices.build_price_map(entries), ("BTC", "USD"), datetime.date(2026, 8, 25))[1])
PYTHON
)
echo "beancount 3.2.3: errors and price: $seen"
[ "$seen" = "0 100.00" ]
