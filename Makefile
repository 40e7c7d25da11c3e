# Everything a fresh machine with Rust and Python needs: `make demo` and `make test`.
CARGO ?= cargo
NEXTEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes)
DENY := $(shell $(CARGO) deny --version >/dev/null 2>&1 && echo yes)
VENV := .venv
BUILT := $(or $(CARGO_TARGET_DIR),target)

.PHONY: demo test deny fuzz binaries test-examples test-pages test-python python check doc bench figures figures-quick zoo screenshots clean

# From nothing to a policy, then step by step from logs to predictions: the main job.
demo:
	$(CARGO) build --release
	mkdir -p target/demo
	target/release/foretell agent colored-gridworld -o target/demo/policy.safetensors --plot target/demo/returns.png
	target/release/foretell sample colored-gridworld --episodes 10000 --seed 1 -o target/demo/walks.csv
	target/release/foretell sample colored-gridworld --episodes 10000 --seed 2 -o target/demo/heldout.csv
	target/release/foretell inspect target/demo/walks.csv
	target/release/foretell learn target/demo/walks.csv -o target/demo/model.safetensors
	target/release/foretell score target/demo/model.safetensors target/demo/heldout.csv --truth colored-gridworld --plot target/demo/likelihood.png
	target/release/foretell predict target/demo/model.safetensors --history "N:....,E:...." --actions "E,E" --top 4
	target/release/foretell report target/demo/model.safetensors --logs target/demo/heldout.csv --truth colored-gridworld -o target/demo/report.html

# The figures of the paper, and what goes beyond it.
FIGURES := model-quality history-compression sparsity planning-quality
TABLES := incremental-drift refinement-quality refinement-domains weighting search-quality off-policy

# All tests: what .ci/run runs. Lints and documentation are checked by what compiles the tests and runs
# the examples of the documentation, so that dependencies are compiled once.
LINTED = CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/.ci/rustc RUSTDOC=$(CURDIR)/.ci/rustdoc $(CARGO)
test: binaries deny
	$(CARGO) fmt --all --check
ifeq ($(NEXTEST),yes)
	$(LINTED) nextest run --workspace --all-features --no-fail-fast
else
	$(LINTED) test --workspace --all-features --lib --bins --tests
endif
	$(LINTED) test --workspace --all-features --doc
	$(MAKE) test-examples figures-quick test-pages test-python

# Licences, sources and duplicates of the dependencies, as deny.toml says; advisories need the network.
deny:
ifeq ($(DENY),yes)
	$(CARGO) fetch --quiet --locked # what other systems need too
	$(CARGO) deny --offline --log-level error check licenses bans sources
else
	@echo "cargo-deny is not installed, so licences and sources of dependencies are not checked"
endif

# Every fuzz target for so many seconds, one after the other (fuzz/README.md). New inputs are in target/fuzz.
FUZZED := csv json-lines parquet gzip pomdp maze config schema model moments policy checkpoint
SECONDS ?= 60
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
COVERED := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
fuzz:
	RUSTFLAGS="$(COVERED)" CARGO_TARGET_DIR=target/fuzz $(CARGO) build --release --manifest-path fuzz/Cargo.toml --target $(HOST)
	for name in $(FUZZED); do \
	    mkdir -p target/fuzz/found/$$name target/fuzz/failed/$$name; \
	    FORETELL_INPUTS=$$name target/fuzz/$(HOST)/release/foretell-fuzz -max_total_time=$(SECONDS) -max_len=131072 -timeout=60 \
	        -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix=target/fuzz/failed/$$name/ \
	        target/fuzz/found/$$name fuzz/corpus/$$name || exit 1; done

# Everything that is tested or run by tests.
binaries:
	$(LINTED) build --workspace --all-features --all-targets

