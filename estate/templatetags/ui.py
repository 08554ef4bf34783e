"""The shell, and numbers as people read them: three significant digits and a unit, exact in `title`, unknown as a dash."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django import template
from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from estate.domain.units import HOUR, Number, duration_text, scaled, significant
from estate.models import User

register = template.Library()

UNKNOWN = mark_safe('<span class="none" title="unknown">–</span>')
SMALLEST_CHANGE = 0.0005
KEPT_PARAMETERS = ("period", "from", "to", "cluster", "partition", "project", "gpu_model")


class RailItem(NamedTuple):
    """A page in the rail: its route, name, letter after `g`, icon (SVG path), link, and whether it is the page shown."""

    route: str
    label: str
    key: str
    icon: str
    href: str = ""
    current: bool = False


PAGES = (
    RailItem("overview", "Overview", "o", "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z"),
    RailItem("utilisation", "Utilisation", "u", "M1.5 12l4-5 3 3 6-7M1.5 14.5h13"),
    RailItem("queues", "Queues", "q", "M8 2a6 6 0 100 12A6 6 0 008 2zM8 4.5V8l2.5 1.5"),
    RailItem("costs", "Costs", "c", "M3 14V8M8 14V2M13 14V5"),
    RailItem("statements", "Statements", "s", "M3.5 1.5h9v13l-2-1.5-2.5 1.5L5.5 13l-2 1.5zM6 5h4M6 8h4"),
    RailItem("projects", "Projects", "p", "M1.5 4h4l1.5 2h7.5v7.5h-13z"),
    RailItem("estate", "Estate", "e", "M2 2.5h12v4H2zM2 9.5h12v4H2zM4.5 4.5h.01M4.5 11.5h.01"),
    RailItem("fit", "Workload fit", "w", "M2 8h4l2-5 2 10 2-5h2"),
    RailItem("collectors", "Collectors", "l", "M8 1.5v8M4.5 6.5L8 10l3.5-3.5M2 11.5v3h12v-3"),
)


FOR_ANSWERABLE = {"collectors"}


@register.simple_tag
def estate_name() -> str:
    """What this installation is called."""
    return str(settings.ESTATE_NAME)


@register.simple_tag(takes_context=True)
def theme_attribute(context: Mapping[str, Any]) -> str:
    """` data-theme="…"` when the person chose one (a cookie, so that the first paint is right already)."""
    request = context.get("request")
    chosen = request.COOKIES.get("theme") if request else None
    return format_html(' data-theme="{}"', chosen) if chosen in {"light", "dark"} else ""


def _href(route: str, query: str) -> str:
    try:
        return reverse(route) + query
    except NoReverseMatch:
        return ""


def kept_query(request: HttpRequest) -> str:
    """`?…` with the scope and the period of `request`, so that they follow from page to page."""
    kept = request.GET.copy()
    for name in list(kept):
        if name not in KEPT_PARAMETERS:
            del kept[name]
    return f"?{kept.urlencode()}" if kept else ""


def _items(request: HttpRequest | None) -> list[RailItem]:
    match = request.resolver_match if request else None
    shown = (match.url_name or "") if match else ""
    query = kept_query(request) if request else ""
    items = (page._replace(href=_href(page.route, query), current=_covers(page.route, shown)) for page in PAGES)
    return [item for item in items if item.href and (item.route not in FOR_ANSWERABLE or _answers_for_all(request))]


def _answers_for_all(request: HttpRequest | None) -> bool:
    user = getattr(request, "user", None)
    return isinstance(user, User) and (user.is_staff or user.may_see_everything)


def _covers(route: str, shown: str) -> bool:
    return shown == route or shown.startswith((route + "-", route.rstrip("s") + "-"))


@register.inclusion_tag("components/_rail.html", takes_context=True)
def rail(context: Mapping[str, Any]) -> dict[str, Any]:
    """Links to the pages that exist."""
    return {"items": _items(context.get("request"))}


@register.simple_tag(takes_context=True)
def rail_keys(context: Mapping[str, Any]) -> list[RailItem]:
    """The same pages, for the help."""
    return _items(context.get("request"))


def _number(value: Number, unit: str, exact: str) -> SafeString:
    """Three digits, the unit small beside them, the exact value in `title`."""
    shown = format_html(" <small>{}</small>", unit) if unit else ""
    return format_html('<span title="{}">{}{}</span>', exact, scaled(value), shown)


def _exact(value: Number) -> str:
    return f"{Decimal(str(value)).normalize():,f}"


@register.filter
def gpu_hours(seconds: Number | None) -> SafeString:
    """GPU-seconds as GPU-hours."""
    if seconds is None:
        return UNKNOWN
    hours = Decimal(str(seconds)) / HOUR
    return _number(hours, "h", f"{_exact(round(hours, 6))} GPU-hours")


@register.filter
def count(value: Number | None) -> SafeString:
    """A number of things, whole below 10,000."""
    return UNKNOWN if value is None else _number(value, "", _exact(value))


@register.filter
def ratio(value: Number | None) -> SafeString:
    """0…1 as per cent."""
    if value is None:
        return UNKNOWN
    percent = Decimal(str(value)) * 100
    return format_html('<span title="{} %">{} <small>%</small></span>', _exact(round(percent, 6)), significant(round(percent, 1)))


@register.filter
def money(value: Number | None) -> SafeString:
    """An amount in the estate's currency."""
    return (
        UNKNOWN
        if value is None
        else _number(value, settings.ESTATE_CURRENCY, f"{Decimal(str(value)):,f} {settings.ESTATE_CURRENCY}")
    )


