# Start with `make run` and `make test`.

PRODUCTS = btc-priced btcctl btc-price-http btc-price-fleet btc-price-alert exchange-simulator
FORMATTED = Package.swift Sources Tests Fuzz

.PHONY: build run demo install uninstall image dist deb arm64 test test-unit test-system test-package test-flaky soak test-deep bench format lint clean

## Release binaries in .build/release.
build:
	@scripts/dependencies build
	@scripts/build $(PRODUCTS)

## Build the programs, start the daemon as the current user and watch the price. If no exchange responds, use the simulator.
run:
	@scripts/dependencies build
	@scripts/build btc-priced btcctl exchange-simulator
	@scripts/run

## Do the same with the simulator.
demo:
	@scripts/dependencies build
	@scripts/build btc-priced btcctl exchange-simulator
	@scripts/run --demo

## Install what is built: make install DESTDIR=/tmp/root prefix=/usr. scripts/install lists the variables.
install:
	@scripts/install

## Remove what `make install` with the same variables has installed.
uninstall:
	@scripts/install --uninstall

## Write an OCI image to .build/image.
image: build
	@scripts/dependencies image
	@scripts/image

## Write the tarball of the newest commit to .build/dist.
dist: build
	@scripts/dependencies deb
	@scripts/dist

## Build the Debian packages in .build/deb.
deb: build
	@scripts/dependencies deb
	@scripts/deb

## Build the programs and packages for Debian 13 on arm64 in .build-arm64, as root, on a machine with another processor.
arm64:
	@scripts/dependencies arm64
	@scripts/arm64

## Run all checks.
test: build
	@scripts/dependencies test
	@scripts/build rehearsal
	@scripts/deb
	@scripts/test

## Check the format and run the unit tests, without a release build.
test-unit:
	@scripts/dependencies build
	@scripts/test-unit

## Run only numbered scripts, on the existing binaries: make test-system ONLY="010 050"
test-system:
	@Tests/System/run $(ONLY)

## Build the packages and run their tests: lintian, mandoc, shellcheck and a booted Debian 12.
test-package: build
	@scripts/dependencies test
	@scripts/deb
	@Tests/System/run 200

## Repeat all tests next to two busy processes, and count the failures of each test: make test-flaky UNIT=20 SYSTEM=5
test-flaky:
	@Tests/flaky --unit $(or $(UNIT),20) --system $(or $(SYSTEM),5) $(ONLY)

## Run everything at once in real time: make soak MINUTES=60
soak: build
	@scripts/dependencies test
	@MINUTES=$(or $(MINUTES),60) SCENARIO_LIMIT=14400 Tests/System/280-soak.py

## Run the tests that take longer, or one part of them: make test-deep PART=months
test-deep: build
	@scripts/dependencies test
	@scripts/build rehearsal
	@scripts/test-deep $(PART)

## Measure the costs beside those of other programs, and rewrite docs/BENCHMARKS.md.
bench: build
	@scripts/dependencies bench
	@Benchmarks/run --page

format:
	swift format --in-place --recursive --parallel $(FORMATTED)

lint:
	swift format lint --strict --recursive --parallel $(FORMATTED)

clean:
	rm -rf .build .build-fuzz .build-tsan
