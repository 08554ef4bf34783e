"""Routes below /api/v1/."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from accounting.api.views import ReportsView, UnknownReportView, report_view
from accounting.domain.metrics import REPORTS
from estate.api import schema as _bearer_scheme  # noqa: F401 - registers the tokens with OpenAPI

urlpatterns = [
    path("schema", SpectacularAPIView.as_view(), name="api-schema"),
    path("reports", ReportsView.as_view(), name="api-reports"),
    *(
        path(f"reports/{name}", report_view(definition).as_view(), name=f"api-report-{name}")
        for name, definition in REPORTS.items()
    ),
    path("reports/<str:report>", UnknownReportView.as_view()),
]
