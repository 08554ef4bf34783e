#!/usr/bin/env python
"""Command line of GPU Estate; `python manage.py help` lists the commands."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "estate.config.settings")
    try:
        import django
        from django.core.management import execute_from_command_line
        from django.db import OperationalError

        from estate import engines
        from estate.env import ConfigurationError
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] in {"estate", "accounting", "collectors"}:
            raise
        sys.exit(f"Error: the package {exc.name} is missing; run `make setup`, then .venv/bin/python manage.py …")
    try:
        if engines.wanted_by(sys.argv):
            engines.ensure()
        if engines.schema_wanted_by(sys.argv):
            django.setup()
            from estate.services import first_start

            first_start.ensure_schema()
        execute_from_command_line(sys.argv)
    except (ConfigurationError, engines.EngineError) as exc:
        sys.exit(f"Error: {exc}")
    except OperationalError as exc:
        if getattr(exc.__cause__, "sqlstate", None) is not None:
            raise
        sys.exit(f"Error: the database cannot be reached: {str(exc).splitlines()[-1]}; see `manage.py doctor`")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
