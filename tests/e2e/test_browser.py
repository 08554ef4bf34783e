"""Every page in headless Chromium, in both themes: it works, it is quiet, it asks nobody else, and axe finds nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, sync_playwright
from pytest_django.live_server_helper import LiveServer

from collectors import backfills
from collectors.models import Rejection, Run, Source
from collectors.windows import Span
from estate.models import Cluster, Project, User
from tests.web.rules import take_in
from tests.web.world import MARCH, WEEK, fill

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

PAGES = (
    f"/?{MARCH}",
    f"/utilisation/?{MARCH}",
    f"/utilisation/?{WEEK}",
    f"/queues/?{MARCH}&cluster=alpha",
    f"/costs/?{MARCH}",
    "/estate/",
    "/estate/nodes/alpha/gpu03/",
    "/collectors/",
    "/collectors/clusters/alpha/",
    "/estate/clusters/alpha/limits/",
    "/estate/gpu-models/?name=a100&means=NVIDIA-A100-SXM4-80GB",
)
WITH_CHART = PAGES[1:5]
MOST_BYTES = 100_000

OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists() and not os.environ.get("CI"):
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def session(lead: User, slurm: Cluster, vision: Project) -> str:
    """The session cookie of the lead, in an estate with usage."""
    fill(slurm)
    take_in(slurm)
    client = Client()
    client.force_login(lead)
    return client.cookies["sessionid"].value


def _collected(cluster: Cluster) -> None:
    """A source with a past that is being read, a run with refused lines, and records that got lost."""
    now = timezone.now()
    source = Source.objects.create(name="alpha-sacct", cluster=cluster, kind="sacct", next_due_at=now, watermark_at=now)
    backfills.request(source, Span(now - timedelta(days=60), now - timedelta(days=40)))
    run = Run.objects.create(
        cluster=cluster, source=source, kind="sacct", input_name="sacct", status="done", header="JobID|State", line_count=1,
        rejected_count=1, finished_at=now, window_from=now - timedelta(days=2), window_to=now,
    )  # fmt: skip
    Rejection.objects.create(run=run, line_number=2, raw="x", reason="2 columns where the header has 3")


@pytest.fixture
def open_page(browser: Browser, live_server: LiveServer, session: str) -> Iterator[OpenPage]:
    """Opens a path and fails the test for any console message, failed request, or request to another host."""
    contexts: dict[tuple[str, bool, int], BrowserContext] = {}
    complaints: list[str] = []

    def open_path(path: str, *, theme: str = "light", scripts: bool = True, width: int = 1280) -> Page:
        key = (theme, scripts, width)
        if key not in contexts:
            contexts[key] = _context(browser, *key)
            contexts[key].add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page = contexts[key].new_page()
        _listen(page, complaints, live_server.url)
        page.goto(live_server.url + path, wait_until="networkidle")
        return page

    yield open_path
    for context in contexts.values():
        context.close()
    assert complaints == []


def _context(browser: Browser, theme: str, scripts: bool, width: int) -> BrowserContext:
    scheme: Literal["dark", "light"] = "dark" if theme == "dark" else "light"
    return browser.new_context(color_scheme=scheme, java_script_enabled=scripts, viewport={"width": width, "height": 900})


def _listen(page: Page, complaints: list[str], home: str) -> None:
    """Write down what a page should not do."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(f"console: {message.text}")

    def on_request(request: Request) -> None:
        if request.url.startswith(("http:", "https:", "ws:", "wss:")) and not request.url.startswith(home):
            complaints.append(f"another host: {request.url}")

    def on_response(response: Response) -> None:
        if response.status >= 400:
            complaints.append(f"{response.status} {response.url}")

    def on_failure(request: Request) -> None:
        complaints.append(f"failed: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", on_request)
    page.on("response", on_response)
    page.on("requestfailed", on_failure)


