"""The page in a real browser, with a real cluster whose executors are processes."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, Route, expect

import gearpy as gp
from gearpy.cli.apps.report import report_html
from gearpy.cluster.client.report import report_of
from gearpy.cluster.master.last_answers import LastAnswers
from gearpy.ids import AppId
from gearpy.messages.client import Artifact, DescribeApplication, GetApplication
from gearpy.messages.cluster import LastAnswer
from gearpy.messages.metrics import SeriesData
from gearpy.services.server import Services
from tests.eventually import eventually
from tests.services.conftest import PLENTY
from tests.services.page.conftest import (
    ANSWERS,
    FAILS,
    NARROW,
    SLOW,
    WIDE,
    WORD_COUNT,
    Gate,
    Shown,
    Tab,
)

SCREENS: Final = (
    "#/",
    "#/apps",
    "#/workers",
    "#/alerts",
    "#/submit",
    "#/app/1",
    "#/app/1/step/0",
    "#/app/1/executor/0",
    "#/app/1/executor/-1",
    "#/app/1/errors",
    "#/app/1/checkpoints",
    "#/app/1/plan",
    "#/app/1/versions",
    "#/app/1/config",
)
#: One that keeps something.
STEP: Final = "#/app/1/step/1"
BYTES_MAX: Final = 500_000
MANY: Final = 1_000
MEASURED: Final = 5  #: Points of a chart that shows something.
MANY_DRAWN: Final = 80  #: Rows of a table, of which some are out of sight.
#: Has questions for measurements answered with a body that never ends well.
_CUTS_SERIES_OFF: Final = """
const real = fetch;
const cut = () => new ReadableStream({start: (body) => body.error(new TypeError("cut off"))});
window.cuts = 0;
window.fetch = async (path, ...more) => {
  if (!String(path).includes("/series")) return real(path, ...more);
  cuts += 1;
  return new Response(cut());
};
"""
#: Controls that a screen reader would read as nothing.
_NAMELESS: Final = """
() => [...document.querySelectorAll("a, button, input, select, textarea")]
  .filter((each) => !(each.innerText || each.ariaLabel || each.title || each.labels?.length))
  .map((each) => each.outerHTML)
