"""Dimensions of the reports: how each is spelled in SQL over a row `f` of facts or rollups, and which joins it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from accounting.domain.reconciliation import UNATTRIBUTED
from accounting.domain.reports import ReportError, ReportRequest, Scope, Value
from estate.domain.gpus import SIZE_BUCKETS


class Dimension(NamedTuple):
    """An expression over `f` and the joins below that it needs."""

    expression: str
    joins: tuple[str, ...] = ()


# Joins by name, in the order in which they may depend on each other.
JOINS = {
    "cluster": "JOIN estate_cluster cluster ON cluster.id = f.cluster_id",
    "model": "LEFT JOIN estate_gpumodel model ON model.id = f.gpu_model_id",
    "project": """
LEFT JOIN estate_accountmapping mapping
       ON mapping.cluster_id = f.cluster_id AND mapping.valid_during @> f.day
      AND mapping.account = CASE WHEN f.namespace <> '' THEN f.namespace ELSE f.account END
LEFT JOIN estate_project project ON project.id = mapping.project_id""",
    "centre": """
LEFT JOIN LATERAL (
    WITH RECURSIVE up AS (
        SELECT id, parent_id, kind, name FROM estate_project WHERE id = project.id
        UNION ALL
        SELECT above.id, above.parent_id, above.kind, above.name FROM estate_project above JOIN up ON above.id = up.parent_id
    )
    SELECT name FROM up WHERE kind = 'cost_centre' LIMIT 1
) centre ON true""",
    "node": "LEFT JOIN estate_node node ON node.id = f.node_id",
    "membership": """
JOIN estate_nodepartition membership ON membership.node_id = f.node_id AND membership.valid_during @> f.at
JOIN estate_partition partition ON partition.id = membership.partition_id""",
    "pool": """
