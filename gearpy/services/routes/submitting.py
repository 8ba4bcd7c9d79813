"""Routes of programs and graphs that are uploaded and submitted."""

from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Depends, File, Form, UploadFile

from gearpy.services.deps import Action, Given, UploadedProgram
from gearpy.services.gearpump.shapes import AppJar, FilePath, SubmitStatus, SubmittedDag
from gearpy.services.problems import ProblemRaised
from gearpy.services.programs.graphs import SubmittedGraph
from gearpy.services.programs.submission import args_of
from gearpy.services.programs.uploads import name_of
from gearpy.services.security.access import Caller
from gearpy.transport.security.tokens import TokenScope

router: Final = APIRouter(prefix="/master", tags=["submitting"])

_TEXT_CHARS_MAX: Final = 10_000
_SETTINGS_BYTES_MAX: Final = 64 * 1024
_EXECUTORS_MAX: Final = 10_000

_Submits: TypeAlias = Annotated[Caller, Depends(Action("app submit", TokenScope.SUBMIT))]
_Text: TypeAlias = Annotated[str, Form(max_length=_TEXT_CHARS_MAX)]
_Executors: TypeAlias = Annotated[int, Form(ge=0, le=_EXECUTORS_MAX)]


@router.post("/submitapp")
def submit_app(
    given: Given,
    caller: _Submits,
    jar: UploadedProgram,
    *,
    configfile: Annotated[UploadFile | None, File(description="Settings in TOML.")] = None,
    configstring: _Text = "",
    executorcount: _Executors = 1,
    args: _Text = "",
) -> SubmitStatus:
    """Submit a program, by Gearpump's names; a jar is a .py file, a .zip or a .whl."""
    toml = configfile.file.read(_SETTINGS_BYTES_MAX + 1) if configfile else b""
    if len(toml) > _SETTINGS_BYTES_MAX:
        raise ProblemRaised(413, f"a file of settings has at most {_SETTINGS_BYTES_MAX} bytes")
    settings = given.submitting.settings(_lines(configstring), toml, caller=caller)
    with given.uploads.file(name_of(jar.filename), jar.file) as path:
        app_id = given.submitting.program(
            path, user=caller.name, args=args_of(args), executors=executorcount, settings=settings
        )
    return SubmitStatus(success=True, app_id=app_id)


@router.post("/submitprogram")
def submit_program(
    given: Given,
    caller: _Submits,
    file: UploadedProgram,
    *,
    name: Annotated[str, Form(max_length=200, description="That of the file if empty.")] = "",
    target: Annotated[
        str, Form(max_length=200, description="ATTR or MODULE:ATTR; if empty it is looked for.")
    ] = "",
    args: _Text = "",
    executors: _Executors = 0,
    config: Annotated[
        str, Form(max_length=_TEXT_CHARS_MAX, description="Its settings: lines key=value.")
    ] = "",
) -> SubmitStatus:
    """Submit a program; see `gear app submit`."""
    settings = given.submitting.settings(_lines(config), caller=caller)
    with given.uploads.file(name_of(file.filename), file.file) as path:
        app_id = given.submitting.program(
            path,
            user=caller.name,
            name=name,
            target=target,
            args=args_of(args),
            executors=executors,
            settings=settings,
        )
    return SubmitStatus(success=True, app_id=app_id)


@router.post("/uploadjar")
def upload_jar(given: Given, _: _Submits, jar: UploadedProgram) -> AppJar:
    """Upload classes for a graph; the answer is the `jar` of its processors."""
    handle = given.uploads.keep(name_of(jar.filename), jar.file)
    return AppJar(name=name_of(jar.filename), file_path=FilePath(path=handle))


@router.post("/submitdag")
def submit_dag(given: Given, caller: _Submits, graph: SubmittedGraph) -> SubmittedDag:
    """Submit a graph of tasks that are given by the dotted names of their classes."""
    return SubmittedDag(app_id=given.submitting.graph(graph, caller=caller))


def _lines(text: str) -> list[str]:
    return [each for each in text.splitlines() if each.strip()]
