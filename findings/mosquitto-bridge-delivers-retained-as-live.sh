#!/bin/sh
# mosquitto 2.0.11 (Debian 12): what a bridge gets because its root had kept it reaches a client of the leaf without the flag "retained",
# if the client was there before the bridge.
#
# Expected: a message that the root had kept is marked as retained at each subscriber, so that it can be told from a live one.
# Seen: the early client gets it with retain 0, a later one with retain 1.
set -eu
folder=$(mktemp -d)
trap 'kill $root $leaf $early 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
root= leaf= early=
cd "$folder"
apt-get -qq download mosquitto mosquitto-clients >/dev/null
for package in ./*.deb; do dpkg -x "$package" .; done
found=$(usr/sbin/mosquitto -h 2>/dev/null | sed -n 's/^mosquitto version \([0-9.]*\).*/\1/p')
printf 'listener 18831 127.0.0.1\nallow_anonymous true\nuser root\n' >root.conf
printf 'listener 18832 127.0.0.1\nallow_anonymous true\nuser root\nconnection c\naddress 127.0.0.1:18831\ntopic # in 0\nrestart_timeout 1\n' >leaf.conf
usr/sbin/mosquitto -c leaf.conf >leaf.log 2>&1 &
leaf=$!
sleep 1
usr/bin/mosquitto_sub -p 18832 -t price -F '%r' >early 2>/dev/null &
early=$!
sleep 1
usr/sbin/mosquitto -c root.conf >root.log 2>&1 &
root=$!
sleep 0.3
usr/bin/mosquitto_pub -p 18831 -t price -m 1 -r
i=0
while [ ! -s early ] && [ $i -lt 100 ]; do sleep 0.2; i=$((i + 1)); done
late=$(usr/bin/mosquitto_sub -p 18832 -t price -F '%r' -C 1 -W 10)
echo "mosquitto $found: retain for the early client: $(head -1 early), for a late one: $late"
[ "$(head -1 early)" = 0 ] && [ "$late" = 1 ]
