"""`manage.py doctor`: check the installation."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from estate.services.doctor import Finding, examine

SIGNS = {"ok": "ok     ", "warning": "warning", "bad": "BAD    "}


class Command(BaseCommand):
    help = "Check configuration, services, migrations and sources, and say how to mend each finding. Exits 1 if anything is bad."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        worst = [self._show(finding) for finding in examine()]
        if "bad" in worst:
            raise SystemExit(1)

    def _show(self, finding: Finding) -> str:
        self.stdout.write(f"{SIGNS[finding.level]} {finding.text}")
        if finding.mend:
            self.stdout.write(f"        → {finding.mend}")
        return finding.level
