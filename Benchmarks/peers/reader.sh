#!/bin/sh
# Prints the price each second.
#
#   reader.sh URL CA-FILE
while :; do
    curl -s --cacert "$2" "$1/api/v3/ticker/price?symbol=BTCUSDT" | jq -r .price
    sleep 1
done
