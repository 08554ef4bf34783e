"""Routes of accounting."""

from django.urls import URLPattern, URLResolver, include, path

from accounting.views.costs import costs
from accounting.views.gpu_models import names as gpu_model_names
from accounting.views.overview import overview
from accounting.views.queues import queues
from accounting.views.utilisation import utilisation

urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview, name="overview"),
    path("utilisation/", utilisation, name="utilisation"),
    path("queues/", queues, name="queues"),
    path("costs/", costs, name="costs"),
    path("estate/gpu-models/", gpu_model_names, name="estate-gpu-models"),
    path("", include("accounting.exports.urls")),
]
