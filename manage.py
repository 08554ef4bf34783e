#!/usr/bin/env python
"""Command line of GPU Estate; `python manage.py help` lists the commands."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "estate.config.settings")
    from django.core.management import execute_from_command_line

    from estate.config import engines

    if engines.wanted_by(sys.argv):
        engines.ensure()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
