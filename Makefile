# Start with `make run` and `make test`.

# The client is a static-pie binary. With a local rpath it would crash when it starts.
RELEASE = swift build -c release --static-swift-stdlib --disable-local-rpath

FORMATTED = Package.swift Sources Tests Fuzz Benchmarks

.PHONY: build run demo deb test test-system test-deep bench nio-handler format lint clean

## Release binaries in .build/release.
build:
	@scripts/dependencies build
	$(RELEASE)

## Start the daemon as the current user and watch the price. If no exchange responds, use the simulator.
run: build
	@scripts/run

## The same with the simulator.
demo: build
	@scripts/run --demo

## Build the Debian package in .build/deb.
deb: build
	@scripts/dependencies deb
	@scripts/deb

## Run all checks.
test: build
	@scripts/dependencies test
	@scripts/deb
	@scripts/test

## Run only the numbered scripts, on the existing binaries: make test-system ONLY="010 050"
test-system:
	@Tests/System/run $(ONLY)

## Run the tests that take longer, about three hours: virtual months and lying venues with new random seeds, the decoders on inputs from libFuzzer, and the
## tests of multithreaded code under the thread sanitizer. The last two use their own builds.
test-deep: build
	@scripts/dependencies test
	@scripts/test-threads
	@for _ in 1 2 3; do seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); SEED=$$seed Tests/System/145-validation.py \
		&& SEED=$$seed Tests/System/146-truth.py "one venue lies" || exit; done
	@KILLS=100 Tests/System/165-currencies.py killed
	@KILLS=200 Tests/System/240-history.py kills
	@Tests/System/history-deep
	@Tests/System/fleet-deep
	@VARLINK_PYTHON=$(CURDIR)/.build/venv/bin/python3 Tests/System/streams-deep
	@FAULTS_SECONDS=3600 Tests/System/250-fleet.py endurance "faults of"
	@SUITES=trixie Tests/System/200-package.py
	@RESTARTS=50 Tests/System/230-http.py restarted && EXAMPLES=300 Tests/System/230-http.py schemathesis
	@scripts/fuzz --runs 20000
	@scripts/fuzz --runs 2000000 stream-binance stream-bitstamp stream-coinbase stream-kraken websocket

## Measure the costs, with other programs in the same run for comparison, and rewrite docs/BENCHMARKS.md.
bench: build
	@scripts/dependencies bench
	@Benchmarks/run --page

# Only the benchmarks need this target. It is built with the packages that are already there.
nio-handler:
	BTC_PRICED_BENCHMARKS=1 $(RELEASE) --product nio-handler

format:
	swift format --in-place --recursive --parallel $(FORMATTED)

lint:
	swift format lint --strict --recursive --parallel $(FORMATTED)

clean:
	rm -rf .build .build-fuzz .build-tsan
