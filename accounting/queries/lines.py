"""Facts cut into buckets: the SQL that both the rollups and the reports on facts are made of.

Every statement takes `cuts`, the rising epoch seconds that bound the buckets (bucket i is [cuts[i], cuts[i + 1])), made by
`estate.domain.periods`; `start` and `end` are the first and last of them as instants. Seconds are whole: fractions of a second are
dropped from instants, never from durations, so that neighbouring buckets share each second between them exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any


def cut_params(bounds: Sequence[datetime], name: str = "cuts") -> dict[str, Any]:
    """Parameters for a run of bounds (aware instants, rising): the bounds in epoch seconds, the first and the last."""
    return {name: [int(bound.timestamp()) for bound in bounds], "start": bounds[0], "end": bounds[-1]}


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


_WHO = "partition, account, namespace, user_name, qos, gpu_size"


def usage_lines(extra: Sequence[str] = (), where: str = "true") -> str:
    """Common table expressions ending in `line`: one row per record, bucket and GPU model.

    Columns: bucket, cluster_id, who (partition … gpu_size), `extra` columns of the fact, gpu_model_id, record_count (1 in the bucket
    of submission), started_count (1 in that of the start), gpu_seconds, cpu_milliseconds, wall_seconds (what overlaps). A record
    on several models is counted with its first one. CPU time stops while suspended, taken off the end of the stay.
    """
    who = ", ".join(["cluster_id", _WHO, *extra])
    cuts = "%(cuts)s::bigint[]"
    return f"""
record AS MATERIALIZED (
    SELECT *, width_bucket(submitted, {cuts}) AS submit_bucket, width_bucket(since, {cuts}) AS first_bucket,
           greatest(width_bucket(since, {cuts}), width_bucket(until - 1, {cuts})) AS last_bucket
    FROM (
        SELECT {who}, gpu_model_ids, gpu_counts, coalesce(gpu_model_ids[1], requested_gpu_model_id) AS first_model_id,
               coalesce(cpus * 1000, 0)::bigint AS cpu_thousandths, suspended_seconds,
               {epoch("submitted_at")} AS submitted, {epoch("started_at")} AS since, {epoch("last_seen_at")} AS until
        FROM accounting_usagerecord
        WHERE submitted_at < %(end)s AND last_seen_at >= %(start)s AND {where}
    ) AS fact
), stay AS (
    SELECT *, generate_series(greatest(1, first_bucket), least(cardinality({cuts}) - 1, last_bucket)) AS bucket
    FROM record WHERE since IS NOT NULL
), held AS (
    SELECT {who}, gpu_model_ids, gpu_counts, first_model_id, bucket,
           (bucket = submit_bucket)::int AS record_count, (bucket = first_bucket)::int AS started_count, {overlap()} AS wall,
           CASE WHEN cpu_thousandths = 0 THEN 0
                ELSE cpu_thousandths * greatest(0, {overlap("until - suspended_seconds")}) END AS cpu_milliseconds
    FROM stay
), line AS (
    SELECT bucket, {who}, first_model_id AS gpu_model_id, record_count, started_count,
           CASE WHEN cardinality(gpu_counts) = 1 THEN gpu_counts[1] * wall ELSE 0 END AS gpu_seconds,
           cpu_milliseconds, wall AS wall_seconds
    FROM held
    UNION ALL
    SELECT bucket, {who}, part.model_id, 0, 0, part.gpus * wall, 0, 0
    FROM held CROSS JOIN LATERAL unnest(gpu_model_ids, gpu_counts) AS part (model_id, gpus)
    WHERE cardinality(gpu_counts) > 1
    UNION ALL
    SELECT submit_bucket, {who}, first_model_id, 1, 0, 0, 0, 0
    FROM record
    WHERE submit_bucket BETWEEN 1 AND cardinality({cuts}) - 1
      AND (since IS NULL OR submit_bucket < first_bucket OR submit_bucket > last_bucket)
)"""


# GPU records that hold something in the span, one row per record and GPU model.
GPU_STAYS = f"""
    SELECT cluster_id, external_id, submitted_at, partition, started_at, {epoch("started_at")} AS since, {epoch("last_seen_at")} AS until,
           nodes, part.model_id, part.gpus, part.number
    FROM accounting_usagerecord record
    CROSS JOIN LATERAL unnest(gpu_model_ids, gpu_counts) WITH ORDINALITY AS part (model_id, gpus, number)
    WHERE cluster_id = %(cluster)s AND record.gpus > 0 AND started_at < %(end)s AND last_seen_at > %(start)s"""
