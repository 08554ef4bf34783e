"""Routes of accounting."""

from django.urls import URLPattern, URLResolver, include, path

from accounting.views.costs import costs
from accounting.views.overview import overview
from accounting.views.queues import queues
from accounting.views.utilisation import utilisation

urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview, name="overview"),
    path("utilisation/", utilisation, name="utilisation"),
    path("queues/", queues, name="queues"),
    path("costs/", costs, name="costs"),
    path("", include("accounting.exports.urls")),
]
