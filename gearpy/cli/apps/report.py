"""``gear report``: one HTML file with all that is known of a run."""

import re
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Annotated, Any, Final, NamedTuple

import msgspec

import gearpy
from gearpy.cli.terminal.options import AppRef, Given, asking, option
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.looking import alerts_about, look_at
from gearpy.config.hidden import shown_setting
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import AskTimeout, ConfigError, SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import (
    GetCluster,
    GetEpochs,
    GetPlan,
    GetSubmission,
    ListQuarantined,
    QuarantinedRecord,
)
from gearpy.messages.metrics import SeriesData
from gearpy.views import text
from gearpy.views.app import app_view, processor_view

#: Rates are counted from one look to the other.
_APART_S: Final = 1.0
_RECORDS_MAX: Final = 100
_PAGE: Final = Path(gearpy.__file__).parent / "services" / "page"
#: A module of the page names another by the way to it from its own folder.
_IMPORT: Final = re.compile(r"""((?:from|import)\s*)"(\.{1,2}/[^"]+)\"""")
#: The file runs what is in it, and asks nobody for anything.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' data:; img-src data:"
)


class Report(NamedTuple):
    """All that a report is made of."""

    app_id: AppId
    name: str
    at_ms: int
    cluster_id: str
    answers: dict[str, Any]
    refused: dict[str, str]
    missing: list[str]


@asking
def report(
    given: Given,
    ref: AppRef,
    *,
    output: Annotated[
        Path | None,
        option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write it; default: NAME-ID.html in this folder.",
        ),
    ] = None,
) -> None:
    """Write all that is known of an application into one HTML file, to keep or to send on."""
    with given.client() as client:
        made = report_of(client, client.find(ref))
    name = re.sub(r"[^\w.-]+", "-", made.name, flags=re.ASCII).strip(".-") or "application"
    path = output or Path(f"{name}-{made.app_id}.html")
    try:
        path.write_text(report_html(made), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; name another with -o") from error
    if given.as_json:
        print_json({"app_id": made.app_id, "file": str(path), "missing": made.missing})
        return
    print(f"wrote {path} ({path.stat().st_size // 1024 + 1} KiB)")
    for each in made.missing:
        print(f"missing: {each}")


def report_of(client: ClusterClient, app_id: AppId) -> Report:
    before = look_at(client, app_id, lately_ms=None)
    look = before
    if before.metrics is not None and before.summary.status not in TERMINAL:
        time.sleep(_APART_S)
        look = look_at(client, app_id, lately_ms=None)
    view = app_view(look, before, alerts=alerts_about(client, app_id))
    base = f"appmaster/{app_id}"
    answers: dict[str, Any] = {
        "session": {"scopes": ["read"], "login_required": False},
        f"{base}/view": view,
        f"{base}/series": look.series or SeriesData(app_id=app_id),
    }
    for each in look.detail.processors if look.detail else ():
        number = each.processor_id
        answers[f"{base}/processor/{number}"] = processor_view(look, number, before)
    refused, missing = dict[str, str](), list[str]()
    if look.detail is None:
        missing.append("processors, tasks and errors: nobody knows them (any more)")
    elif look.known_ms:
        missing.append(f"what came later; it is shown {text.past(look.known_ms)}")
    if look.detail is not None and look.metrics is None:
        missing.append("measurements: its app master does not give them")
    for name, ask in _QUESTIONS.items():
        try:
            answers |= {f"{base}/{path}": said for path, said in ask(client, app_id).items()}
        except (SubmitRefused, AskTimeout) as error:
            refused[f"{base}/{name}"] = str(error)
            if name in _TOLD:
                missing.append(f"{_TOLD[name]}: {error}")
    cluster_id = client.ask(GetCluster()).cluster_id
    return Report(app_id, view.name, view.at_ms, cluster_id, answers, refused, missing)


def _config(client: ClusterClient, app_id: AppId) -> dict[str, Any]:
    own = client.ask(GetSubmission(app_id=app_id)).config  # A file to send on: without secrets.
    return {"config": {key: shown_setting(key, own[key]) for key in own}}


def _quarantine(client: ClusterClient, app_id: AppId) -> dict[str, Any]:
    """Return the list of records, and each with its traceback; their bytes stay where they are."""
    listed = client.ask(ListQuarantined(app_id=app_id))
    numbers = [each.number for each in listed.records[-_RECORDS_MAX:]]
    whole = (
        client.ask(ListQuarantined(app_id=app_id, numbers=tuple(numbers))).records
        if numbers
        else ()
    )
    answers: dict[str, Any] = {
        f"quarantine?number={each.number}": {"records": [_without_value(each)]} for each in whole
    }
    records = [_without_value(each) for each in listed.records]
    return answers | {"quarantine": {"total": listed.total or len(records), "records": records}}


def _without_value(record: QuarantinedRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _OF_RECORD}


_OF_RECORD: Final = ("number", "processor_id", "event_time_ms", "at_ms", "error")
#: Paths that the page asks for beside views, and who answers.
_QUESTIONS: Final[dict[str, Callable[[ClusterClient, AppId], dict[str, Any]]]] = {
    "config": _config,
    "quarantine": _quarantine,
    "plan": lambda client, app_id: {
        "plan": msgspec.json.decode(client.ask(GetPlan(app_id=app_id)).text)
    },
    "checkpoints": lambda client, app_id: {
        "checkpoints": {"epochs": client.ask(GetEpochs(app_id=app_id)).epochs}
    },
}
_TOLD: Final = {"config": "settings", "quarantine": "records in quarantine"}


def report_html(report: Report) -> str:
    """Return the page with what it needs in one file; modules are URLs of data, by name."""
    modules = {}
    for path in sorted(_PAGE.rglob("*.js")):
        name = path.relative_to(_PAGE).as_posix()
        folder = dirname(name)
        source = _IMPORT.sub(
            lambda found: f'{found[1]}"{normpath(join(folder, found[2]))}"',  # noqa: B023 - at once
            path.read_text("utf-8"),
        )
        modules[name] = f"data:text/javascript;base64,{b64encode(source.encode()).decode()}"
    style = "".join(
        (_PAGE / name).read_text("utf-8")
        for name in re.findall(r'"stylesheet" href="([^"]+)"', (_PAGE / "index.html").read_text())
    )
    data = {**report._asdict(), "version": gearpy.__version__}
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{text.html(report.name)} · gearpy</title><style>{style}</style>
<script>{(_PAGE / "app/early.js").read_text("utf-8")}</script>
<script type="application/json" id="report">{_script(data)}</script>
<script type="text/plain">{(_PAGE / "vendor/LICENSES.txt").read_text("utf-8")}</script>
<script type="importmap">{_script({"imports": modules})}</script>
<script type="module">import "app/main.js";</script>
</head><body><div id="page"></div>
<noscript><p>This file shows itself by JavaScript that is in it; it asks nobody.</p></noscript>
</body></html>
"""


def _script(data: Any) -> str:
    """Return JSON that ends no element of HTML, whatever texts are in it."""
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")