def violations(page: Page) -> list[str]:
    """What axe-core finds, in a line each."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"][:3]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_quiet_and_accessible(open_page: OpenPage, theme: str) -> None:
    for path in PAGES:
        page = open_page(path, theme=theme)
        assert page.locator("h1").count() == 1, path
        assert violations(page) == [], path


def test_plotly_takes_over_the_drawing(open_page: OpenPage) -> None:
    for path in WITH_CHART:
        page = open_page(path)
        page.wait_for_selector(".plot.drawn .main-svg")
        assert page.locator("svg.chart-svg").is_hidden(), path


def test_the_figure_follows_the_theme(open_page: OpenPage) -> None:
    page = open_page(f"/costs/?{MARCH}")
    page.wait_for_selector(".plot.drawn .bars path")
    colour = "() => getComputedStyle(document.querySelector('.plot .bars path')).fill"
    light = page.evaluate(colour)
    for _ in range(2):
        page.get_by_role("button", name="Theme").click()
    page.wait_for_function(f"light => ({colour})() !== light", arg=light)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload(wait_until="networkidle")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_every_page_is_complete_without_scripts(open_page: OpenPage) -> None:
    for path in PAGES:
        page = open_page(path, scripts=False)
        assert page.locator("main table:visible").count() > 0 or path == "/collectors/", path
        if path in WITH_CHART:
            assert page.locator("svg.chart-svg").is_visible(), path
            page.locator("details.data summary").click()
            assert page.locator("details.data table").is_visible(), path


def test_filters_work_without_scripts(open_page: OpenPage) -> None:
    page = open_page(f"/costs/?{MARCH}", scripts=False)
    page.locator("summary", has_text="Project").click()
    page.get_by_label("Vision").check()
    page.locator("details[open] button", has_text="Apply").click()
    assert "project=Vision" in page.url
    assert page.locator(".chip", has_text="Vision").is_visible()


def test_filters_apply_when_the_menu_closes(open_page: OpenPage) -> None:
    page = open_page(f"/queues/?{MARCH}")
    page.locator("summary", has_text="Partition").click()
    page.get_by_label("train").check()
    with page.expect_navigation():
        page.locator("h1").click()
    assert "partition=train" in page.url
    assert "from=2026-03-01" in page.url


def test_the_keyboard_goes_everywhere(open_page: OpenPage) -> None:
    page = open_page("/estate/")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("g")
        page.keyboard.press("q")
    assert urlsplit(page.url).path == "/queues/"


def test_the_first_tab_skips_to_the_content(open_page: OpenPage) -> None:
    page = open_page("/estate/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")


def test_every_page_fits_a_phone(open_page: OpenPage) -> None:
    for path in PAGES:
        page = open_page(path, width=375)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, path


def test_every_page_is_light(browser: Browser, live_server: LiveServer, session: str) -> None:
    """At most 100 kB without Plotly, even before the static files are compressed."""
    context = browser.new_context()
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page = context.new_page()
    sizes: dict[str, int] = {}

    def on_response(response: Response) -> None:
        sizes[response.url] = int(response.headers.get("content-length", 0))

    page.on("response", on_response)
    for path in PAGES:
        sizes.clear()
        page.goto(live_server.url + path, wait_until="networkidle")
        assert 0 < sum(size for url, size in sizes.items() if "plotly" not in url) <= MOST_BYTES, path
    context.close()


def test_a_cell_of_the_heat_map_says_what_it_is(open_page: OpenPage) -> None:
    page = open_page(f"/utilisation/?{MARCH}")
    page.locator("[data-heat] tbody tr:has-text('gpu01') td").nth(1).hover()
    title = page.locator("[data-heat] tbody td[title]").get_attribute("title")
    assert title == "gpu01 · Mon 02 Mar 2026 · 23 %"


def test_printing_leaves_out_what_is_no_content(open_page: OpenPage) -> None:
    page = open_page(f"/costs/?{MARCH}")
    page.emulate_media(media="print")
    assert page.locator(".rail").is_hidden()
    assert page.locator("form.filters").is_hidden()
    assert page.locator("main table:visible").count() > 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_sign_in_page_is_accessible_and_leads_in(open_page: OpenPage, live_server: LiveServer, theme: str) -> None:
    page = open_page("/estate/", theme=theme)
    page.get_by_role("button", name="Sign out").click()
    assert urlsplit(page.url).path == "/sign-in"
    assert violations(page) == []
    page.get_by_label("User name").fill("lead")
    page.get_by_label("Password").fill("lead")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{live_server.url}/", wait_until="networkidle")
