# Everything a developer or CI runs. Each target sets up what it needs: a bare Python 3.11 or newer is enough.
# PYTHON=/path/to/python3.12 picks the interpreter; without it the newest tested one on the path is taken.

.DEFAULT_GOAL := help
.PHONY: help setup demo test-fast test test-kafka test-long check check-native fmt bench bench-spark bench-care bench-broker fuzz fuzz-native equality simulate judge native plugin dist audit docs constraints clean
MAKEFLAGS += --no-print-directory

export PYTHON
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n auto
GENERATED := docs/cli.md docs/configuration.md docs/errors.md docs/findings.md docs/http.md docs/kafka-semantics.md docs/metrics.md docs/operating.md docs/performance.md docs/security.md docs/wire-protocol.md
# The order of CI's tests: one for all changes, so that each is judged by what it changes. Others draw theirs.
ORDER ?= 1
COUNT ?= 1000000
SEED ?= 1
OF ?= all
SEEDS ?= 1000
FROM ?= 0
OPERATIONS ?= 1000000
KILLS ?= 1000
UPGRADE ?=
# The engine of the tests: python or native; without it the one that `auto` takes.
ENGINE ?=
export RLMM_ENGINE := $(ENGINE)
ifeq ($(ENGINE),)
unexport RLMM_ENGINE
endif
# What is asked of a shard of either engine, and of all that is built on it.
EITHER := tests/unit/metadata tests/unit/engine tests/unit/pump tests/unit/gate tests/unit/snapshot tests/property \
	tests/conformance/test_kafka_corpus.py tests/conformance/test_named_rules.py

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv from constraints/dev.txt, or leave it when it is up to date; build native/ where cargo is
	@sh tools/setup.sh python

demo: setup ## the main job, on a fresh machine, in nine screens: a broker, copies by Spark, cold reads, kill, rebuild; leaves demo/report.html
	@$(BIN)/rlmm demo --cache .cache/demo

test-fast: setup ## while working: the quick tests of the service, within a minute; or name folders to pytest
	$(PYTEST) --hypothesis-profile=fast -m "not slow and not long and not network and not kafka" \
		--ignore=tests/unit/bench --ignore=tests/unit/spark_tiering --ignore=tests/unit/support \
		--ignore=tests/unit/rlmm_demo tests/unit

test: setup ## what CI runs: every test in its short form, and every capability shown; all of it with ENGINE=python or native
	$(PYTEST) --randomly-seed=$(ORDER) --hypothesis-profile=ci -m "not long" --capabilities=docs/capabilities.md tests
	$(if $(ENGINE),,RLMM_ENGINE=python $(PYTEST) --randomly-seed=$(ORDER) --hypothesis-profile=fast -m "not long" $(EITHER))

test-kafka: setup ## everything with a real Kafka broker, in its long forms; needs Maven and a JDK, 17 or newer
	$(PYTEST) --hypothesis-profile=ci -m kafka tests

test-long: setup ## the long forms as well, on the native core and on the pure-Python engine
	RLMM_ENGINE=native $(PYTEST) --hypothesis-profile=long --capabilities=docs/capabilities.md tests
	RLMM_ENGINE=python $(PYTEST) --hypothesis-profile=long --capabilities=docs/capabilities.md tests

check: setup ## lint, format, types, import rules, spelling, generated documents; the native core where cargo is
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell
	$(BIN)/python -m cogapp --check $(GENERATED)
	$(BIN)/python -m pytest -q -m "not long" tests/repository
	@if command -v cargo >/dev/null; then $(MAKE) check-native; else echo "rlmm: no cargo here: native/ is not checked"; fi

check-native: ## lint, format and tests of the native core; needs cargo
	cd native && cargo fmt --check
	cd native && cargo clippy --quiet --all-targets -- -D warnings
	cd native && cargo test --quiet --profile fuzz --no-default-features

fmt: setup ## format, and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@if command -v cargo >/dev/null; then cd native && cargo fmt; fi

bench: setup ## the benchmarks, with the figures they are asked for
	@$(BIN)/python -m bench core partition-log kafka-log snapshot engine sidecar

bench-spark: setup ## copies by Spark beside plain boto3, with the figures they are asked for
	@$(BIN)/python -m bench spark

bench-care: setup ## reading, auditing and rebuilding a tier, with the figures they are asked for
	@$(BIN)/python -m bench decoding data-source audit rebuild

bench-broker: setup ## a broker on rlmm beside one with Kafka's own metadata manager; needs Maven and a JDK, 17 or newer
	@$(BIN)/python -m bench broker

bench-native: setup native ## the native core beside the Python engine and Kafka's own classes, recorded for docs/performance.md; best with Maven and a JDK
	@$(BIN)/python -m bench native --output bench/results/native.json
	$(BIN)/python -m cogapp -r docs/performance.md

fuzz: setup ## feed COUNT (1000000) mutated records, record sets and images to the readers; OF=both: only to both engines
	@$(BIN)/python -m tests.support.fuzzing.fuzz --count $(COUNT) --seed $(SEED) --of $(OF)

fuzz-native: ## the same for the native core alone, with overflows checked, and under the address sanitizer; needs cargo
	@sh tools/fuzz_native.sh $(COUNT) $(SEED)

equality: setup ## feed both engines the same 10 million events: 50,000 of each of SEEDS (200) from FROM (0)
	@$(BIN)/python -m tests.support.engine.equality --from $(FROM) --seeds $(if $(filter file,$(origin SEEDS)),200,$(SEEDS))

simulate: setup ## run SEEDS (1000) seeds from FROM (0) of engines, log, network, disk and clock, every invariant checked
	@$(BIN)/python -m tests.simulation --from $(FROM) --seeds $(SEEDS)

judge: setup ## OPERATIONS (1000000) calls of clients of `rlmm serve`, which is killed KILLS (1000) times; every answer judged
	@$(BIN)/python -m tests.support.judge --operations $(OPERATIONS) --kills $(KILLS)

native: setup ## build the native core of the shard into .venv; needs cargo (Rust 1.85 or newer)
	@sh tools/native.sh

plugin: ## build the broker's plugins into broker_adapter/java/build; needs Maven and a JDK, 17 or newer
	mvn -B -q -f broker_adapter/java/pom.xml package

dist: setup ## build the wheels and the sdists of rlmm and, with cargo, of rlmm-native into dist/
	$(BIN)/python -m build --no-isolation --outdir dist
	@if command -v cargo >/dev/null; then $(BIN)/python -m build --no-isolation --outdir dist native; \
	else echo "rlmm: needs cargo for rlmm-native, which is left out"; fi

audit: setup ## look up known vulnerabilities of the pinned runtime, and write dist/sbom.json; needs the network
	@mkdir -p dist
	$(BIN)/python -m pip_audit --strict --disable-pip --require-hashes --requirement constraints/runtime.txt
	$(BIN)/python -m pip_audit --strict --disable-pip --require-hashes --requirement constraints/runtime.txt --format cyclonedx-json --output dist/sbom.json

docs: setup ## rewrite the generated documents
	$(BIN)/python -m cogapp -r $(GENERATED)

constraints: setup ## rewrite constraints/; UPGRADE=--upgrade also takes newer versions
	$(BIN)/python -m tools.constraints $(UPGRADE)

clean: ## remove everything that is built or installed
	rm -rf .venv build dist *.egg-info native/build native/target native/*.egg-info native/Cargo.lock .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
