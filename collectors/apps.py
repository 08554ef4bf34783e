from importlib import import_module

from django.apps import AppConfig


class CollectorsConfig(AppConfig):
    name = "collectors"

    def ready(self) -> None:
        import_module("collectors.checks")
