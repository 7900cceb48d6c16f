"""A source of prices for bean-price 2.1.0, which asks btcctl. Put this file where Python finds it (PYTHONPATH), and write

    2020-01-01 commodity BTC
      price: "USD:btc_priced_beanprice/USD"

What follows the slash is the currency. A price that is old or unconfirmed is not given; nor is one of a past minute that is not known, since
bean-price asks for four o'clock in local time.
"""

import datetime
import decimal
import json
import subprocess

from beanprice import source


def btcctl(*words):
    """The JSON object that btcctl prints; None if it has an exit status other than 0, after what it said on standard error."""
    done = subprocess.run(["btcctl", *words, "--json"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


class Source(source.Source):
    def get_latest_price(self, ticker):
        state = btcctl("current", "--currency", ticker, "--max-age", "1m", "--confirmed")
        if state is None:
            return None
        return self.price(state["quote"]["value"], state["quote"]["timestamp"], ticker)

    def get_historical_price(self, ticker, time):
        known = btcctl("at", time.isoformat(), "--currency", ticker, "--fetch", "--max-step", "1m")
        if known is None or known["at"]["approximate"]:
            return None
        return self.price(known["at"]["price"], known["at"]["time"], ticker)

    @staticmethod
    def price(value, milliseconds, currency):
        time = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc)
        return source.SourcePrice(decimal.Decimal(value), time, currency)
