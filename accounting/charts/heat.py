"""A heat map as an HTML table: rows are nodes, columns are hours, days or weeks; no data is an outline, not a zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString


class HeatRow(NamedTuple):
    """A row: its name, where the name leads, and a ratio (0…1) per column; None where nothing is known."""

    name: str
    href: str
    ratios: Sequence[float | None]


class Span(NamedTuple):
    """A header over neighbouring columns."""

    label: str
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Rows under the name of their group; `columns` are the full names of the columns, `spans` the headers over them."""

    caption: str
    columns: list[str]
    spans: list[Span]
    groups: dict[str, list[HeatRow]]

    @property
    def body(self) -> SafeString:
        """The rows as HTML; built here because a template takes ten times as long for thousands of cells."""
        return SafeString("".join(part for name, rows in self.groups.items() for part in self._group(name, rows)))

    def _group(self, name: str, rows: Sequence[HeatRow]) -> list[str]:
        head = f'<tr class="group"><th scope="rowgroup" colspan="{len(self.columns) + 1}">{escape(name)}</th></tr>'
        return ["<tbody>", head, *(_row(row) for row in rows), "</tbody>"]


def _row(row: HeatRow) -> str:
    link = f'<a href="{escape(row.href)}">{escape(row.name)}</a>'
    return f'<tr><th scope="row">{link}</th>{"".join(map(_cell, row.ratios))}</tr>'


def _cell(ratio: float | None) -> str:
    if ratio is None:
        return "<td class=x>no data</td>"
    percent = round(100 * ratio)
    return f"<td style=--v:{percent}>{percent} %</td>"


def spans(names: Sequence[str]) -> list[Span]:
    """Neighbours of one name under one header."""
    return [Span(name, len(list(members))) for name, members in groupby(names)]


def group_rows(rows: Sequence[tuple[str, HeatRow]]) -> dict[str, list[HeatRow]]:
    """Rows, each with the name of its group, by group; the order stays."""
    groups: dict[str, list[HeatRow]] = {}
    for group, row in rows:
        groups.setdefault(group or "no longer in the inventory", []).append(row)
    return groups