LEFT JOIN estate_poolmembership pooled ON pooled.node_id = f.node_id AND pooled.valid_during @> f.at
LEFT JOIN estate_pool pool ON pool.id = pooled.pool_id""",
}

COMMON = {
    "cluster": Dimension("cluster.name", ("cluster",)),
    "scheduler": Dimension("cluster.scheduler", ("cluster",)),
    "gpu_model": Dimension("model.name", ("model",)),
    "day": Dimension("f.day"),
    "week": Dimension("date_trunc('week', f.day)::date"),
    "month": Dimension("to_char(f.day, 'YYYY-MM')"),
}
OF_RECORDS = COMMON | {
    "partition": Dimension("f.partition"),
    "account": Dimension("f.account"),
    "namespace": Dimension("f.namespace"),
    "user": Dimension("f.user_name"),
    "qos": Dimension("f.qos"),
    "gpu_size": Dimension("f.gpu_size"),
    "project": Dimension(f"coalesce(project.name, '{UNATTRIBUTED}')", ("project",)),
    "cost_centre": Dimension(f"CASE WHEN project.id IS NULL THEN '{UNATTRIBUTED}' ELSE centre.name END", ("project", "centre")),
    "state": Dimension("f.state"),
    "workload": Dimension("f.workload_id"),
    "workload_kind": Dimension("f.workload_kind"),
}
ONLY_IN_FACTS = {"state": "state", "workload": "workload_id", "workload_kind": "workload_kind"}
OF_NODES = COMMON | {
    "partition": Dimension("partition.name", ("membership",)),
    "pool": Dimension("pool.name", ("pool",)),
    "node": Dimension("node.name", ("node",)),
    "hour": Dimension("f.at"),
}


class Composed(NamedTuple):
    """The parts of a grouped statement over `f`."""

    selected: str
    joins: str
    condition: str
    grouping: str
    params: dict[str, Any]

    def into(self, statement: str, **more: str) -> str:
        """`statement` with its {selected}, {joins}, {condition} and {grouping}, and `more`, filled in."""
        parts = {"selected": self.selected, "joins": self.joins, "condition": self.condition, "grouping": self.grouping}
        return statement.format(**parts, **more)


def compose(
    request: ReportRequest, known: dict[str, Dimension], allowed: Sequence[str], filters: dict[str, Dimension]
) -> Composed:
    """Select list, joins, condition and grouping for `request`; raises ReportError for a dimension that the report does not have."""
    check_dimensions(request, allowed)
    by = [known[name] for name in request.by]
    conditions, params, used = _conditions(request.scope, filters)
    wanted = {join for dimension in by + used for join in dimension.joins}
    selected = "".join(f"{dimension.expression} AS d{number}, " for number, dimension in enumerate(by))
    return Composed(selected, _joins(wanted), " AND ".join(conditions) or "true", _grouping(request), params)


def check_dimensions(request: ReportRequest, allowed: Sequence[str]) -> None:
    """Raise ReportError naming the dimensions that there are, when `request.by` has another or one twice."""
    for name in request.by:
        if name not in allowed:
            raise ReportError(f"{request.name} has no dimension {name!r}; choose among {', '.join(allowed)}")
        if request.by.count(name) > 1:
            raise ReportError(f"dimension {name!r} is given twice")


def _grouping(request: ReportRequest) -> str:
    """Groups by every dimension, which come first in the select list."""
    columns = ", ".join(str(number + 1) for number in range(len(request.by)))
    return f"GROUP BY {columns}" if columns else ""


def ordered(request: ReportRequest, rows: Iterable[dict[str, Value]]) -> list[dict[str, Value]]:
    """Rows by their dimensions in the order of `by`; GPU sizes by size, unknown last."""

    def key(row: dict[str, Value]) -> tuple[tuple[bool, object], ...]:
        return tuple((row[name] is None, _rank(name, row[name])) for name in request.by)

    return sorted(rows, key=key)


def _rank(name: str, value: Value) -> object:
    if value is None:
        return 0
    return SIZE_BUCKETS.index(str(value)) if name == "gpu_size" else value


def _joins(wanted: set[str]) -> str:
    return "\n".join(text for name, text in JOINS.items() if name in wanted)


def _conditions(scope: Scope, filters: dict[str, Dimension]) -> tuple[list[str], dict[str, Any], list[Dimension]]:
    """Conditions for the names of `scope`, their parameters, and the dimensions whose joins they need."""
    conditions: list[str] = []
    params: dict[str, Any] = {}
    used: list[Dimension] = []
    for name, values in (
        ("cluster", scope.clusters),
        ("partition", scope.partitions),
        ("project", scope.projects),
        ("gpu_model", scope.gpu_models),
        ("node", scope.nodes),
    ):
        if values and name in filters:
            conditions.append(filters[name].expression.format(values=f"%({name}s_wanted)s"))
            params[f"{name}s_wanted"] = list(values)
            used.append(filters[name])
    if scope.visible_projects is not None and "visible" in filters:
        conditions.append(filters["visible"].expression)
        params["visible"] = list(scope.visible_projects)
        used.append(filters["visible"])
    return conditions, params, used


_CLUSTER = Dimension("cluster.name = ANY({values})", ("cluster",))
_MODEL = Dimension("model.name = ANY({values})", ("model",))
RECORD_FILTERS = {
    "cluster": _CLUSTER,
    "partition": Dimension("f.partition = ANY({values})"),
    "project": Dimension(
        f"(coalesce(project.name, '{UNATTRIBUTED}') = ANY({{values}}) OR project.code = ANY({{values}}))", ("project",)
    ),
    "gpu_model": _MODEL,
    "visible": Dimension("project.id = ANY(%(visible)s)", ("project",)),
}
NODE_FILTERS = {
    "cluster": _CLUSTER,
    "gpu_model": _MODEL,
    "node": Dimension("node.name = ANY({values})", ("node",)),
    "partition": Dimension("""EXISTS (
        SELECT FROM estate_nodepartition within JOIN estate_partition named ON named.id = within.partition_id
        WHERE within.node_id = f.node_id AND within.valid_during @> f.at AND named.name = ANY({values}))"""),
}
