from django.apps import AppConfig


class EstateConfig(AppConfig):
    name = "estate"
