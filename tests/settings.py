"""Settings of the test runs: plain HTTP, cheap passwords, unhashed static files."""

import os

os.environ.setdefault("INSECURE_HTTP", "true")

from estate.config.settings import *  # noqa: F403
from estate.config.settings import STATIC_ROOT

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
REPORT_MEMORY_SECONDS = 0
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns where it is absent, and warnings are errors here
