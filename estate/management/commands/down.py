"""`manage.py down`: stop what runs from the data folder."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from estate import engines
from estate.services.running import stop_running


class Command(BaseCommand):
    help = "Stop a running `up` and the embedded services of ESTATE_DATA. Servers of DATABASE_URL and REDIS_URL are not touched."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        stopped = ["web, worker, scheduler"] if stop_running(settings.DATA_DIR) else []
        stopped += engines.stop()
        self.stderr.write(f"Stopped: {', '.join(stopped)}" if stopped else f"Nothing runs from {settings.DATA_DIR}")
