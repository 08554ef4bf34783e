"""Routes of collectors."""

from django.urls import URLPattern, URLResolver, path

from collectors.views import collectors, quality

urlpatterns: list[URLPattern | URLResolver] = [
    path("collectors/", collectors.collectors, name="collectors"),
    path("collectors/runs/<int:run_id>/", collectors.run, name="collectors-run"),
    path("collectors/runs/<int:run_id>/replay/", quality.replay, name="collectors-replay"),
    path("collectors/clusters/<str:name>/", quality.quality, name="collectors-quality"),
    path("collectors/sources/<int:source_id>/run/", collectors.run_now, name="collectors-run-now"),
]
