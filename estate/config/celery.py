"""The Celery application. The queue is a doorbell: what is due is decided by rows in PostgreSQL."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "estate.config.settings")

app = Celery("estate")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
