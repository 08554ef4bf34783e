# Three commands matter: `make run` serves the dashboard, `make test` runs the tests, `make check` runs the linters.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command "make lock"
# What a deployment would set; `check --deploy` judges that, not a laptop.
DEPLOYED := ESTATE_DATA='$(CURDIR)/var/check' DATABASE_URL=postgresql://estate@localhost/estate REDIS_URL=redis://localhost/0 \
	SECRET_KEY=not-a-secret-only-long-enough-for-the-checks-0123456789 ALLOWED_HOSTS=estate.example.org

.PHONY: setup run test drill check lock
.DELETE_ON_ERROR:

setup: .venv/run.stamp

run: setup
	@exec $(BIN)/python manage.py up $(ARGS)

# The services of the tests live in a folder of their own and are stopped however the tests end.
test: .venv/dev.stamp
	@export ESTATE_DATA='$(CURDIR)/var/test'; \
	trap '$(BIN)/python manage.py down' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; trap 'exit 129' HUP; \
	$(BIN)/python -m pytest $(ARGS)

# Twenty blows to a worker in the middle of a backfill; the tests deal three.
drill: .venv/dev.stamp
	DRILL_KILLS=20 ESTATE_DATA='$(CURDIR)/var/test' $(BIN)/python -m pytest tests/db/test_drill_backfill.py $(ARGS)

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	ESTATE_DATA='$(CURDIR)/var/check' $(BIN)/mypy .
	$(BIN)/lint-imports --no-cache
	$(DEPLOYED) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(DEPLOYED) $(BIN)/python manage.py check --deploy --fail-level WARNING

lock:
	$(COMPILE) requirements/run.in --output-file requirements/run.lock
	$(COMPILE) requirements/dev.in --output-file requirements/dev.lock

.venv/made.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3' >&2; exit 1; }
	@echo "Making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear .venv \
		|| { echo 'The module venv is incomplete; on Debian or Ubuntu: apt install python3-venv' >&2; exit 1; }
	@touch $@

.venv/run.stamp: .venv/made.stamp requirements/run.lock
	@echo 'Installing what the product needs (requirements/run.lock)'
	@$(PIP) --requirement requirements/run.lock
	@touch $@

.venv/dev.stamp: .venv/run.stamp requirements/dev.lock
	@echo 'Installing what tests and checks need (requirements/dev.lock)'
	@$(PIP) --requirement requirements/dev.lock
	@touch $@
