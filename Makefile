# Two commands: `make run` serves the dashboard, `make test` runs every test that a fresh machine can run.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup run test lock

setup: .venv/run.stamp