# The library's examples run to their end.
EXAMPLES := $(basename $(notdir $(wildcard crates/foretell/examples/*.rs)))
test-examples: binaries
	for name in $(EXAMPLES); do $(BUILT)/debug/examples/$$name > /dev/null || exit 1; done

# Pages of `foretell report` in Chromium, light and dark, wide and narrow. Where there is none, it is installed or the test skipped.
PAGES := crates/foretell-cli/tests/pages
test-pages: binaries
	python3 $(PAGES)/check.py --binary $(BUILT)/debug/foretell

# The Python package: the wheel of this machine in target/wheels, installed in target/python.
PYTHON := $(CURDIR)/target/python
PACKAGE := crates/foretell-python
WHEEL = $(PYTHON)/bin/maturin build --quiet --manifest-path $(PACKAGE)/Cargo.toml --interpreter $(PYTHON)/bin/python
python: $(PYTHON)/installed
	rm -rf target/wheels
	$(WHEEL) --release --out target/wheels
	$(PYTHON)/bin/pip install --quiet --force-reinstall --no-deps target/wheels/*.whl
	@echo "installed: $(PYTHON)/bin/python -c 'import foretell'"

# The package in its virtual environment: types, tests, examples of the documentation. The native part
# is that of the workspace's build: a wheel of its own would compile most dependencies again.
SITE = $(shell $(PYTHON)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")
test-python: $(PYTHON)/installed binaries
	rm -rf $(SITE)/foretell
	cp -r $(PACKAGE)/python/foretell $(SITE)/foretell
	cp $$(ls $(BUILT)/debug/lib_native.so $(BUILT)/debug/lib_native.dylib 2>/dev/null) $(SITE)/foretell/_native.abi3.so
	$(PYTHON)/bin/maturin sdist --manifest-path $(PACKAGE)/Cargo.toml --out target/sdist > /dev/null
	cd $(PACKAGE) && $(PYTHON)/bin/mypy python/foretell && $(PYTHON)/bin/mypy --strict tests/whole_api.py
	cd $(PACKAGE) && FORETELL_BINARY=$(abspath $(BUILT)/debug/foretell) $(PYTHON)/bin/python -m pytest --quiet -n 2 tests
	cd $(PACKAGE) && $(PYTHON)/bin/python -m pytest --quiet -p conftest --doctest-modules --pyargs foretell

$(PYTHON)/installed: $(PACKAGE)/requirements-test.txt
	python3 -m venv $(PYTHON)
	$(PYTHON)/bin/pip install --quiet --requirement $<
	touch $@

# Lints alone.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	$(CARGO) clippy -p foretell --lib -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps

doc:
	$(CARGO) doc --workspace --all-features --no-deps --open

# Speed, side by side with NumPy and scikit-learn; ratios are what counts on a shared machine.
bench: $(VENV)/installed
	$(CARGO) build --release -p foretell-cli -p foretell-experiments --bin foretell --bin benchmark-forest --bin benchmark-states
	$(CARGO) bench -p foretell --bench learning
	$(CARGO) bench -p foretell --bench gemm
	$(CARGO) bench -p foretell --bench domains
	$(VENV)/bin/python benchmarks/run.py --binary $(BUILT)/release/foretell
	$(VENV)/bin/python benchmarks/trees.py --binary $(BUILT)/release/benchmark-forest
	$(VENV)/bin/python benchmarks/planning.py --binary $(BUILT)/release/foretell --states $(BUILT)/release/benchmark-states

$(VENV)/installed: benchmarks/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --requirement benchmarks/requirements.txt
	touch $@

# The committed figures and tables of results/, made anew: about three hours on two cores. Stopped, it goes on from where it was.
figures:
	$(CARGO) build --release -p foretell-experiments
	mkdir -p target/figures
	for name in $(FIGURES) $(TABLES); do \
	    $(BUILT)/release/$$name results --checkpoint target/figures/$$name || exit 1; done

# The defaults of `learn` and `plan`, and the agent, on many systems: hours on two cores; FILES are further .POMDP files.
zoo:
	$(CARGO) build --release -p foretell-experiments --bin zoo --bin planning-zoo
	mkdir -p target/figures
	$(BUILT)/release/zoo results $(FILES) --checkpoint target/figures/zoo
	$(BUILT)/release/planning-zoo results $(FILES) --checkpoint target/figures/planning-zoo

# The same from a small part of the data, and of the domains, to see that it all works.
figures-quick: binaries
	for name in $(filter-out planning-quality,$(FIGURES)); do $(BUILT)/debug/$$name target/figures-quick --quick > /dev/null || exit 1; done
	$(BUILT)/debug/planning-quality target/figures-quick colored-gridworld --quick > /dev/null

# The pictures of report pages in docs/, made anew.
screenshots:
	$(CARGO) build --release
	python3 $(PAGES)/screenshots.py --binary $(BUILT)/release/foretell --into docs

clean:
	$(CARGO) clean
	rm -rf $(VENV)
