"""`/api/v1/schema`: OpenAPI that agrees with the answers."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from accounting.domain.metrics import REPORTS
from tests.web.reports import Door, door

__all__ = ["door"]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """Made as `manage.py spectacular` does, which fails on any warning."""
    out = io.StringIO()
    call_command("spectacular", "--fail-on-warn", "--validate", stdout=out)
    loaded: dict[str, Any] = yaml.safe_load(out.getvalue())
    return loaded


@pytest.mark.parametrize("name", REPORTS)
def test_each_report_is_an_operation_with_its_parameters(schema: dict[str, Any], name: str) -> None:
    operation = schema["paths"][f"/api/v1/reports/{name}"]["get"]
    parameters = {each["name"]: each for each in operation["parameters"]}
    assert list(parameters) == sorted(("from", "to", "by", "cluster", "partition", "project", "gpu_model", "zone", "format"))
    assert parameters["by"]["schema"]["items"]["enum"] == list(REPORTS[name].dimension_ids)
    assert {"bearer": []} in operation["security"]


@pytest.mark.django_db
@pytest.mark.parametrize("name", REPORTS)
def test_an_answer_has_exactly_the_fields_that_the_schema_promises(
    schema: dict[str, Any], as_lead: Client, door: Door, name: str
) -> None:
    promised = schema["paths"][f"/api/v1/reports/{name}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    answer = as_lead.get(
        f"/api/v1/reports/{name}", {"from": "2026-11-01", "to": "2026-12-01", "by": REPORTS[name].dimension_ids}
    ).json()
    assert list(answer) == list(promised["properties"])
    assert list(answer["rows"][0]) == list(promised["properties"]["rows"]["items"]["properties"])
    assert list(answer["total"]) == list(promised["properties"]["total"]["properties"])


@pytest.mark.django_db
def test_the_schema_is_served(client: Client) -> None:
    answer = client.get("/api/v1/schema")
    assert answer.status_code == 200
    assert yaml.safe_load(answer.content)["info"]["title"] == "GPU Estate"
