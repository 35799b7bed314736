# Commands for developers and the continuous integration. `make test` runs every check.

CARGO ?= cargo

# A run that hangs is ended, and prints the names of the tests that were running.
WITHIN = timeout --kill-after=30

# Incremental builds help when a developer builds again and again; a single run is faster without.
ifdef CI
export CARGO_INCREMENTAL = 0
endif

.PHONY: test suites hostile needs check build fuzz fuzzed rust redis browser deploy readme examples contract simulation simulate plants differential bench growth soak load demo dist mutants

# Builds run one after the other. Then the suites that mostly wait (browser, Redis, deploy) run beside those that compute.
test: check build
	+$(MAKE) --no-print-directory --output-sync=target --jobs=2 suites
	+$(MAKE) --no-print-directory hostile

suites: browser rust redis deploy readme examples contract simulation fuzzed

# Programs that the suites need, with their Debian packages. Missing ones are installed when this runs as root, and
# otherwise listed.
needs:
	@missing=""; \
	need() { command -v "$$1" >/dev/null 2>&1 || missing="$$missing $$2"; }; \
	need cc build-essential; need c++ build-essential; need python3 python3; need node nodejs; need npm npm; need flock util-linux; need curl curl; \
	python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$$missing python3-venv"; \
	need chromium chromium; need zbarimg zbar-tools; need gs ghostscript; \
	[ -n "$$(fc-list :lang=ur family 2>/dev/null)" ] || missing="$$missing fontconfig fonts-noto-core"; \
	need redis-server redis-server; need redis-cli redis-tools; need haproxy haproxy; need zsh zsh; \
	need kubectl kubernetes-client; need systemd-analyze systemd; need openssl openssl; \
	need buildah buildah; need promtool prometheus; need mmdebstrap mmdebstrap; need ip iproute2; need javac default-jdk-headless; \
	[ -f /usr/share/java/jakarta-annotation-api.jar ] || missing="$$missing libjakarta-annotation-api-java"; \
	[ -f /usr/share/java/jackson-databind.jar ] || missing="$$missing libjackson2-databind-java"; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	else \
		echo "please install:$$missing" >&2; exit 1; \
	fi

check: needs
	$(CARGO) fmt --all --check
	$(WITHIN) 30m $(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	$(WITHIN) 10m $(CARGO) clippy --workspace --test hostile --all-features -- -D warnings
	$(WITHIN) 10m $(CARGO) clippy --package sakshi --lib --bins --no-default-features -- -D warnings

# Everything that the suites need: one build, and packages from registries.
build: needs
	@$(WITHIN) 10m tests/contract/setup.sh & $(WITHIN) 10m tests/browser/setup.sh & $(WITHIN) 10m tests/deploy/setup.sh & \
	$(WITHIN) 10m tests/examples/setup.sh & $(WITHIN) 10m tests/contract/clients/setup.sh & \
	$(WITHIN) 30m $(CARGO) test --workspace --no-run && $(WITHIN) 10m $(CARGO) test --workspace --test hostile --no-run && wait

rust: build
	$(WITHIN) 45m $(CARGO) test --workspace

# The black-box suite again, on Redis.
redis: build
	SAKSHI_TEST_STORE=redis $(WITHIN) 30m $(CARGO) test --workspace --test api

browser: build
	$(WITHIN) 40m tests/browser/run.sh

# Whether strangers can make others wait. It compares times, so it runs alone.
hostile: build
	$(WITHIN) 10m $(CARGO) test --workspace --test hostile
	SAKSHI_TEST_STORE=redis $(WITHIN) 10m $(CARGO) test --workspace --test hostile

# All those attacks at once beside honest clients, and many mutated callbacks before; seven minutes on a quiet machine.
soak:
	$(CARGO) test --profile dist --package sakshi --features shipped,soak --test hostile -- --nocapture --test-threads=1 mutated:: soak::

# The files in deploy/, as far as one machine can run them.
deploy: build
	$(WITHIN) 10m tests/deploy/check.sh

# A minute of the fuzzer over all that strangers feed, with counters in our own crates.
fuzzed: build
	$(WITHIN) 60m tests/fuzz/run.py

# The fuzzer for longer, with counters in every crate: make fuzz FUZZ="--runs 1000000 jwks".
FUZZ ?= --seconds 60
fuzz:
	tests/fuzz/run.py --whole $(FUZZ)

# The commands in the README.
readme: build
	$(WITHIN) 10m tests/readme/run.sh

# The client backends in examples/.
examples: build
	$(WITHIN) 10m tests/examples/run.sh

# Schedules of whole nodes, each from a seed.
simulation: build
	$(WITHIN) 60m $(CARGO) run --quiet --profile simulation --package sakshi-sim -- --seeds 2000

# The same for a night.
simulate:
	$(CARGO) run --release --package sakshi-sim -- --from 2000 --seeds 2000000

# Whether the simulator finds the faults of src/sim/plants.toml: a build for each, half an hour. Writes src/sim/PLANTS.md.
plants:
	$(CARGO) run --profile simulation --package sakshi-sim -- --plant all > src/sim/PLANTS.md

# Three verifiers over many mutated credentials; writes tests/contract/differential/RESULTS.md. Some ten minutes on two cores.
differential: needs
	$(CARGO) run --package sakshi-differential -- --count 100000 --write

# Whether tests find small changes of a crate, made one at a time by cargo-mutants; hours. What is known is in tests/mutants.md.
MUTANTS ?= sakshi-domain
mutants:
	$(CARGO) mutants --package $(MUTANTS) --timeout 120 --build-timeout 900 --output target

# Linters, generated clients and schemathesis on the OpenAPI document.
contract: build
	$(WITHIN) 15m tests/contract/run.sh

# A release: a stripped binary in an archive, its debug information and checksums, in target/dist/out.
dist:
	CARGO_PROFILE_DIST_STRIP=none $(CARGO) build --profile dist --locked --package sakshi --no-default-features --features shipped
	deploy/release/dist.sh

# Everything in benches/. Writes benches/RESULTS.md, benches/costs.json and the plans of docs/capacity.md. Takes about forty
# minutes on a quiet machine, and installs the peers' libraries (benches/peers/setup.sh).
bench: needs
	$(CARGO) run --profile dist -p sakshi-benches --features shipped -- all --write
	$(CARGO) run -p sakshi-load -- plan --document docs/capacity.md

# The cost of a request as the node holds more and more; 25 minutes.
growth:
	$(CARGO) run --profile dist -p sakshi-benches --features shipped -- growth

# The load tester against a sandbox node that runs on this machine: make load LOAD="storm --guests 5000 --report report.html".
LOAD ?= kiosk --guests 2000 --minutes 1
load:
	$(CARGO) run --release -p sakshi-load -- $(LOAD)

demo:
	$(CARGO) run -- demo
