# `make` lists the targets. The stamps lie in .venv, so `make` builds everything again after .venv is removed.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Without bytecode files every process would compile weir and its tests again, so this setting overrides the user's.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONUNBUFFERED :=

VENV := .venv
BIN := $(VENV)/bin
# uv installs into .venv, even if another environment is active.
UV := VIRTUAL_ENV=$(CURDIR)/$(VENV) $(CURDIR)/$(BIN)/uv

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find engine/crates engine/pyproject.toml locust-recorder -name '*.rs' -o -name '*.toml')
WEB_SOURCES := $(shell test -d web && find web -type f -not -path '*/node_modules/*' -not -path '*/dist/*')
PHASE := scripts/phase
COMPILE := $(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 --custom-compile-command "make lock" $(UPGRADE)

# Mutations that `make soak` tries on the parsers of responses and JSON, in a minute. Another seed tries other ones.
FUZZ_EXECUTIONS := 10000000
FUZZ_SEED := 1

##@ Use

.PHONY: setup
setup: $(VENV)/.package $(VENV)/.web ## Build the three packages into .venv (quick when nothing changed)

.PHONY: demo
demo: setup ## Answer the first question: does an async server beat a sync one?
	@$(BIN)/weir demo

# The scale of `make studies`, and the names of the studies (default: all).
SCALE := quick
STUDIES :=

.PHONY: studies
studies: setup ## Run every study in fifty minutes; reports in runs/SCALE (SCALE=quick|evidence, STUDIES="one another")
	scripts/studies $(SCALE) runs/$(SCALE) $(STUDIES)

##@ Develop

# The folder in tests/ for `make test-all`, such as ROOM=cluster; by default all.
ROOM :=
RUST_TESTS := cargo test --locked --workspace --quiet --no-fail-fast -- --test-threads 4
# Five processes for two CPUs, because tests mostly wait. Each process runs whole files.
PYTEST := $(BIN)/pytest -q -n 5 --dist loadscope --no-loadscope-reorder
EACH_BEHAVIOUR := -m "not thorough and not soak"

.PHONY: test
test: setup ## Run the tests: each behaviour once, 10 minutes on 2 CPUs
	@$(PHASE) "programs that tests need" scripts/system-packages
	@failed=0; again=; \
	$(PHASE) "types of the web parts" $(BIN)/python hatch_build.py check || failed=1; \
	$(PHASE) "Rust tests" $(RUST_TESTS) || again=rust; \
	$(PHASE) "Python tests" $(PYTEST) $(EACH_BEHAVIOUR) || again="$$again python"; \
	for kind in $$again; do \
		$(PHASE) "failed tests again, alone ($$kind)" scripts/rerun $$kind $(BIN)/pytest -q -x $(EACH_BEHAVIOUR) || failed=1; \
	done; \
	scripts/phase --sum "Rust tests" "Python tests"; \
	exit $$failed

.PHONY: test-all
test-all: setup ## Run the tests that `make test` leaves out: every case of each behaviour (ROOM=cluster: only in tests/cluster)
	@$(PHASE) "programs that tests need" scripts/system-packages
	@$(PHASE) "thorough tests" $(PYTEST) -m thorough tests/$(ROOM)

.PHONY: lint
lint: setup ## Check style, types and import rules of Python, Rust and TypeScript
	@failed=0; \
	$(PHASE) "ruff" $(BIN)/ruff check . || failed=1; \
	$(PHASE) "ruff format" $(BIN)/ruff format --check . || failed=1; \
	$(PHASE) "mypy" $(BIN)/mypy || failed=1; \
	$(PHASE) "import rules" $(BIN)/lint-imports --no-logo || failed=1; \
	$(PHASE) "rustfmt" cargo fmt --all --check || failed=1; \
	$(PHASE) "rustfmt of the fuzz targets" cargo fmt --manifest-path engine/fuzz/Cargo.toml --check || failed=1; \
	$(PHASE) "clippy" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings || failed=1; \
	$(PHASE) "types of the web parts" $(BIN)/python hatch_build.py check || failed=1; \
	exit $$failed

.PHONY: format
format: $(VENV)/.requirements ## Format Python and Rust
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .
	cargo fmt --all
	cargo fmt --manifest-path engine/fuzz/Cargo.toml

.PHONY: reference
reference: setup ## Write the generated pages of docs/reference from the code that they describe
	$(BIN)/python -m scripts.reference docs/reference

.PHONY: soak
soak: setup ## Run the tests that take longer than a minute
	@$(PHASE) "programs that tests need" scripts/system-packages
	@$(PHASE) "oha and k6" scripts/bench-peers oha k6
	@for target in response json; do \
		$(PHASE) "mutations of $$target" cargo run --locked --release --quiet --manifest-path engine/fuzz/Cargo.toml \
			--target-dir target/fuzz --bin mutate -- $$target $(FUZZ_EXECUTIONS) $(FUZZ_SEED) || exit; \
	done
	@$(PHASE) "Rust soak tests" cargo test --locked --release --quiet --package weir-engine --test load_many --test serve_many -- --ignored
	@$(PHASE) "Python soak tests" $(BIN)/pytest -q -m soak --timeout 3600

.PHONY: bench
bench: setup ## Compare weir with other generators, in 40 minutes (let nothing else run); writes bench/RESULTS.md
	scripts/system-packages bench
	scripts/bench-peers
	cargo build --locked --release --package weir-bench-clients
	$(BIN)/python -m bench

.PHONY: wheels
wheels: $(VENV)/.requirements ## Build the wheels and sdists of the three packages into dist/
	$(UV) build --all-packages

.PHONY: lock
lock: $(VENV)/.bootstrap ## Lock all Python requirements, the stacks' too (UPGRADE=--upgrade for newer ones)
	$(COMPILE) requirements/bootstrap.in -o requirements/bootstrap.txt
	$(COMPILE) requirements/node.in -o requirements/node.txt
	$(COMPILE) pyproject.toml --all-extras requirements/dev.in -c requirements/bootstrap.txt --no-emit-package weirbench-engine --no-emit-package weirbench-locust -o requirements/dev.txt
	for requirements in stacks/python/*/requirements.in src/weir/generators/data/*/requirements.in; do \
		(cd "$$(dirname "$$requirements")" && $(COMPILE) requirements.in -o requirements.txt) || exit; \
	done

.PHONY: clean
clean: ## Remove everything that was built, .venv too
	rm -rf $(VENV) dist target src/weir/_web web/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- Stamps that the targets above need

$(VENV)/.bootstrap: scripts/bootstrap requirements/bootstrap.txt
	@$(PHASE) "Python and uv in $(VENV)" scripts/bootstrap
	@touch $@

# Syncing removes packages that are not locked, also weir's three. So the stamps below depend on this one.
$(VENV)/.requirements: $(VENV)/.bootstrap requirements/dev.txt requirements/node.txt
	@$(PHASE) "Python packages" env $(UV) pip sync --quiet --compile-bytecode --require-hashes requirements/dev.txt $(shell command -v node >/dev/null && command -v npm >/dev/null || echo requirements/node.txt)
	@touch $@

# This build also makes the wheel and uses cargo's target folder, so it compiles only changed code.
$(VENV)/.engine: $(VENV)/.requirements $(RUST_SOURCES)
	@$(PHASE) "engine, recorder (2 minutes from nothing)" env $(UV) pip install --quiet --no-deps --no-build-isolation --reinstall-package weirbench-engine --reinstall-package weirbench-locust ./engine ./locust-recorder
	@touch $@

$(VENV)/.package: $(VENV)/.requirements $(VENV)/.engine pyproject.toml hatch_build.py
	@$(PHASE) "command weir" env $(UV) pip install --quiet --no-deps --no-build-isolation --reinstall-package weirbench --editable .
	@touch $@

$(VENV)/.web: $(VENV)/.requirements $(WEB_SOURCES) hatch_build.py
	@$(PHASE) "web parts" $(BIN)/python hatch_build.py build
	@touch $@
