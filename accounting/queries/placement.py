"""Where the GPUs of records lie: the SQL that says what each node held in each bucket, for the rollup and for reports by the hour.

A sweep over the instants at which anything of a node changes (a record begins or ends, the inventory or a state changes): between two
of them everything is constant, so held GPUs are capped by what the node has at every instant, however wide the buckets are
(definitions.md: oversubscription never lifts allocated above reported). Parameters as in `queries.lines`, and `clusters` (ids).
"""

from __future__ import annotations

from accounting.queries.lines import buckets, epoch, overlap, since, until

# A record's GPUs lie on its nodes in proportion to the GPUs of that model that each node has (sacct does not say more); where the
# inventory knows none of them, the time is unplaced.
PLACED = f"""
stay AS MATERIALIZED (
    SELECT row_number() OVER () AS number, cluster_id, started_at, {epoch("started_at")} AS since, {epoch("last_seen_at")} AS until,
           nodes, part.model_id, part.gpus
    FROM accounting_usagerecord record
    CROSS JOIN LATERAL unnest(gpu_model_ids, gpu_counts) AS part (model_id, gpus)
    WHERE cluster_id = ANY(%(clusters)s) AND record.gpus > 0 AND submitted_at < %(end)s AND started_at < %(end)s
      AND last_seen_at > %(start)s
), spread AS (
    SELECT stay.*, node.id AS node_id, coalesce(inventory.gpu_model_id, model_id) AS placed_model_id, inventory.gpu_count,
           sum(inventory.gpu_count) OVER whole AS whole_count, row_number() OVER whole AS place
    FROM stay
    LEFT JOIN LATERAL unnest(nodes) AS host (name) ON true
    LEFT JOIN estate_node node ON node.cluster_id = stay.cluster_id AND node.name = host.name
    LEFT JOIN estate_nodeinventory inventory
           ON inventory.node_id = node.id AND inventory.valid_during @> started_at AND inventory.gpu_count > 0
          AND (model_id IS NULL OR inventory.gpu_model_id = model_id)
    WINDOW whole AS (PARTITION BY number)
), placed AS (
    SELECT cluster_id, since, until, node_id, placed_model_id AS model_id,
           CASE WHEN gpu_count = whole_count THEN gpus ELSE gpus * gpu_count / whole_count END AS gpus
    FROM spread WHERE gpu_count IS NOT NULL
    UNION ALL
    SELECT cluster_id, since, until, NULL, model_id, gpus FROM spread WHERE whole_count IS NULL AND place = 1
)"""

# Every instant at which something changes on a node, with what is added then (or taken off).
CHANGES = f"""
owned AS MATERIALIZED (
    SELECT cluster_id, node_id, gpu_model_id AS model_id, gpu_count,
           {since("inventory.valid_during")} AS since, {until("inventory.valid_during")} AS until
    FROM estate_nodeinventory inventory JOIN estate_node node ON node.id = node_id
    WHERE node.cluster_id = ANY(%(clusters)s) AND gpu_count > 0
), condition AS MATERIALIZED (
    SELECT cluster_id, node_id, model_id, condition, greatest(since, {since("state.valid_during")}) AS since,
           least(until, {until("state.valid_during")}) AS until
    FROM estate_nodestate state JOIN owned USING (node_id)
), change AS (
    SELECT cluster_id, node_id, model_id, since AS at, gpus AS held, 0 AS owned, 0 AS planned, 0 AS down, 0 AS reserved
    FROM placed WHERE node_id IS NOT NULL
    UNION ALL
    SELECT cluster_id, node_id, model_id, until, -gpus, 0, 0, 0, 0 FROM placed WHERE node_id IS NOT NULL
    UNION ALL
    SELECT cluster_id, node_id, model_id, edge.at, 0, edge.sign * gpu_count, 0, 0, 0
    FROM owned CROSS JOIN LATERAL (VALUES (since, 1), (until, -1)) AS edge (at, sign)
    UNION ALL
    SELECT cluster_id, node_id, model_id, edge.at, 0, 0, edge.sign * (condition = 'planned_down')::int,
           edge.sign * (condition = 'down')::int, edge.sign * (condition = 'reserved')::int
    FROM condition CROSS JOIN LATERAL (VALUES (since, 1), (until, -1)) AS edge (at, sign)
    WHERE since < until
)"""

# One row per bucket, node and GPU model that held anything. Held GPUs count before planned down, down and reserved: a GPU-second is in
# one part of the identity only.
HELD = f"""
WITH {PLACED}, {CHANGES}, step AS (
    SELECT cluster_id, node_id, model_id, at AS since, lead(at) OVER so_far AS until, sum(held) OVER so_far AS held,
           sum(owned) OVER so_far AS owned, sum(planned) OVER so_far AS planned, sum(down) OVER so_far AS down,
           sum(reserved) OVER so_far AS reserved
    FROM change WINDOW so_far AS (PARTITION BY cluster_id, node_id, model_id ORDER BY at ROWS UNBOUNDED PRECEDING)
), stretch AS (
    SELECT cluster_id, node_id, model_id, since, until, least(held, owned) AS allocated, greatest(held - owned, 0) AS sharing,
           0 AS unplaced, planned, down, reserved
    FROM step WHERE since < until AND held > 0
    UNION ALL
    SELECT cluster_id, NULL, model_id, since, until, 0, 0, gpus, 0, 0, 0 FROM placed WHERE node_id IS NULL
), slice AS (
    SELECT *, {overlap()} AS seconds FROM (SELECT *, {buckets()} AS bucket FROM stretch OFFSET 0) AS stretch
)
SELECT bucket, cluster_id, node_id, model_id AS gpu_model_id, sum(allocated * seconds) AS allocated, sum(sharing * seconds) AS sharing,
       sum(unplaced * seconds) AS unplaced, coalesce(sum(allocated * seconds) FILTER (WHERE planned > 0), 0) AS planned,
       coalesce(sum(allocated * seconds) FILTER (WHERE down > 0), 0) AS down,
       coalesce(sum(allocated * seconds) FILTER (WHERE reserved > 0), 0) AS reserved
FROM slice GROUP BY bucket, cluster_id, node_id, model_id
"""
