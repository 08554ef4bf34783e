"""Facts cut into buckets: the SQL that both the rollups and the reports on facts are made of.

Every statement takes `cuts`, the rising epoch seconds that bound the buckets (bucket i is [cuts[i], cuts[i + 1])), made by
`estate.domain.periods`; `instants` are the same as instants, `start` and `end` the first and last of them. Seconds are whole:
fractions of a second are dropped from instants, never from durations, so that neighbouring buckets share each second between them
exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any


def cut_params(bounds: Sequence[datetime], name: str = "cuts") -> dict[str, Any]:
    """Parameters for a run of bounds (aware instants, rising): as epoch seconds and as `instants`, the first and the last."""
    seconds = [int(bound.timestamp()) for bound in bounds]
    return {name: seconds, "instants": list(bounds), "start": bounds[0], "end": bounds[-1]}


def epoch(column: str) -> str:
    return f"floor(date_part('epoch', {column}))::bigint"


FAR = 1 << 40  # epoch seconds that no record reaches


def since(span: str) -> str:
    """Whole epoch seconds of the beginning of a span; long ago where it has none."""
    return f"coalesce({epoch(f'lower({span})')}, {-FAR})"


def until(span: str) -> str:
    """Whole epoch seconds of the end of a span; far ahead where it has none."""
    return f"coalesce({epoch(f'upper({span})')}, {FAR})"


def buckets(name: str = "cuts") -> str:
    """The buckets that [since, until) meets, as a set-returning call."""
    array = f"%({name})s::bigint[]"
    first, last = f"width_bucket(since, {array})", f"width_bucket(until - 1, {array})"
    return f"generate_series(greatest(1, {first}), least(cardinality({array}) - 1, {last}))"


def overlap(end: str = "until", name: str = "cuts") -> str:
    """Seconds of [since, until) inside `bucket` (negative where its end lies before it)."""
    array = f"(%({name})s::bigint[])"
    return f"least({end}, {array}[bucket + 1]) - greatest(since, {array}[bucket])"


_WHO = ("partition", "account", "namespace", "user_name", "qos", "gpu_size")


def usage_lines(extra: Sequence[str] = (), where: str = "true") -> str:
    """A common table expression `line`: one row per record, bucket and GPU model.

    Columns: bucket, cluster_id, who (partition … gpu_size), `extra` columns of the fact, gpu_model_id, record_count (1 in the bucket
    of submission), started_count (1 in that of the start), gpu_seconds, cpu_milliseconds, wall_seconds (what overlaps). A record
    on several models is counted with its first one. CPU time stops while suspended, taken off the end of the stay.
    """
    who = ", ".join(["cluster_id", *_WHO, *extra])
    return f"""
line AS (
    SELECT bucket, {who}, first_model_id AS gpu_model_id, (bucket = submit_bucket)::int AS record_count,
           coalesce((bucket = first_bucket)::int, 0) AS started_count, CASE WHEN part_count = 1 THEN gpus * wall ELSE 0 END AS gpu_seconds,
           CASE WHEN cpu_thousandths = 0 THEN 0
                ELSE cpu_thousandths * {_held("until - suspended_seconds")} END AS cpu_milliseconds, wall AS wall_seconds
    FROM (SELECT *, {_held("until")} AS wall FROM ({_cut(who, where)}) AS piece OFFSET 0) AS timed
    UNION ALL
    SELECT bucket, {who}, part.model_id, 0, 0, part.gpus * {_held("until")}, 0, 0
    FROM ({_cut(who + ", gpu_model_ids, gpu_counts", f"cardinality(gpu_counts) > 1 AND {where}")}) AS piece
    CROSS JOIN LATERAL unnest(gpu_model_ids, gpu_counts) AS part (model_id, gpus)
)"""


def _cut(columns: str, where: str) -> str:
    """Records by the buckets that they touch: those of their stay, and that of their submission where it lies elsewhere (`place` is
    then one before the first of the stay). One pass without a look back: each OFFSET 0 keeps what is below from being computed twice.
    """
    cuts, count = "%(cuts)s::bigint[]", "cardinality(%(cuts)s::bigint[]) - 1"
    fact = f"""
        SELECT {columns}, gpus, cardinality(gpu_counts) AS part_count, coalesce(gpu_model_ids[1], requested_gpu_model_id) AS first_model_id,
               coalesce(cpus * 1000, 0)::bigint AS cpu_thousandths, suspended_seconds,
               width_bucket(submitted_at, %(instants)s::timestamptz[]) AS submit_bucket,
               {epoch("started_at")} AS since, {epoch("last_seen_at")} AS until
        FROM accounting_usagerecord
        WHERE submitted_at < %(end)s AND last_seen_at >= %(start)s AND {where} OFFSET 0"""
    found = f"""
        SELECT *, width_bucket(since, {cuts}) AS first_bucket,
               CASE WHEN since IS NULL THEN 0 ELSE greatest(width_bucket(since, {cuts}), width_bucket(until - 1, {cuts})) END AS last_bucket
        FROM ({fact}) AS fact OFFSET 0"""
    apart = f"submit_bucket BETWEEN 1 AND {count} AND (since IS NULL OR submit_bucket NOT BETWEEN first_bucket AND last_bucket)"
    placed = f"""
        SELECT *, generate_series(entry - ({apart})::int, least({count}, last_bucket)) AS place
        FROM (SELECT *, greatest(1, first_bucket) AS entry FROM ({found}) AS found) AS entered OFFSET 0"""
    return f"SELECT *, CASE WHEN place < entry THEN submit_bucket ELSE place END AS bucket FROM ({placed}) AS placed OFFSET 0"


def _held(end: str) -> str:
    """Seconds of [since, `end`) inside `bucket`; none where they do not meet, or of what has not started."""
    return f"CASE WHEN since IS NULL THEN 0 ELSE greatest(0, {overlap(end)}) END"
