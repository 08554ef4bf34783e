"""Routes of estate."""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, path

from estate.views.estate import estate, node
from estate.views.health import healthz, metrics, readyz
from estate.views.limits import cluster_limits
from estate.views.sign_in import SignIn

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("sign-in", SignIn.as_view(), name="sign-in"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
    path("estate/", estate, name="estate"),
    path("estate/clusters/<str:cluster>/limits/", cluster_limits, name="estate-limits"),
    path("estate/nodes/<str:cluster>/<str:name>/", node, name="estate-node"),
]
