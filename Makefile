# One command for a person, the same commands for the gate. `make help` lists them.
# Set-up (Python, environment, packages, simulators) is scripts/setup.sh; it does
# nothing where its stamps are up to date.

PY      := .venv/bin/python
ROOTS   := oscc netlists backends sims
WORKERS ?= 2
FAST    := not slow and not gpu and not cluster
PYTEST  := $(PY) -m pytest -q -n $(WORKERS) --dist loadfile --timeout 600 --simulators required --browser if_available

export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help demo install test test-all lint types tests doctest docs format check \
        check-fast bench bench-models wheel readme reference lock clean distclean env-demo env-dev env-tests

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: env-demo ## compile, simulate, verify, account and report the shipped model
	@$(PY) scripts/demo.py

install: env-demo ## make .venv with the locked packages, and nothing else

test: env-tests lint types docs doctest tests ## the gate: lint, types, docs, fast tests

test-all: env-tests lint types docs doctest wheel ## as test, with the slow tests and the wheel
	$(PYTEST) -m "not gpu and not cluster" tests

lint: env-dev ## ruff: rules and format
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: env-dev ## mypy, strict
	@$(PY) -m mypy

tests: env-tests ## the fast tests, simulators required
	@$(PYTEST) -m "$(FAST)" tests

doctest: env-dev ## every example in a docstring
	@$(PY) -m pytest -q --doctest-modules $(ROOTS)

docs: env-dev ## the documentation, into build/site; a broken link fails
	@$(PY) -m mkdocs build --strict --quiet --site-dir build/site

format: env-dev ## rewrite the sources in the one format
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format .

check: test wheel ## run before every push

check-fast: env-dev lint types ## seconds: lint, types, arrows, budget, public names
	@$(PY) -m pytest -q tests/test_arrows.py tests/test_budget.py tests/test_public.py

bench: env-dev ## every script of benchmarks/, results into build/bench
	@for script in benchmarks/*.py; do echo "$$script"; $(PY) "$$script" || exit $$?; done

bench-models: env-dev ## train every family alike, three seeds (hours); resumable
	@$(PY) benchmarks/models_study.py --run --jobs $(WORKERS)
	@$(PY) scripts/study_page.py

wheel: env-dev ## build the wheel and run the tests against it, outside this tree
	@$(PY) scripts/wheel.py

readme: env-demo ## paste the figures of build/demo into README.md
	@$(PY) scripts/readme.py

reference: env-dev ## rewrite the pages made from the command line
	@$(PY) scripts/reference.py

lock: env-dev ## rewrite requirements/*.txt from pyproject.toml
	@$(PY) scripts/lock.py

clean: ## remove what was built; the environment stays
	rm -rf build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(ROOTS) tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the environment too
	rm -rf .venv *.egg-info

env-demo:
	@OSCC_GOAL=demo scripts/setup.sh demo optional

env-dev:
	@OSCC_GOAL=test scripts/setup.sh dev none

env-tests:
	@OSCC_GOAL=test scripts/setup.sh dev required
