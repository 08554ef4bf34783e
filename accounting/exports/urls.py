"""Routes of downloads."""

from django.urls import path

from accounting.exports.views import export_report

urlpatterns = [path("export/<slug:report>.<slug:output>", export_report, name="export-report")]