@register.filter
def cents(value: Number | None) -> SafeString:
    """An amount with all its decimals, for sums that are checked by eye."""
    return UNKNOWN if value is None else format_html("{} {}", f"{Decimal(str(value)):,.2f}", settings.ESTATE_CURRENCY)


@register.filter
def duration(seconds: Number | None) -> SafeString:
    """A length of time."""
    return UNKNOWN if seconds is None else format_html('<span title="{} s">{}</span>', _exact(seconds), duration_text(seconds))


@register.filter
def when(instant: datetime | date | None) -> SafeString:
    """An instant to the minute in UTC, or a date."""
    if instant is None:
        return UNKNOWN
    if not isinstance(instant, datetime):
        return format_html("{}", instant.isoformat())
    return format_html('<time datetime="{}">{} UTC</time>', instant.isoformat(), f"{instant.astimezone(UTC):%Y-%m-%d %H:%M}")


@register.filter
def text(value: object) -> SafeString:
    return UNKNOWN if value in (None, "") else format_html("{}", value)


STATE_LEVELS = {"up": "good", "down": "bad", "planned down": "warn", "reserved": ""}


@register.filter
def state(value: str) -> SafeString:
    """A node's state as a badge: a word and a shape, not a colour alone."""
    return format_html('<span class="badge {}">{}</span>', STATE_LEVELS.get(value, "none"), value)


WORTH_LEVELS = {"enforced": "good", "bypassable": "warn", "not enforced": "bad"}


@register.filter
def worth(level: str) -> SafeString:
    """What a limit is worth, as a badge."""
    return format_html('<span class="badge {}">{}</span>', WORTH_LEVELS.get(level, "none"), level)


SHOWN_AS: dict[str, Callable[[Any], SafeString]] = {
    "text": text,
    "count": count,
    "gpu_hours": gpu_hours,
    "ratio": ratio,
    "money": money,
    "cents": cents,
    "duration": duration,
    "when": when,
    "state": state,
    "worth": worth,
}


@register.filter
def show(value: object, kind: str) -> SafeString:
    """`value` as its column's kind says (a key of SHOWN_AS)."""
    return SHOWN_AS[kind](value)


@register.filter
def plain(value: Number | None) -> SafeString:
    """A value of a chart, two decimals at most."""
    return UNKNOWN if value is None else format_html("{}", f"{round(float(value), 2):,g}" if value < 1e6 else f"{value:,.0f}")


@register.filter
def any_value(values: Sequence[Number | None]) -> bool:
    """Whether there is anything but nothing and unknown in a series."""
    return any(values)


@register.filter
def change(kpi: Any) -> SafeString:
    """What changed since the period before, with an arrow; empty when it is not known."""
    value = kpi.change
    if value is None:
        return SafeString("")
    if abs(value) < SMALLEST_CHANGE:
        return SafeString("as before")
    arrow, word = ("up", "more than") if value > 0 else ("down-arrow", "less than")
    amount = f"{abs(value) * 100:.1f} points" if kpi.change_kind == "points" else f"{abs(value) * 100:.0f} %"
    return format_html(
        '<span class="{}">{} <span class="sr">{}</span><span aria-hidden="true">vs</span> before</span>', arrow, amount, word
    )
