"""``gear report``: one HTML file with all that is known of a run."""

import re
from base64 import b64encode
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import asdict

import gearpy
from gearpy.cli.terminal.options import Given, MaybeRef, asking, option
from gearpy.cli.terminal.runs import left_report
from gearpy.cluster.client.report import Report, report_of
from gearpy.errors import ConfigError
from gearpy.views import text

_PAGE: Final = Path(gearpy.__file__).parent / "services" / "page"
#: A module of the page names another by the way to it from its own folder.
_IMPORT: Final = re.compile(r"""((?:from|import)\s*)"(\.{1,2}/[^"]+)\"""")
#: The file runs what is in it, and asks nobody for anything.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' data:; img-src data:"
)


@asking
def report(
    given: Given,
    ref: MaybeRef = None,
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
    made = left_report(given.config(), given.master, ref)
    if made is None:
        with given.client(ref) as client:
            made = report_of(client, client.find(ref))
    name = re.sub(r"[^\w.-]+", "-", made.name, flags=re.ASCII).strip(".-") or "application"
    path = output or Path(f"{name}-{made.app_id}.html")
    try:
        path.write_text(report_html(made), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; name another with -o") from error
    given.answer(
        {"app_id": made.app_id, "file": str(path), "missing": made.missing},
        f"wrote {path} ({path.stat().st_size // 1024 + 1} KiB)",
        *(f"missing: {each}" for each in made.missing),
    )


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
    data = {**asdict(report), "version": gearpy.__version__}
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
