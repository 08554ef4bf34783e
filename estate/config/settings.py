"""Django settings. Everything a site may change comes from the environment through `env`; see the README."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import plotly
from csp.constants import NONCE, NONE, SELF

from estate import engines, env

BASE_DIR = env.ROOT
DATA_DIR = env.data_dir()
DEBUG = env.flag("DEBUG")


def _secret_key() -> str:
    """`SECRET_KEY`, or one made once and kept in the data folder (an embedded, single-host installation)."""
    given = env.text("SECRET_KEY")
    if given and len(given) < 32:
        raise env.ConfigurationError("SECRET_KEY: write at least 32 random characters")
    return given or engines.local_secret()


def _url(name: str, schemes: set[str], example: str) -> SplitResult:
    """A setting that is a URL. The message never shows its value: it may hold a password."""
    try:
        parts = urlsplit(env.text(name))
        valid = parts.scheme in schemes and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise env.ConfigurationError(f"{name}: write {example}")
    return parts


def _broker() -> str:
    if not env.text("REDIS_URL"):
        return f"redis+socket://{quote(str(engines.broker_socket()))}"
    _url("REDIS_URL", {"redis", "rediss", "redis+socket"}, "redis://host:6379/0 (or rediss://, redis+socket:///path)")
    return env.text("REDIS_URL")


def _currency(code: str) -> str:
    if len(code) != 3 or not code.isascii() or not code.isalpha() or not code.isupper():
        raise env.ConfigurationError(f"ESTATE_CURRENCY={code}: write an ISO 4217 code such as EUR")
    return code


def _origins(names: list[str]) -> list[str]:
    for name in names:
        if not name.startswith(("https://", "http://")):
            raise env.ConfigurationError(f"CSRF_TRUSTED_ORIGINS={name}: write https://{name}")
    return names


def _database() -> dict[str, Any]:
    url = env.text("DATABASE_URL")
    common: dict[str, Any] = {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    if not url:
        return common | {"NAME": "estate", "USER": "estate", "HOST": str(engines.socket_dir()), "PORT": "5432"}
    parts = _url("DATABASE_URL", {"postgres", "postgresql"}, "postgresql://user:password@host:5432/name (PostgreSQL only)")
    if not parts.path.strip("/"):
        raise env.ConfigurationError("DATABASE_URL: the name of the database is missing at its end")
    return common | {
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as exc:
        raise env.ConfigurationError(f"ESTATE_ZONE={name}: write an IANA zone such as Europe/Berlin") from exc
    return name


SECRET_KEY = _secret_key()
# Loopback is always allowed: health checks inside a container ask there.
ALLOWED_HOSTS = [*env.words("ALLOWED_HOSTS"), "localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = _origins(env.words("CSRF_TRUSTED_ORIGINS"))

ESTATE_ZONE = _zone(env.text("ESTATE_ZONE", "UTC"))
ESTATE_CURRENCY = _currency(env.text("ESTATE_CURRENCY", "EUR"))
ESTATE_NAME = env.text("ESTATE_NAME", "GPU Estate")
REPORT_MEMORY_SECONDS = 60

INSTALLED_APPS = [
    "collectors",
    "accounting",
    "estate",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "csp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "estate.config.urls"
WSGI_APPLICATION = "estate.config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
        },
    }
]

DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "estate.User"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "sign-in"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATIC_ROOT = Path(env.text("STATIC_ROOT") or DATA_DIR / "static")
STATICFILES_DIRS: list[Any] = [BASE_DIR / "static", ("plotly", plotly.__path__[0] + "/package_data")]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_MAX_AGE = 3600

# The queue is a doorbell: JSON messages of an id or nothing, no results, and a lost one only waits for the next.
CELERY_BROKER_URL = _broker()
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
# What is due now goes before reading the past (see collectors.tasks).
CELERY_BROKER_TRANSPORT_OPTIONS = {"priority_steps": [0, 5, 9], "queue_order_strategy": "priority"}
CELERY_TASK_DEFAULT_PRIORITY = 5
CELERY_BEAT_SCHEDULE = {
    "collect what is due": {"task": "collectors.tasks.collect_due", "schedule": 15.0, "options": {"expires": 15}},
    "rebuild dirty days": {"task": "accounting.tasks.rebuild_rollups", "schedule": 60.0, "options": {"expires": 60}},
}
# Touched by the scheduler whenever it sends something: its sign of life.
PULSE_FILE = DATA_DIR / "scheduler.pulse"

# How long a source stays taken after its runner was killed; a live runner renews it four times in that span.
LEASE_SECONDS = env.number("LEASE_SECONDS", 60, least=2)

WEB_WORKERS = env.number("WEB_WORKERS", 2)
WEB_THREADS = env.number("WEB_THREADS", 4)
WORKER_CONCURRENCY = env.number("WORKER_CONCURRENCY", 2)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "estate.api.tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "GPU Estate",
    "VERSION": "1",
    "DESCRIPTION": "Usage, waits, capacity and cost of a GPU estate.",
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, "'unsafe-inline'"],
        "img-src": [SELF, "data:", "blob:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# `INSECURE_HTTP` is for a laptop on loopback (`up` sets it); a deployment behind TLS leaves it off.
INSECURE_HTTP = env.flag("INSECURE_HTTP")
SECURE_SSL_REDIRECT = not INSECURE_HTTP
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not INSECURE_HTTP
SECURE_HSTS_SECONDS = 0 if INSECURE_HTTP else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not INSECURE_HTTP
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
if env.flag("TRUST_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    # It would write a line for every question to slurmrestd.
    "loggers": {"httpx": {"level": "WARNING"}},
    "root": {"handlers": ["stderr"], "level": env.one_of("LOG_LEVEL", "INFO", LOG_LEVELS)},
}
