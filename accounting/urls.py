"""Routes of accounting."""

from django.urls import URLPattern, URLResolver, path

from accounting.views.overview import overview

urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview, name="overview"),
]
