"""Names of GPU models: what a name means, and what becomes of what was recorded under another.

Records keep the model, not the printed name. So a model that turns out to be another one is merged into it, past included, and its name
becomes an alias; while an alias that is pointed elsewhere changes only what is read from then on: which of a model's records came under
which of its names is not known any more.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import ProtectedError

from accounting.ingest import lock_cluster, mark_dirty
from accounting.models import ClusterCoverage, Rate
from estate.domain.gpus import canonical_model
from estate.models import Cluster, GpuModel, GpuModelAlias, NodeInventory

LONGEST_NAME = 128


class MeaningError(Exception):
    """The name cannot mean that; the message says why and what to do."""


class Act(Enum):
    """What it takes for a name to mean a model."""

    MERGE = "merge"
    RENAME = "rename"
    POINT = "point"
    ADD = "add"


class Effect(NamedTuple):
    """What would happen: `records` and `nodes` of the past that change their model, or the number that stays with `former`."""

    act: Act
    name: str
    model: str
    is_new_model: bool
    former: str
    record_count: int
    node_count: int
    rate_count: int


def effect_of(name: str, meaning: str) -> Effect:
    """What it takes for `name` to mean the model `meaning`. Raises MeaningError when it does already, or cannot."""
    name, meaning = _cleaned(name), _cleaned(meaning)
    model = _model_called(meaning)
    source = GpuModel.objects.filter(name=name).first()
    alias = GpuModelAlias.objects.filter(alias=name).select_related("gpu_model").first()
    known = model.name if model else meaning
    if source is not None:
        return _effect_on_model(source, model, known)
    if alias is not None and model is not None and alias.gpu_model_id == model.pk:
        raise MeaningError(f"{name} means {known} already")
    former = alias.gpu_model.name if alias else ""
    act = Act.POINT if alias else Act.ADD
    return Effect(act, name, known, model is None, former, 0, 0, 0)


def _effect_on_model(source: GpuModel, model: GpuModel | None, known: str) -> Effect:
    if model is not None and model.pk == source.pk:
        raise MeaningError(f"{source.name} means {known} already")
    if model is None:
        return Effect(Act.RENAME, source.name, known, True, source.name, 0, 0, 0)
    _refuse_conflicts(source, model)
    nodes = NodeInventory.objects.filter(gpu_model=source).values("node").distinct().count()
    rates = Rate.objects.filter(gpu_model=source).count()
    return Effect(Act.MERGE, source.name, known, False, source.name, _record_count(source), nodes, rates)


def carry_out(effect: Effect) -> int:
    """Do it; returns how many reporting days have to be rebuilt. Raises MeaningError."""
    with transaction.atomic():
        if effect.act is Act.RENAME:
            GpuModel.objects.filter(name=effect.name).update(name=effect.model)
        model = GpuModel.objects.get_or_create(name=effect.model)[0]
        days = merge(GpuModel.objects.get(name=effect.name), model) if effect.act is Act.MERGE else 0
        GpuModelAlias.objects.update_or_create(alias=effect.name, defaults={"gpu_model": model})
    return days


def merge(source: GpuModel, target: GpuModel) -> int:
    """Make everything that is of `source` be of `target`, and `source` go; returns how many reporting days became dirty.

    Rollups are pointed to `target` at once, so that no report shows a model that is gone, and are rebuilt from the facts after that.
    Raises MeaningError when both have prices for the same days, or one node has GPUs of both at once.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        for cluster in Cluster.objects.order_by("pk"):
            lock_cluster(cursor, cluster.pk)
        _refuse_conflicts(source, target)
        ids = {"source": source.pk, "target": target.pk}
        cursor.execute(AFFECTED, ids)
        first_by_cluster = dict(cursor.fetchall())
        cursor.execute(POINT_RECORDS, ids)
        NodeInventory.objects.filter(gpu_model=source).update(gpu_model=target)
        Rate.objects.filter(gpu_model=source).update(gpu_model=target)
        GpuModelAlias.objects.filter(gpu_model=source).update(gpu_model=target)
        days = 0
        for coverage in ClusterCoverage.objects.filter(cluster__in=first_by_cluster):
            first = min(first_by_cluster[coverage.cluster_id], coverage.through_at)
            days += mark_dirty(cursor, coverage.cluster_id, first, coverage.through_at)
        _remove(source)
    return days


