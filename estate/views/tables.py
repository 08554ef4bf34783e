"""Tables of pages: a click on a header sorts, fifty rows a page, a name links to what lies below it. State is in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.http import QueryDict

PAGE_SIZE = 50
NUMERIC = {"count", "gpu_hours", "ratio", "money", "cents", "duration"}

Row = Mapping[str, Any]
Link = Callable[[Row], str | None]


class Column(NamedTuple):
    """A column: key in the row, header, kind of its figures (a key of ui.SHOWN_AS), where a cell leads, key to sort by if another."""

    key: str
    label: str
    kind: str = "text"
    link: Link | None = None
    help: str = ""
    order: str = ""

    @property
    def numeric(self) -> bool:
        return self.kind in NUMERIC


class Header(NamedTuple):
    """A header as it is shown; `order` is ascending, descending or empty."""

    column: Column
    href: str
    order: str


class Cell(NamedTuple):
    """A value as it is shown."""

    value: Any
    kind: str
    href: str | None
    numeric: bool


class ShownRow(NamedTuple):
    """The cells of a row, the first being its header; `aside` for rows that are no ordinary member (idle, unattributed)."""

    cells: list[Cell]
    aside: bool


class Step(NamedTuple):
    """Where the pager leads."""

    previous: str
    next: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What `components/_table.html` shows."""

    caption: str
    headers: list[Header]
    rows: list[ShownRow]
    total: list[Cell]
    pager: Step | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """How a table looks: its columns, the first sort (`-` in front for descending), and its name where a page has several.

    `aside` says which rows are no ordinary members: they stand last whatever the sort.
    """

    columns: Sequence[Column]
    caption: str
    sort: str
    name: str = ""
    aside: Callable[[Row], bool] = lambda _row: False

    def parameter(self, word: str) -> str:
        return f"{self.name}-{word}" if self.name else word


def build(spec: TableSpec, rows: Sequence[Row], query: QueryDict, total: Row | None = None) -> Table:
    """The page of `rows` that `query` asks for. A sort by no column of the table falls back to the first sort."""
    wanted = query.get(spec.parameter("sort"), spec.sort)
    orders = {column.key: column.order or column.key for column in spec.columns}
    sort = wanted if wanted.removeprefix("-") in orders else spec.sort
    sign, key = ("-" if sort.startswith("-") else ""), sort.removeprefix("-")
    ordered = sorted_rows(rows, sign + orders.get(key, key), spec.aside)
    number = page_number(query.get(spec.parameter("page"), "1"), len(ordered), PAGE_SIZE)
    shown = ordered[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    return Table(
        caption=spec.caption,
        headers=[_header(spec, column, sort, query) for column in spec.columns],
        rows=[ShownRow(_cells(spec.columns, row), spec.aside(row)) for row in shown],
        total=_total_cells(spec.columns, total) if total is not None and ordered else [],
        pager=pager(query, spec.parameter("page"), number, len(ordered), PAGE_SIZE),
    )


def sorted_rows(rows: Sequence[Row], sort: str, aside: Callable[[Row], bool] = lambda _row: False) -> list[Row]:
    """Rows by `sort`; unknown values after the known ones in either direction, aside rows after all others."""
    key = sort.removeprefix("-")
    known = [row for row in rows if row.get(key) is not None]
    unknown = [row for row in rows if row.get(key) is None]
    ordered = sorted(known, key=lambda row: row[key], reverse=sort.startswith("-")) + unknown
    return [row for row in ordered if not aside(row)] + [row for row in ordered if aside(row)]


def page_number(text: str, row_count: int, size: int) -> int:
    """The page that `text` names, kept between the first and the last."""
    last = max(1, -(-row_count // size))
    return min(max(1, int(text)), last) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def _header(spec: TableSpec, column: Column, sort: str, query: QueryDict) -> Header:
    descending = sort.startswith("-")
    is_sorted = sort.removeprefix("-") == column.key
    first = f"-{column.key}" if column.numeric else column.key
    wanted = first if not is_sorted else (column.key if descending else f"-{column.key}")
    order = ("descending" if descending else "ascending") if is_sorted else ""
    return Header(column, _changed(query, {spec.parameter("sort"): wanted, spec.parameter("page"): ""}), order)


def _cells(columns: Sequence[Column], row: Row) -> list[Cell]:
    return [
        Cell(row.get(column.key), column.kind, column.link(row) if column.link else None, column.numeric) for column in columns
    ]


def _total_cells(columns: Sequence[Column], total: Row) -> list[Cell]:
    cells = [Cell(total.get(column.key), column.kind, None, column.numeric) if column.numeric else None for column in columns]
    return [Cell("Total", "text", None, False)] + [cell or Cell(" ", "text", None, False) for cell in cells[1:]]


def pager(query: QueryDict, parameter: str, number: int, row_count: int, size: int) -> Step | None:
    """Links to the pages before and after page `number`; None when all rows fit one page."""
    if row_count <= size:
        return None
    first, last = (number - 1) * size + 1, min(number * size, row_count)
    return Step(
        _changed(query, {parameter: str(number - 1)}) if number > 1 else "",
        _changed(query, {parameter: str(number + 1)}) if last < row_count else "",
        f"{first:,}–{last:,} of {row_count:,}",
    )


def _changed(query: QueryDict, changes: Mapping[str, str]) -> str:
    changed = query.copy()
    for name, value in changes.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return f"?{changed.urlencode()}"
