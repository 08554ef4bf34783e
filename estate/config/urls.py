"""All routes. The apps are named by string only."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("estate.urls")),
    path("", include("accounting.urls")),
    path("", include("collectors.urls")),
    path("api/v1/", include("accounting.api.urls")),
    path("admin/", admin.site.urls),
]
