# On a fresh machine with Python 3.11 or newer and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: demo test test-fast lint bench soak screenshots dashboard-vendor clean

demo: $(INSTALLED)
	$(BIN)/headrace demo --for 60s

# Everything real: Spark, Kafka, processes killed with SIGKILL, files, in memory where there is room for
# them (tests/in_memory.py). Four at a time, of which two run Spark and two wait much: tests/sharing.py
# says who runs what.
test: $(INSTALLED)
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder --durations 15

# No Spark, no processes, no store; some two minutes.
test-fast: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 -m "not spark and not slow"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy headrace

bench: $(INSTALLED)
	$(BIN)/python bench/log.py
	$(BIN)/python bench/kafka_turns.py
	$(BIN)/python bench/shared_reading.py
	$(BIN)/python bench/decode.py
	$(BIN)/python bench/freshness.py
	$(BIN)/python bench/views.py
	$(BIN)/python bench/sinks.py
	$(BIN)/python bench/idle.py
	$(BIN)/python bench/ingest.py
	$(BIN)/python bench/start.py
	$(BIN)/python bench/replay.py
	$(BIN)/python bench/dedup.py
	$(BIN)/python bench/windows.py
	$(BIN)/python bench/serving.py --knee

# Every page of the dashboard, light and dark, wide and narrow, into build/screenshots.
screenshots: $(INSTALLED)
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python tests/browser/screenshots.py

# The random cases of `make test` many times over, drawn anew: logs, cuts, kills. Some hours;
# `make soak TIMES=100` takes longer. HEADRACE_SEED=... draws the same cases again.
TIMES ?= 20
soak: $(INSTALLED)
	HEADRACE_TIMES=$(TIMES) $(BIN)/python -m pytest -v -m soak

# The libraries of the dashboard, bundled anew (needs npm): only after an edit of bundling/package.json.
DASHBOARD := headrace/serve/dashboard
dashboard-vendor:
	mkdir -p build/dashboard
	cp $(DASHBOARD)/bundling/package.json $(DASHBOARD)/bundling/codemirror.js build/dashboard
	cd build/dashboard && npm install --no-package-lock --no-audit --no-fund
	node $(DASHBOARD)/bundling/bundle.mjs build/dashboard $(DASHBOARD)/assets/vendor

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[test,lint]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
