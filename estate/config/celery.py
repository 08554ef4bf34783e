"""The Celery application. The queue is a doorbell: what is due is decided by rows in PostgreSQL."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_process_init

from estate.services import tether

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "estate.config.settings")

app = Celery("estate")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def end_with_the_worker(**_: Any) -> None:
    """A pool process must not go on when its worker was killed."""
    tether.end_with(os.getppid())