def _remove(source: GpuModel) -> None:
    try:
        source.delete()
    except ProtectedError as exc:
        kinds = sorted({str(each._meta.verbose_name_plural) for each in exc.protected_objects})
        raise MeaningError(f"{source.name} is still named by {', '.join(kinds)}; change those first") from exc


def _refuse_conflicts(source: GpuModel, target: GpuModel) -> None:
    periods = list(Rate.objects.filter(gpu_model=target).values_list("valid_during", flat=True))
    if any(Rate.objects.filter(gpu_model=source, valid_during__overlap=period).exists() for period in periods):
        raise MeaningError(f"{source.name} and {target.name} both have prices for the same days; end or remove one of them first")
    with connection.cursor() as cursor:
        cursor.execute(NODES_WITH_BOTH, {"source": source.pk, "target": target.pk})
        nodes = [name for (name,) in cursor.fetchall()]
    if nodes:
        raise MeaningError(f"{', '.join(nodes)} had GPUs of {source.name} and of {target.name} at once: they are two models")


def _record_count(model: GpuModel) -> int:
    with connection.cursor() as cursor:
        cursor.execute(COUNT_RECORDS, {"source": model.pk})
        return int(cursor.fetchone()[0])


def _model_called(name: str) -> GpuModel | None:
    found = GpuModel.objects.filter(name=name).first() or GpuModel.objects.filter(aliases__alias=name).first()
    return found or GpuModel.objects.filter(name__iexact=name).first()


def _cleaned(name: str) -> str:
    """A name as readers of records hand it on."""
    cleaned = canonical_model(name)
    if not cleaned or len(cleaned) > LONGEST_NAME or not cleaned.isprintable():
        raise MeaningError("write the name of a GPU model, of at most 128 characters")
    return cleaned


_OF_SOURCE = "(%(source)s = ANY(gpu_model_ids) OR requested_gpu_model_id = %(source)s)"

COUNT_RECORDS = f"SELECT count(*) FROM accounting_usagerecord WHERE {_OF_SOURCE}"

# From the first day on which one of them was submitted or started, or an inventory had the model: those days are rebuilt, and are
# answered from the facts until then.
AFFECTED = f"""
SELECT cluster_id, min(first_at) FROM (
    SELECT cluster_id, min(least(submitted_at, started_at)) AS first_at FROM accounting_usagerecord WHERE {_OF_SOURCE}
    GROUP BY cluster_id
    UNION ALL
    SELECT node.cluster_id, min(coalesce(lower(inventory.valid_during), coverage.first_at))
    FROM estate_nodeinventory inventory JOIN estate_node node ON node.id = inventory.node_id
    JOIN accounting_clustercoverage coverage ON coverage.cluster_id = node.cluster_id
    WHERE inventory.gpu_model_id = %(source)s GROUP BY node.cluster_id
) AS touched GROUP BY cluster_id
"""

POINT_RECORDS = f"""
UPDATE accounting_usagerecord
SET gpu_model_ids = array_replace(gpu_model_ids, %(source)s, %(target)s),
    requested_gpu_model_id = CASE WHEN requested_gpu_model_id = %(source)s THEN %(target)s ELSE requested_gpu_model_id END
WHERE {_OF_SOURCE}
"""

NODES_WITH_BOTH = """
SELECT DISTINCT node.name FROM estate_nodeinventory one
JOIN estate_nodeinventory other ON other.node_id = one.node_id AND other.valid_during && one.valid_during
JOIN estate_node node ON node.id = one.node_id
WHERE one.gpu_model_id = %(source)s AND other.gpu_model_id = %(target)s ORDER BY node.name LIMIT 5
"""
