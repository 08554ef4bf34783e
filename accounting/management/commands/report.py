"""`report NAME --from D --to D`: the figures of the API on a terminal or in a file."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounting.domain.answers import answer
from accounting.domain.metrics import REPORTS
from accounting.domain.reports import Report, ReportError, ReportRequest
from accounting.exports import csv, table, xlsx
from accounting.exports.responses import FORMATS
from accounting.queries import reports
from accounting.requests import SCOPE_PARAMETERS, RequestError, report_request

# Parameter of the API → how the command spells it.
OPTIONS = {"gpu_model": "--gpu-model", "report": "NAME"}


class Command(BaseCommand):
    """Exits 0 (done), 1 (cannot be answered: a name that the estate does not know, say) or 2 (bad usage)."""

    help = "Print a report: " + ", ".join(REPORTS) + ". Dates are reporting days; --to is the first day that is not included."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("report", metavar="NAME", help=f"one of {', '.join(REPORTS)}")
        parser.add_argument("--from", metavar="DATE", required=True, help="first day, such as 2026-11-01")
        parser.add_argument("--to", metavar="DATE", required=True, help="first day that is not included, such as 2026-12-01")
        parser.add_argument(
            "--by", metavar="DIM", action="append", help="a dimension of the rows; repeat it, or separate by commas"
        )
        for name in SCOPE_PARAMETERS:
            option = f"--{name.replace('_', '-')}"
            parser.add_argument(
                option, metavar="NAME", action="append", help=f"only this {name.replace('_', ' ')}; may be repeated"
            )
        parser.add_argument("--zone", help=f"IANA zone that cuts the days (default: {settings.ESTATE_ZONE})")
        parser.add_argument("--format", choices=FORMATS, help="default: a table on a terminal, else json")
        parser.add_argument("--output", metavar="FILE", type=Path, help="write to this file instead of stdout")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - the framework's signature
        output = options["format"] or self._default_format(options["output"])
        if output == "xlsx" and options["output"] is None and self.stdout.isatty():
            raise CommandError("a workbook is no text for a terminal; add --output FILE or redirect stdout", returncode=2)
        try:
            self._write(reports.run(_request(options)), output, options["output"])
        except ReportError as exc:
            raise CommandError(_message(exc), returncode=_exit_code(exc)) from exc
        except BrokenPipeError:
            # Whoever read has seen enough; what is left in the buffer has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as exc:
            raise CommandError(f"cannot write the report: {exc}") from exc

    def _default_format(self, file: Path | None) -> str:
        if file is not None and file.suffix[1:] in FORMATS:
            return file.suffix[1:]
        return "table" if file is None and self.stdout.isatty() else "json"

    def _write(self, report: Report, output: str, file: Path | None) -> None:
        if output == "xlsx":
            self._write_workbook(report, file)
        elif file is not None:
            with file.open("w", encoding="utf-8", newline="") as opened:
                opened.writelines(_text(report, output))
        else:
            for chunk in _text(report, output):
                self.stdout.write(chunk, ending="")
            self.stdout.flush()

    def _write_workbook(self, report: Report, file: Path | None) -> None:
        if file is not None:
            with file.open("wb") as opened:
                xlsx.write(report, settings.ESTATE_CURRENCY, opened)
            return
        stdout = cast("BinaryIO", self.stdout.buffer)
        stdout.write(xlsx.as_bytes(report, settings.ESTATE_CURRENCY))
        stdout.flush()


def _request(options: dict[str, Any]) -> ReportRequest:
    """The request in the words of the API, from someone who sees the whole estate: who runs commands owns the database."""
    texts = {name: [options[name]] for name in ("from", "to", "zone") if options[name] is not None}
    lists = {name: options[name] or [] for name in ("by", *SCOPE_PARAMETERS)}
    zone = ZoneInfo(settings.ESTATE_ZONE)
    return report_request(options["report"], texts | lists, visible_projects=None, reporting_zone=zone)


def _text(report: Report, output: str) -> Iterable[str]:
    if output == "csv":
        return csv.chunks(report, settings.ESTATE_CURRENCY)
    if output == "table":
        return (f"{line}\n" for line in table.lines(report, settings.ESTATE_CURRENCY))
    return [json.dumps(answer(report, settings.ESTATE_CURRENCY), ensure_ascii=False, indent=2), "\n"]


def _message(exc: ReportError) -> str:
    if not isinstance(exc, RequestError):
        return str(exc)
    return "; ".join(
        f"{OPTIONS.get(name, f'--{name}')}: {message}" for name, messages in exc.errors.items() for message in messages
    )


def _exit_code(exc: ReportError) -> int:
    return 2 if isinstance(exc, RequestError) and not exc.unknown_names else 1
