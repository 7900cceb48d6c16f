#!/bin/bash
# A common solution: requests the price with curl, reads it with jq, and writes a file.
#
#   loop.sh URL FILE MILLISECONDS TICKS [CA-FILE]
set -eu
url=$1/api/v3/ticker/price?symbol=BTCUSDT file=$2 pause=$(printf '%d.%03d' $(($3 / 1000)) $(($3 % 1000))) ticks=$4 authority=${5:-}
for ((tick = 0; tick < ticks; tick++)); do
    if curl --silent --fail --max-time 1 ${authority:+--cacert "$authority"} "$url" | jq -er .price >"$file.new"; then
        mv "$file.new" "$file"
    fi
    sleep "$pause"
done
