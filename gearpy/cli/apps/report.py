"""``gear report``: one HTML file with all that is known of a run."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from gearpy import __version__
from gearpy.cli.terminal.options import AppRef, Given, asking
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.looking import alerts_about, look_at
from gearpy.config.hidden import shown_setting
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import AskTimeout, ConfigError, SubmitRefused
from gearpy.ids import AppId
from gearpy.views import text
from gearpy.views.app import app_view, processor_view
from gearpy.views.look import Look
from gearpy.views.report import Report, report_html

#: Rates are counted from one look to the other.
_APART_S: Final = 1.0


@asking
def report(
    given: Given,
    ref: AppRef,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write it; default: NAME-ID.html in this folder.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write all that is known of an application into one HTML file, to keep or to send on."""
    with given.client() as client:
        app_id = client.find(ref)
        made = _report(client, app_id)
    path = output or Path(f"{_file_name(made.view.name)}-{app_id}.html")
    try:
        path.write_text(report_html(made), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; name another with -o") from error
    if given.as_json:
        print_json({"app_id": app_id, "file": str(path), "missing": list(made.missing)})
        return
    print(f"wrote {path} ({path.stat().st_size // 1024 + 1} KiB)")
    for each in made.missing:
        print(f"missing: {each}")


def _report(client: ClusterClient, app_id: AppId) -> Report:
    before = look_at(client, app_id, lately_ms=None)
    look = before
    if before.metrics is not None and before.summary.status not in TERMINAL:
        time.sleep(_APART_S)
        look = look_at(client, app_id, lately_ms=None)
    missing = [*_missing(look)]
    try:
        own = client.submission(app_id).config  # A file to send on: without secrets.
        config: dict[str, str] | None = {key: shown_setting(key, own[key]) for key in own}
        quarantined = client.quarantined(app_id).records
    except (SubmitRefused, AskTimeout) as error:
        config, quarantined = None, ()
        missing.append(f"settings, and records in quarantine: {error}")
    processors = look.detail.processors if look.detail else ()
    views = (processor_view(look, each.processor_id, before) for each in processors)
    return Report(
        view=app_view(look, before, alerts=alerts_about(client, app_id)),
        cluster_id=client.cluster().cluster_id,
        version=__version__,
        series=look.series,
        processors=[each for each in views if each is not None],
        config=config,
        quarantined=quarantined,
        missing=missing,
    )


def _missing(look: Look) -> Iterator[str]:
    if look.detail is None:
        yield "processors, tasks and errors: nobody knows them (any more)"
        return
    if look.known_ms:
        yield f"what came later; it is shown {text.past(look.known_ms)}"
    if look.metrics is None:
        yield "measurements: its app master does not give them"


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip(".-") or "application"
