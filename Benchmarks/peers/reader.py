"""Prints the price each second, with ccxt.

    reader.py URL CA-FILE"""

import os
import sys
import time

import ccxt

exchange = ccxt.binance({"enableRateLimit": False, "requests_trust_env": True})
exchange.urls["api"]["public"] = f"{sys.argv[1]}/api/v3"
# ccxt takes no other authorities; requests does, from the environment.
os.environ["REQUESTS_CA_BUNDLE"] = sys.argv[2]
while True:
    print(exchange.publicGetTickerPrice({"symbol": "BTCUSDT"})["price"], flush=True)
    time.sleep(1)
