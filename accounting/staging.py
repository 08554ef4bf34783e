"""Blocks of usage records as lines of a `COPY`: the one place that knows how the table is spelled on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import polars as pl

from accounting.domain.blocks import PLACES, RecordBlock
from accounting.domain.records import GpuPart
from estate.domain.gpus import size_bucket

# What is spelled as it stands in a block: columns of the table, and of the frame where those are called otherwise.
WORDS = [
    "external_id",
    "display_id",
    "workload_id",
    "workload_kind",
    "name",
    "user_name",
    "account",
    "namespace",
    "partition",
    "qos",
    "state",
    "reason",
    "reservation",
    "exit_code",
    "cancelled_by",
    "comment",
    "wckey",
    "environment",
]
FIGURES = [
    "gpu_size",
    "nodes",
    "submitted_at",
    "eligible_at",
    "started_at",
    "ended_at",
    "gpus",
    "gpu_model_ids",
    "gpu_counts",
    "requested_gpus",
    "requested_gpu_model_id",
    "cpus",
    "memory_mib",
    "node_count",
    "time_limit_seconds",
    "suspended_seconds",
    "priority",
    "restart_count",
]
COLUMNS = [*WORDS, *FIGURES, "row_hash", "last_seen_at"]
IN_FRAME = {"user_name": "user"}
NULL = "\x1a"

ModelId = Callable[[str], int]

_TO_ESCAPE = "[\\\\\t\n\r\x1a]"
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", NULL: "\\x1A"}
_QUOTES = str.maketrans({"\\": "\\\\\\\\", '"': '\\\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r", NULL: "\\x1A"})


class CopyText(NamedTuple):
    """COPY text of some thousand records, and whether a key comes twice among them."""

    text: bytes
    repeated: bool


def copy_texts(blocks: Iterable[RecordBlock], model_id: ModelId) -> Iterator[CopyText]:
    """The text of each block that holds records; `model_id` names the row of a GPU model."""
    for block in blocks:
        if len(block.frame):
            yield copy_text(block, model_id)


def copy_text(block: RecordBlock, model_id: ModelId) -> CopyText:
    """One line a record, in the order of `COLUMNS`. The hash tells one content from another, whenever it was seen."""
    frame = block.frame.with_columns(_words(block.frame)).with_columns(_figures(block, model_id))
    texts = [pl.col(IN_FRAME.get(name, name)) if name in WORDS else pl.col(name).fill_null(NULL) for name in WORDS + FIGURES]
    lines = frame.select(pl.concat_str(texts, separator="\t"))[:, 0]
    seen = frame["last_seen_at"].fill_null(NULL)
    hashes = pl.Series([_hash(line) for line in lines.to_list()], dtype=pl.Int64)
    whole = pl.select(pl.concat_str(lines, hashes.cast(pl.String), seen + "\n", separator="\t"))[:, 0]
    return CopyText(whole.str.join()[0].encode(), _repeats(block.frame))


def _hash(line: str) -> int:
    return int.from_bytes(blake2b(line.encode(), digest_size=8).digest(), "big", signed=True)


def _repeats(frame: pl.DataFrame) -> bool:
    return frame.n_unique(subset=["external_id", "submitted_at"]) < len(frame)


def _words(frame: pl.DataFrame) -> list[pl.Expr]:
    """Escapes, only where a column needs them (few ever do)."""
    names = [IN_FRAME.get(name, name) for name in WORDS]
    needy = frame.select(pl.col(names).str.contains(_TO_ESCAPE).any()).row(0)
    return [
        pl.col(name).str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
        for name, needs in zip(names, needy, strict=True)
        if needs
    ]


def _figures(block: RecordBlock, model_id: ModelId) -> list[pl.Expr | pl.Series]:
    holding, request, node_list = (block.frame[name] for name in PLACES)
    holdings, requests = block.holdings, block.requests
    held_size = _looked_up([size_bucket(held.gpus or 0) for held in holdings], holding)
    asked_size = _looked_up([size_bucket(asked.gpus or 0) for asked in requests], request).fill_null(size_bucket(0))
    started = block.frame["started_at"].is_not_null()
    ended = pl.col("ended_at").is_not_null()
    return [
        held_size.zip_with(started, asked_size).alias("gpu_size"),
        _looked_up([_array(nodes) for nodes in block.node_lists], node_list).alias("nodes"),
        *(_instant(pl.col(name)).alias(name) for name in ("submitted_at", "eligible_at", "started_at", "ended_at")),
        _instant(pl.when(ended).then("ended_at").otherwise("last_seen_at")).alias("last_seen_at"),
        _looked_up([None if held.gpus is None else format(held.gpus, "f") for held in holdings], holding).alias("gpus"),
        _looked_up([_model_ids(held.gpu_parts, model_id) for held in holdings], holding).alias("gpu_model_ids"),
        _looked_up([_amounts(held.gpu_parts) for held in holdings], holding).alias("gpu_counts"),
        _looked_up([None if asked.gpus is None else format(asked.gpus, "f") for asked in requests], request).alias(
            "requested_gpus"
        ),
        _looked_up([_model(asked.gpu_model, model_id) for asked in requests], request).alias("requested_gpu_model_id"),
        pl.col("memory_mib", "node_count", "time_limit_seconds", "suspended_seconds", "priority", "restart_count").cast(
            pl.String
        ),
    ]


def _looked_up(texts: Sequence[str | None], places: pl.Series) -> pl.Series:
    """The text of each place; null where there is none."""
    return pl.Series(texts, dtype=pl.String).gather(places)


def _instant(moments: pl.Expr) -> pl.Expr:
    """ISO 8601 in UTC, with as many digits as the moment has."""
    return moments.dt.replace_time_zone(None).dt.to_string("%Y-%m-%d %H:%M:%S%.fZ")


def _model(name: str | None, model_id: ModelId) -> str | None:
    return None if name is None else str(model_id(name))


def _model_ids(parts: tuple[GpuPart, ...], model_id: ModelId) -> str:
    return f"{{{','.join(_model(part.model, model_id) or 'NULL' for part in parts)}}}"


def _amounts(parts: tuple[GpuPart, ...]) -> str:
    return f"{{{','.join(format(part.gpus, 'f') for part in parts)}}}"


def _array(texts: tuple[str, ...]) -> str:
    """A PostgreSQL array literal, itself escaped for COPY."""
    return "{" + ",".join(f'"{text.translate(_QUOTES)}"' for text in texts) + "}"