"""


@pytest.fixture(scope="module")
def app_id(shown: Shown) -> int:
    """Submit an endless word count by the page, as a user does; return its number."""
    (shown.folder / "broken").touch()
    (shown.folder / "out").mkdir()
    program = shown.folder / "wordcount.py"
    program.write_text(WORD_COUNT, encoding="utf-8")
    tab = shown.tab()
    tab.go("#/apps")
    tab.page.get_by_role("link", name="Submit…").click()
    tab.page.set_input_files("input[type=file]", program)
    tab.page.get_by_label("arguments").fill(f"{shown.folder}/broken {shown.folder}/out")
    tab.page.get_by_label("executors").fill("2")
    settings = "application.on-error = quarantine\napplication.trial-seconds = 1"
    tab.page.get_by_label("settings").fill(settings)
    tab.page.get_by_role("button", name="Submit").click()
    expect(tab.page.get_by_role("heading", name="wordcount")).to_be_visible()
    expect(tab.page.locator(".title .chip")).to_have_text("active")
    number = int(tab.page.url.rpartition("/")[2])
    eventually(
        lambda: shown.cluster.client.ask(GetApplication(app_id=AppId(number))).progress.epoch > 1,
        within_s=180,
    )
    assert tab.complaints == []
    tab.page.context.close()
    return number


def test_rates_move_and_the_graph_stays_where_it_is(shown: Shown, app_id: int) -> None:
    tab = shown.tab()
    tab.go(f"#/app/{app_id}")
    step = tab.page.locator("a.step").first
    expect(step).to_have_attribute("aria-label", re.compile(r"lines.*1 task, [\d.]+.?k?/s records"))
    tasks = tab.page.get_by_role("table", name="tasks").locator("tbody")
    place, before = step.get_attribute("style"), tasks.inner_text()

    expect(tasks).not_to_have_text(before)

    assert step.get_attribute("style") == place
    expect(tab.page.locator(".chart canvas")).to_have_count(4)
    _keep(tab.page, "application")
    assert tab.complaints == []
    tab.page.context.close()


def test_charts_look_back_an_hour_and_a_day_and_the_plan_is_a_graph(
    shown: Shown, app_id: int
) -> None:
    tab = shown.tab()
    tab.go(f"#/app/{app_id}")
    ranges = tab.page.get_by_role("group", name="how far charts look back")
    for words, within in {"1 h": "1h", "24 h": "24h"}.items():
        with tab.page.expect_response(re.compile(f"series.within={within}")) as answer:
            ranges.get_by_role("button", name=words).click()
        assert answer.value.ok
        expect(ranges.locator("[aria-pressed=true]")).to_have_text(words)
        expect(tab.page.locator(".chart canvas")).to_have_count(4)
    ranges.get_by_role("button", name="10 min").click()
    expect(tab.page.locator(".chart header span").first).to_have_text(re.compile(r"^[\d.]+"))

    tab.go(f"#/app/{app_id}/plan")
    boxes = tab.page.get_by_label("plan", exact=True).get_by_role("button")
    expect(boxes).to_have_count(2)
    expect(boxes.first).to_contain_text("0: lines")
    boxes.last.click()
    expect(tab.page.get_by_role("table", name="steps of 1")).to_be_in_viewport()
    assert tab.complaints == []
    tab.page.context.close()


def test_an_alert_is_silenced_also_for_the_next_visit_until_that_is_ended(shown: Shown) -> None:
    program = shown.folder / "broken.py"
    program.write_text(FAILS, encoding="utf-8")
    artifact = Artifact(kind="file", location=str(program))
    options = {"application.total-retries": "0", "application.on-error": "fail"}
    shown.cluster.client.submit("broken", artifact, config=options)
    tab = shown.tab()
    tab.go("#/alerts")
    alerts = tab.page.get_by_role("table", name="alerts").locator("tbody tr")
    fired = alerts.filter(has_text="broken")
    expect(fired).to_contain_text("failed")
    lately = tab.page.get_by_role("table", name="what has fired lately")
    expect(lately.locator("tbody tr").filter(has_text="broken")).to_contain_text("failed")
    rules = tab.page.get_by_role("table", name="rules").locator("tbody tr")
    expect(rules.filter(has_text="failed")).to_contain_text("fires")

    fired.get_by_role("button", name="Silence…").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_label("How long").select_option("1 day")
    _keep(tab.page, "silence")
    dialog.get_by_role("button", name="Silence").click()

    silenced = tab.page.get_by_role("table", name="silenced").locator("tbody tr")
    expect(silenced.filter(has_text="broken")).to_contain_text("failed")
    expect(fired).to_have_count(0)
    tab.page.set_viewport_size(NARROW)
    tab.page.reload()
    expect(silenced.filter(has_text="broken")).to_contain_text("failed")
    assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    _keep(tab.page, "silenced-400")
    silenced.get_by_role("button", name="End").click()
    expect(fired).to_have_count(1)
    expect(silenced).to_have_count(0)
    assert tab.complaints == []
    tab.page.context.close()


def test_an_answer_that_is_cut_off_breaks_nothing(shown: Shown, app_id: int) -> None:
    tab = shown.tab()
    tab.page.add_init_script(_CUTS_SERIES_OFF)
    tab.go(f"#/app/{app_id}")

    expect(tab.page.locator(".chart header span").first).to_have_text(re.compile(r"^[1-9]"))
    tab.page.wait_for_function("cuts > 0")
    tab.page.evaluate("new Promise((done) => setTimeout(done, 100))")  # What comes of it is told.

    assert tab.complaints == []
    tab.page.context.close()


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        pytest.param(WIDE, "light", id="wide-light"),
        pytest.param(NARROW, "dark", id="narrow-dark"),
        # A theme has colours, no sizes: each width and each theme has been seen.
        pytest.param(WIDE, "dark", id="wide-dark", marks=pytest.mark.long),
        pytest.param(NARROW, "light", id="narrow-light", marks=pytest.mark.long),
    ],
)
def test_every_screen_fits_and_says_what_its_controls_do(
    shown: Shown, app_id: int, size: dict[str, int], theme: str
) -> None:
    tab = shown.tab(viewport=size, color_scheme=theme)
    for address in SCREENS:
        tab.go(address.replace("/1", f"/{app_id}", 1) if "/app/" in address else address)
        expect(tab.page.locator("h1")).to_be_visible()
        expect(tab.page.locator("body")).not_to_contain_text("Asking")
        _keep(
            tab.page,
            f"{address.strip('#/').replace('/', '-') or 'overview'}-{size['width']}-{theme}",
        )
        wide = tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{address} is {wide} pixels too wide at {size['width']}"
        assert tab.page.evaluate(_NAMELESS) == [], address
    assert tab.complaints == []
    tab.page.context.close()


def test_an_executor_that_is_killed_is_told_and_comes_back(shown: Shown, app_id: int) -> None:
    """Its process gets SIGKILL; the page tells it, and that the numbers go on."""
    victim = (
        shown.cluster.client.ask(DescribeApplication(app_id=AppId(app_id)))
        .executors[-1]
        .executor_id
    )
    tab = shown.tab()
    tab.go(f"#/app/{app_id}/executor/{victim}")
    process = tab.page.locator("dt:text-is('process') + dd")
    expect(process).to_have_text(re.compile(r"\d+"))
    pid = int(process.inner_text())

    os.kill(pid, signal.SIGKILL)

    expect(process).to_have_text(re.compile(rf"^(?!{pid}$)\d+$"))
    tab.go(f"#/app/{app_id}")
    events = tab.page.get_by_role("table", name="events")
    expect(events).to_contain_text(f"executor {victim}")
    rate = tab.page.locator(".chart header span").first
    expect(rate).to_have_text(re.compile(r"^[1-9]"))
    tab.go(f"#/app/{app_id}/errors")
    expect(tab.page.locator(".part").filter(has_text=f"executor {victim}").first).to_be_visible()
    _keep(tab.page, "failures")
    assert tab.complaints == []
    tab.page.context.close()


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_a_report_is_the_page_in_a_file(shown: Shown, app_id: int, theme: str) -> None:
    path = shown.folder / f"report-{theme}.html"
    made = report_of(shown.cluster.client, AppId(app_id))
    text = report_html(replace(made, name="</title><script>alert(1)</script>"))
    path.write_text(text, encoding="utf-8")
    tab = shown.tab(offline=True, color_scheme=theme)
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url.partition(":")[0]))

    tab.page.goto(path.as_uri())

    expect(tab.page.get_by_role("heading", name="wordcount")).to_be_visible()
    expect(tab.page.get_by_text("report of")).to_be_visible()
    expect(tab.page.locator("a.step").first).to_be_visible()
    expect(tab.page.locator(".chart canvas")).to_have_count(4)
    expect(tab.page.get_by_role("table", name="tasks").locator("tbody tr")).not_to_have_count(0)
    grounds = {"light": "rgb(250, 251, 251)", "dark": "rgb(16, 20, 26)"}
    expect(tab.page.locator("body")).to_have_css("background-color", grounds[theme])
    _keep(tab.page, f"report-{theme}")
    for name, words in {
        "Errors": "cannot split ? 20",
        "Checkpoints": "Kept checkpoints",
        "Plan": "exactly-once",
        "Configuration": "application.on-error",
    }.items():
        tab.page.get_by_label("parts of the application").get_by_text(name).click()
        expect(tab.page.get_by_text(words).first).to_be_visible()
    tab.page.get_by_label("parts of the application").get_by_text("Errors").click()
    tab.page.get_by_role("table", name="records in quarantine").locator(
        "tbody button"
    ).first.click()
    expect(tab.page.get_by_text("traceback", exact=True)).to_be_visible()
    for button in ("Kill…", "Replay…", "Restart…"):
        expect(tab.page.get_by_role("button", name=button)).to_have_count(0)
    assert set(asked) <= {"file", "data"}
    assert tab.complaints == []
    tab.page.context.close()


def test_a_record_in_quarantine_is_read_and_replayed(shown: Shown, app_id: int) -> None:
    tab = shown.tab()
    tab.go(f"#/app/{app_id}/errors")
    rows = tab.page.get_by_role("table", name="records in quarantine").locator("tbody tr")
    expect(rows).not_to_have_count(0)
    causes = tab.page.get_by_role("region", name="one cause")
    expect(causes).to_have_count(1)
    expect(causes).to_contain_text("split: ValueError: cannot split ? 20")
    rows.first.get_by_role("button").first.click()
    expect(tab.page.get_by_role("region", name="Record")).to_contain_text("words_of")
    (shown.folder / "broken").unlink()

    tab.page.get_by_role("button", name="Replay…").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("given back to the step that refused it")
    dialog.get_by_role("button", name="Replay").click()

    expect(tab.page.get_by_text("No record was put aside")).to_be_visible()
    assert tab.complaints == []
    tab.page.context.close()


def test_the_page_of_a_run_has_its_run_alone_and_marks_the_step_that_is_slow(
    browser: Browser, tmp_path: Path
) -> None:
    """What `gear run --ui` serves: nothing of a cluster, names as they are in the program."""
    program = tmp_path / "shop.py"
    program.write_text(SLOW, encoding="utf-8")
    settings = ("services.port=0", f"services.token-file={tmp_path}/tokens")
    keys = [f"--set={each}" for each in (*settings, "application.on-error=quarantine")]
    command = [sys.executable, "-m", "gearpy", "run", "--ui", *keys, str(program)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stderr is not None
            address = next(line for line in run.stderr if "the page of this run" in line).split()[
                -1
            ]
            tab = Tab.of(browser, address.partition("/?")[0], viewport=NARROW)
            tab.page.goto(address)

            slow = tab.page.locator("a.step.culprit")
            expect(slow).to_contain_text("ask")
            expect(tab.page.locator(".notice").first).to_contain_text(
                "orders > map(parse) is held back"
            )
            expect(tab.page.locator(".graph svg.lines path.waits")).to_have_count(1)
            expect(tab.page.locator(".graph svg.lines path.clock")).to_have_count(0)
            for screen in ("#/app/1", "#/", "#/apps", "#/alerts", "#/app/1/executor/0"):
                tab.go(screen)
                expect(tab.page.locator("main")).not_to_contain_text(re.compile("Asking|…$"))
                text = tab.page.locator("body").inner_text()
                assert not re.search(r"\b(worker|master|cluster|slots?)\b", text), (screen, text)
            tab.go("#/app/1/errors")
            causes = tab.page.get_by_role("region", name="one cause")
            expect(causes).to_have_count(2)
            expect(causes.filter(has_text="KeyError")).to_contain_text(
                "map(parse): KeyError: 'none'"
            )
            values = causes.filter(has_text="ValueError").get_by_role("table")
            expect(values).to_contain_text("invalid literal for int() with base 10: 'n/a'")
            expect(values).to_contain_text("invalid literal for int() with base 10: 'n/b'")
            assert tab.complaints == []
            tab.page.context.close()
        finally:
            run.send_signal(signal.SIGINT)
            run.communicate()


def test_the_state_of_a_step_is_looked_at(shown: Shown, app_id: int) -> None:
    tab = shown.tab()
    tab.go(STEP.replace("/1", f"/{app_id}", 1))
    state = tab.page.get_by_role("region", name="state")

    state.get_by_role("button", name="Look inside").click()
    expect(state).to_contain_text(re.compile(r"epoch [\d,]+: \d+ rows?"))
    _keep(tab.page, "state")

    state.get_by_label("key", exact=True).fill("no such word")
    state.get_by_role("button", name="Look inside").click()
    expect(state).to_contain_text("no such key")
    assert tab.complaints == []
    tab.page.context.close()


@pytest.mark.parametrize(
    "size", [WIDE, pytest.param(NARROW, marks=pytest.mark.long)], ids=["wide", "narrow"]
)
def test_it_is_scaled_and_goes_back(shown: Shown, app_id: int, size: dict[str, int]) -> None:
    tab = shown.tab(viewport=size)
    tab.go(f"#/app/{app_id}/versions")
    table = tab.page.get_by_role("table", name="versions")
    newest, dialog = table.locator("tbody tr").first, tab.page.get_by_role("dialog")
    expect(newest).to_contain_text("runs")
    before = table.locator("tbody tr").count()
    tasks = 3 if size is WIDE else 4

    tab.page.get_by_role("button", name="Scale…").press("Enter")
    box = dialog.get_by_role("spinbutton", name=re.compile("^window_count"))
    box.fill(str(tasks))
    box.press("Enter")
    expect(dialog.get_by_role("list", name="the plan")).to_contain_text(f"x2 to x{tasks}")
    _keep(tab.page, f"scale-{size['width']}")
    assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    box.press("Enter")

    expect(newest).to_contain_text("scale")
    expect(newest).to_contain_text("runs")
    expect(table.locator("tbody tr")).to_have_count(before + 1)
    table.get_by_role("button", name="Roll back…").last.press("Enter")
    expect(dialog.get_by_role("list", name="the plan")).to_contain_text(f"x{tasks} to x2")
    _keep(tab.page, f"rollback-{size['width']}")
    dialog.get_by_role("button", name="Roll back").press("Enter")

    expect(newest).to_contain_text("back to version 0")
    expect(newest).to_contain_text("runs")
    _keep(tab.page, f"versions-{size['width']}")
    assert tab.complaints == []
    tab.page.context.close()


def test_of_many_tasks_only_those_in_sight_are_drawn(shown: Shown, app_id: int) -> None:
    tab = shown.tab()
    tab.page.route("**/processor/1", _with_many_tasks)
    tab.go(STEP.replace("/1", f"/{app_id}", 1))
    table = tab.page.get_by_role("table", name="tasks")
    expect(table).to_have_attribute("aria-rowcount", str(MANY + 1))
    assert table.locator("tbody tr").count() < MANY_DRAWN

    tab.page.locator(".table.long").evaluate("(box) => box.scrollTo(0, box.scrollHeight)")

    expect(table).to_contain_text(f"1.{MANY - 1}")
    assert table.locator("tbody tr").count() < MANY_DRAWN
    tab.page.unroute_all(behavior="wait")
    assert tab.complaints == []
    tab.page.context.close()


def _with_many_tasks(route: Route) -> None:
    answer = route.fetch()
    told = answer.json()
    if not answer.ok:  # Not at present; the page asks again.
        route.fulfill(response=answer)
        return
    first = told["tasks"][0]
    told["tasks"] = [{**first, "task": f"1.{number}"} for number in range(MANY)]
    route.fulfill(response=answer, json=told)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_an_application_of_actors_is_asked(shown: Shown, size: dict[str, int]) -> None:
    program = shown.folder / "answers.py"
    program.write_text(ANSWERS, encoding="utf-8")
    with gp.connect(shown.cluster.address, config=shown.cluster.config) as client:
        running = client.submit_program(str(program))
        tab = shown.tab(viewport=size)
        tab.go(f"#/app/{running.app_id}")
        box = tab.page.get_by_role("region", name="questions")

        box.get_by_label("question").fill('["a", 1]')
        box.get_by_role("button", name="Ask").click()

        expect(box.locator("pre")).to_have_text(re.compile(r'"asked":\s+\[\s+"a",\s+1\s+\]'))
        expect(tab.page.get_by_role("link", name="Plan")).to_have_count(0)
        _keep(tab.page, f"actors-{size['width']}")
        assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert tab.complaints == []
        tab.page.context.close()
        running.shutdown()


def test_keys_find_go_and_help(shown: Shown, app_id: int) -> None:
    tab = shown.tab()
    tab.go("#/")
    expect(tab.page.get_by_role("heading", name="Overview")).to_be_visible()

    tab.page.keyboard.press("g")
    tab.page.keyboard.press("w")
    expect(tab.page.get_by_role("heading", name="Workers")).to_be_visible()
    tab.page.keyboard.press("?")
    expect(tab.page.get_by_role("dialog")).to_contain_text("step by step through the graph")
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
    tab.page.keyboard.press("/")
    expect(tab.page.get_by_role("combobox")).to_be_focused()
    tab.page.keyboard.type("wordc")
    expect(tab.page.get_by_role("option").first).to_contain_text("wordcount")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("heading", name="wordcount")).to_be_visible()
    assert tab.page.url.endswith(f"#/app/{app_id}")

    tab.page.locator("a.step").nth(1).focus()
    expect(tab.page.locator("section h2", has_text="Tasks of")).to_contain_text("window_count")
    assert tab.complaints == []
    tab.page.context.close()


@pytest.mark.usefixtures("app_id")
def test_a_page_that_lost_its_server_says_since_when_and_comes_back(shown: Shown) -> None:
    """The numbers stay, greyed; nothing has to be loaded again."""
    client, config = shown.cluster.client, shown.cluster.config
    tab = shown.tab()
    with Gate() as gate:
        with Services(client, config, limits=PLENTY, needs_token=False) as services:
            gate.lead_to(services)
            tab.page.goto(f"{gate.url}/#/")
            expect(tab.page.locator(".head")).to_contain_text("live")
            expect(tab.page.locator("main")).to_contain_text("wordcount")
            gate.lead_to(None)

        expect(tab.page.get_by_role("alert")).to_contain_text("the last numbers came")
        expect(tab.page.locator(".stale main")).to_contain_text("wordcount")
        with Services(client, config, limits=PLENTY, needs_token=False) as services:
            gate.lead_to(services)
            expect(tab.page.locator(".head")).to_contain_text("live")
            expect(tab.page.locator(".stale")).to_have_count(0)
            tab.page.context.close()


@pytest.mark.usefixtures("app_id")
def test_the_address_that_is_told_logs_in(shown: Shown) -> None:
    """Its token goes out of the address bar, and the screen stays; without it, the page asks."""
    with Services(shown.cluster.client, shown.cluster.config, limits=PLENTY) as services:
        tab = shown.tab()
        tab.page.goto(f"{services.page}#/apps")
        expect(tab.page.get_by_role("link", name="wordcount").first).to_be_visible()
        assert tab.page.url == f"{services.url}/#/apps"
        tab.page.reload()
        expect(tab.page.get_by_role("link", name="wordcount").first).to_be_visible()
        assert tab.complaints == []
        tab.page.context.close()

        stranger = shown.tab()
        stranger.page.goto(f"{services.url}/?token=gear_of_yesterday#/apps")
        expect(stranger.page.locator("form")).to_contain_text("gear token show")
        assert stranger.page.url == f"{services.url}/#/apps"
        assert services.started is not None
        stranger.page.get_by_label("token").fill(services.started.token)
        stranger.page.get_by_role("button", name="Log in").click()
        expect(stranger.page.get_by_role("link", name="wordcount").first).to_be_visible()
        stranger.page.context.close()


def test_it_is_small(shown: Shown, app_id: int) -> None:
    """500 kB in all, with the numbers of an application; events come as long as it is open."""
    tab, received = shown.tab(), list[float]()
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda said: received.append(said["encodedDataLength"]))
    tab.go(f"#/app/{app_id}")
    expect(tab.page.locator(".chart canvas")).to_have_count(4)

    assert 50_000 < sum(received) <= BYTES_MAX
    tab.page.context.close()


def test_it_paints_before_the_server_has_answered_anything(shown: Shown, app_id: int) -> None:
    tab, asked = shown.tab(), list[Route]()
    tab.page.route("**/api/**", lambda route: asked.append(route))  # noqa: PLW0108 - it sets marks on it
    tab.go(f"#/app/{app_id}")

    expect(tab.page.get_by_role("link", name="Applications")).to_be_visible()
    expect(tab.page.locator("main")).to_contain_text(f"Asking application {app_id}")

    assert asked
    for each in asked:
        each.abort()
    tab.page.context.close()


def test_a_kill_asks_once_and_says_what_happens_to_the_data(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = _hold_last_answers(monkeypatch)
    program = shown.folder / "endless.py"
    program.write_text(WORD_COUNT, encoding="utf-8")
    args = (f"{shown.folder}/nothing-is-broken", f"{shown.folder}/counted")
    artifact = Artifact(kind="file", location=str(program), args=args)
    app_id = shown.cluster.client.submit("endless", artifact).app_id
    eventually(
        lambda: shown.cluster.client.ask(GetApplication(app_id=app_id)).progress.epoch > 1,
        within_s=180,
    )
    eventually(lambda: len(shown.cluster.client.series(app_id).at_ms) > MEASURED, within_s=180)
    tab = shown.tab()
    tab.go(f"#/app/{app_id}")
    tab.page.get_by_role("button", name="Kill…").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile(r"A restart goes on from epoch \d+"))

    dialog.get_by_role("button", name="Kill").click()

    expect(tab.page.locator(".title .chip")).to_have_text("terminated")
    expect(tab.page.get_by_label("how it ended")).to_contain_text("ran for")
    expect(tab.page.get_by_role("button", name="Kill…")).to_have_count(0)
    assert tab.complaints == []
    tab.page.context.close()

    later = shown.tab()
    later.go(f"#/app/{app_id}")
    expect(later.page.get_by_label("how it ended")).to_contain_text("ran for")
    eventually(lambda: any(each.kind == SeriesData.__name__ for each, _ in late), within_s=120)
    for _, keep in late:
        keep()
    throughput = later.page.locator(".chart header span").first
    expect(throughput).to_have_text(re.compile(r"^\d"))  # Of the last point that was measured.
    assert later.complaints == []
    later.page.context.close()


def _hold_last_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> list[tuple[LastAnswer, Callable[[], None]]]:
    """Have the master hear late what app masters leave at their ends; return it as it comes."""
    held = list[tuple[LastAnswer, Callable[[], None]]]()
    keep = LastAnswers.keep

    def kept(self: LastAnswers, message: LastAnswer, *, at_ms: int, has_ended: bool) -> None:
        now = partial(keep, self, message, at_ms=at_ms, has_ended=has_ended)
        held.append((message, now)) if message.is_last else now()

    monkeypatch.setattr(LastAnswers, "keep", kept)
    return held


def _keep(page: Page, name: str) -> None:
    if folder := os.environ.get("GEARPY_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
