# What a developer and the continuous integration run. `make test` is all of it.

CARGO ?= cargo

# A run that hangs ends with the names of the tests that were running, long before anyone's patience does.
WITHIN = timeout --kill-after=30

.PHONY: test check needs rust contract browser deploy bench growth load demo

test: needs check rust contract browser deploy

# Programs that the suites run, with the Debian packages that bring them. Installed only when missing,
# and only where that is allowed; otherwise the missing ones are named.
needs:
	@missing=""; \
	need() { command -v "$$1" >/dev/null 2>&1 || missing="$$missing $$2"; }; \
	need cc build-essential; need python3 python3; need node nodejs; need npm npm; need flock util-linux; \
	python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$$missing python3-venv"; \
	if [ -d tests/browser ]; then need chromium chromium; need zbarimg zbar-tools; need gs ghostscript; \
		[ -n "$$(fc-list :lang=ur family 2>/dev/null)" ] || missing="$$missing fontconfig fonts-noto-core"; fi; \
	need redis-server redis-server; need redis-cli redis-tools; need haproxy haproxy; \
	if [ -d tests/deploy ]; then need kubectl kubernetes-client; need systemd-analyze systemd; need openssl openssl; fi; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	else \
		echo "please install:$$missing" >&2; exit 1; \
	fi

check: needs
	$(CARGO) fmt --all --check
	$(WITHIN) 30m $(CARGO) clippy --workspace --all-targets -- -D warnings

rust: needs
	$(WITHIN) 30m $(CARGO) test --workspace --no-run
	$(WITHIN) 20m $(CARGO) test --workspace
	SAKSHI_TEST_STORE=redis $(WITHIN) 10m $(CARGO) test --workspace --test api

# The independent issuers; the suites that use them have run with the rest.
contract: needs
	$(WITHIN) 10m tests/contract/setup.sh

browser: needs rust
	@if [ -d tests/browser ]; then $(WITHIN) 15m tests/browser/run.sh; fi

# What is in deploy/, as far as one machine can run it.
deploy: needs
	$(WITHIN) 10m tests/deploy/check.sh

# Everything in benches/, with the tables written into its README; about twenty-five minutes of a quiet machine.
bench: needs
	$(CARGO) run --release -p sakshi-benches -- all --write

# What a request costs as the node holds more and more; 25 minutes.
growth:
	$(CARGO) run --release -p sakshi-benches -- growth

# Guests through a sandbox node that runs on this machine: make load LOAD="storm --guests 5000 --report report.html".
LOAD ?= kiosk --guests 2000 --minutes 1
load:
	$(CARGO) run --release -p sakshi-load -- $(LOAD)

demo:
	$(CARGO) run --release -- demo
