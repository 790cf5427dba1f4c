# Steelyard's own set-up, tests and benchmarks. `make quickstart` and `make test` do all that they need by themselves.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without make's job server, which a recipe's commands cannot reach.
CARGO := env -u MAKEFLAGS -u MFLAGS cargo
# The output of a command in one moving line, and in a log.
FOLD := $(PYTHON) tools/fold.py
STORE ?= store
# Of which processors `make agents` builds the agent; empty for all.
AGENTS ?=

# Python keeps what it has compiled, wherever this is run: the tests start hundreds of its processes.
unexport PYTHONDONTWRITEBYTECODE

# How to type `steelyard`, if the shell does not find this one.
REACH = @[ "$$(command -v steelyard)" -ef $(BIN)/steelyard ] || \
  echo 'To type steelyard by its name: export PATH="$(CURDIR)/$(BIN):$$PATH"'

.PHONY: help install setup agents quickstart test test-elsewhere check check-python check-rust test-rust compiled-tests bench docs wheels lock clean

help:
	@echo "make quickstart   set up, measure 1 and 2 real Cassandra nodes, write the report (about 9 minutes after set-up)"
	@echo "make test         set up, then the tests: unit, contract, golden, end to end"
	@echo "make test-elsewhere  the tests in containers, in virtual machines, and of agents for other processors"
	@echo "make install      Steelyard without Cassandra, which takes no Java: for simulated clusters and other systems"
	@echo "make setup        the set-up alone; it ends by saying how to type steelyard"
	@echo "make agents       static agents for nodes with other processors: x86-64, aarch64, armv7"
	@echo "make check        formatting, lint, types, imports: no tests"
	@echo "make bench        Steelyard measured by itself and beside latte and cassandra-stress, see BENCHMARKS.md"
	@echo "make docs         the documentation as a site, in build/site"
	@echo "make wheels       both packages into dist/, for machines without Rust or a checkout"

# The environment is made anew when the lock changes; the stamp is written last.
$(VENV)/.locked: requirements.lock
	@tools/need $(PYTHON) cargo
	@$(FOLD) "making an environment of Python" -- $(PYTHON) -m venv $(VENV)
	@$(FOLD) "installing Python packages" -- $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.installed: $(VENV)/.locked pyproject.toml
	@$(FOLD) "installing Steelyard" -- $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

AGENT := $(or $(CARGO_TARGET_DIR),target)/release/steelyard-agent

# Without the environment, so that it is compiled while that is made.
$(AGENT): $(RUST)
	@tools/need cargo
	@$(FOLD) "compiling the agent" -- $(CARGO) build --release --locked --package steelyard-agent
	@touch $@

$(BIN)/steelyard-agent: $(VENV)/.locked $(AGENT)
	@install -m 755 $(AGENT) $@

install: $(VENV)/.installed $(BIN)/steelyard-agent
	$(REACH)

setup: $(VENV)/.installed $(BIN)/steelyard-agent
	$(BIN)/steelyard setup cassandra
	$(REACH)

agents: $(VENV)/.installed
	$(BIN)/python -m tools.agents --into $(BIN) $(AGENTS)

quickstart: setup
	$(BIN)/steelyard run studies/quickstart.toml --store $(STORE)
	$(BIN)/steelyard report $(STORE)/quickstart

check: check-python check-rust

check-python: $(VENV)/.installed
	$(BIN)/ruff format --check src tests benchmarks tools studies
	$(BIN)/ruff check src tests benchmarks tools studies
	$(BIN)/mypy
	$(BIN)/lint-imports

# After the agent, whose build takes both cores.
check-rust: $(AGENT)
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

test-rust: check-rust
	$(CARGO) test --locked --workspace --quiet

# What pytest's processes would each compile at the same time; meanwhile tests of Rust wait.
compiled-tests: setup $(VENV)/.locked-docs
	$(BIN)/pytest --collect-only > /dev/null

# Four at a time on two cores, because tests of real nodes wait half of their time; the longest files come first. What
# judges times runs at the end, when nothing else needs the processor: four at a time, each of which mostly waits.
test:
	$(MAKE) --jobs=2 setup check test-rust $(VENV)/.locked-docs compiled-tests
	$(BIN)/pytest --durations=12 --numprocesses 4 --dist loadfile --no-loadscope-reorder -m 'not quiet and not docker and not vm and not arm and not by_hand'
	$(BIN)/pytest --durations=12 --numprocesses 4 --dist load --maxschedchunk 1 -m quiet tests/e2e

# Containers and agents of other processors two at a time; then machines one at a time, which may be emulated and then take all
# processors, so that a container's server would not be ready in time.
test-elsewhere: setup
	$(BIN)/pytest --durations=12 --numprocesses 2 --dist loadfile --no-loadscope-reorder -m '(docker or arm) and not by_hand' tests/contract tests/e2e
	$(BIN)/pytest --durations=12 --numprocesses 1 -m 'vm and not by_hand' tests/contract tests/e2e

bench: setup
	$(BIN)/steelyard setup cassandra-stress
	$(BIN)/steelyard setup latte
	$(BIN)/python benchmarks/instrument.py
	$(BIN)/python benchmarks/side_by_side.py
	$(BIN)/python benchmarks/protocols.py
	$(BIN)/steelyard setup spark-hdfs
	$(BIN)/python benchmarks/jobs.py
	$(BIN)/python benchmarks/large_stores.py
	$(BIN)/python benchmarks/limits.py

# After the environment's own packages, because two installations at a time may collide.
$(VENV)/.locked-docs: $(VENV)/.installed requirements-docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $@

docs: $(VENV)/.locked-docs
	$(BIN)/python -m tools.docs.site

wheels: $(VENV)/.locked
	$(BIN)/python -m build --no-isolation --wheel --outdir dist .
	cd crates/steelyard-agent && ../../$(BIN)/maturin build --release --locked --out ../../dist

lock:
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links \
	  --extra test --extra build --extra java --output-file requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links \
	  --output-file requirements-docs.lock requirements-docs.in

clean:
	rm -rf build dist target $(VENV)
