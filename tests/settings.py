"""Settings of the test runs: plain HTTP, cheap passwords, unhashed static files."""

import os

os.environ.setdefault("INSECURE_HTTP", "true")

from estate.config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
REPORT_MEMORY_SECONDS = 0
