from importlib import import_module

from django.apps import AppConfig


class AccountingConfig(AppConfig):
    name = "accounting"

    def ready(self) -> None:
        import_module("accounting.checks")
