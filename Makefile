# The two commands of a newcomer are `make run` and `make test`.

# The client is linked as one static-pie: without --disable-local-rpath it would crash at its start.
# TOMLKit's parser asserts what a wrong file violates (`a = 1979-05-27T:`), before it looks itself and says what is wrong: without its
# assertions the daemon gets that error, instead of being aborted by a typing mistake. Not by NDEBUG, which has the compiler rely on them.
# Each function in a section of its own, so that the linker can lay side by side what runs at every tick (scripts/symbol-order).
RELEASE = swift build -c release --static-swift-stdlib --disable-local-rpath \
	-Xswiftc -Xfrontend -Xswiftc -function-sections -Xcc -ffunction-sections \
	-Xcxx '-DTOML_ASSERT(expression)=static_cast<void>(0)'

FORMATTED = Package.swift Sources Tests Fuzz Benchmarks

.PHONY: build run demo deb test test-system test-deep bench nio-handler format lint clean

## Release binaries in .build/release.
build:
	@scripts/dependencies build
	$(RELEASE)

## Start the daemon as the present user and watch the price. Where no exchange answers: the simulator.
run: build
	@scripts/run

## The same against the simulator at once.
demo: build
	@scripts/run --demo

## The Debian package, in .build/deb.
deb: build
	@scripts/dependencies deb
	@scripts/deb

## Everything that must hold.
test: build
	@scripts/dependencies test
	@scripts/deb
	@scripts/test

## The numbered scripts alone, on the binaries as they are: make test-system ONLY="010 050"
test-system:
	@Tests/System/run $(ONLY)

## What takes longer and finds what nobody thought of: virtual months and lying venues that nobody has seen, and every decoder on inputs made by
## libFuzzer, in a build of its own; and the server's tests under the thread sanitizer, in another one.
test-deep: build
	@scripts/dependencies test
	@scripts/test-threads
	@for _ in 1 2 3; do seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); SEED=$$seed Tests/System/145-judgement.py \
		&& SEED=$$seed Tests/System/146-truth.py "one venue lies" || exit; done
	@scripts/fuzz --runs 20000

## What it costs, beside others in the same run: docs/BENCHMARKS.md anew.
bench: build
	@scripts/dependencies bench
	@Benchmarks/run --page

# Built with the packages that are there: a target of its own, which nobody but the measurements needs.
nio-handler:
	BTC_PRICED_BENCHMARKS=1 $(RELEASE) --product nio-handler

format:
	swift format --in-place --recursive --parallel $(FORMATTED)

lint:
	swift format lint --strict --recursive --parallel $(FORMATTED)

clean:
	rm -rf .build .build-fuzz .build-tsan
