"""``gear app submit``: starts an application on a cluster."""

import glob
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec.structs import replace

from gearpy.cli.terminal.connect import connected
from gearpy.cli.terminal.options import (
    AppArgs,
    Executors,
    Given,
    Override,
    Program,
    UntilOption,
    option,
    takes,
)
from gearpy.cli.terminal.output import print_guarantee, print_hints, print_json
from gearpy.cluster.app.config import application_overrides
from gearpy.cluster.processes.trial import tried_here
from gearpy.cluster.programs.outline import ProgramOutline
from gearpy.cluster.programs.upload import Progress, Uploadable, packed, send
from gearpy.config.load import as_overrides
from gearpy.config.schema import Config
from gearpy.errors import ConfigError
from gearpy.messages.client import GetCluster
from gearpy.messages.summaries import ApplicationSummary
from gearpy.task.stages.guarantees import guarantee_lines
from gearpy.views.text import printable

#: Smaller programs are there before anyone wonders.
_QUIET_BYTES: Final = 4 * 1024 * 1024
#: What sources and sinks of files call themselves; these names are in those of processors.
_FILES: Final = re.compile(
    r"\b(?:files|text_file|jsonl_file|jsonl_folder|parquet_folder)\(([^()]+)\)"
)
#: Keys that the operator of a worker decides.
_OF_WORKERS: Final = ("executor.memory-max-bytes",)
_SHOWN_MAX: Final = 3


@takes("conf", "set_", "master", "as_json", "verbose", set_=Override)
def submit(
    given: Given,
    target: Program,
    args: AppArgs = None,
    *,
    name: Annotated[str | None, option("--name", help="Instead of the application's own.")] = None,
    name_prefix: Annotated[
        str, option("--namePrefix", "--name-prefix", help="Before the name.")
    ] = "",
    executors: Executors = None,
    requirements_check: Annotated[
        bool,
        typer.Option(
            "--requirements-check/--no-requirements-check",
            help="Whether requirements.txt of the program, or Requires-Dist of the wheel, must "
            "be met where it runs.",
        ),
    ] = True,
    from_checkpoint: Annotated[
        str | None,
        option(
            "--from-checkpoint",
            metavar="ID[@EPOCH]|NAME",
            help="Begin with what another application had stored, such as its earlier version: "
            "its number, or CLUSTER/appN of another cluster; without an epoch the newest. Or with "
            "the savepoint of this name.",
        ),
    ] = None,
    allow_drop: Annotated[
        bool,
        typer.Option(
            "--allow-drop",
            help="With --from-checkpoint: leave behind what the program has no place for.",
        ),
    ] = False,
    until: UntilOption = "end",
) -> None:
    """Start an application on a cluster.

    The program is packed and loaded here first, to find mistakes at once, and then uploaded. With
    a file go the modules beside it that it imports; a folder goes as a whole. With --until
    caught-up it goes on where the last one of its name has ended.
    """
    from gearpy.cluster.checkpoints.resuming import resume_point

    config, as_json, args = given.config(), given.as_json, args or []
    with packed(
        target, config, args=args, check_requirements=requirements_check, until=until
    ) as program:
        application = tried_here(program, target, config)
        if from_checkpoint is not None:
            application.check_stream("--from-checkpoint")
        stream = application if application.runs == "streams" else None
        if stream and not as_json:
            print_hints(hints(stream, args, config))
        with connected(config) as client:
            full_name, resume_from = f"{name_prefix}{name or application.name}", ""
            if until == "caught-up" and from_checkpoint is None:
                from_checkpoint = _last_of(full_name, client.applications())
            if from_checkpoint is not None:
                resume_from = resume_point(
                    from_checkpoint,
                    config=config,
                    cluster_id=client.ask(GetCluster()).cluster_id,
                    allows_drop=allow_drop,
                )
            elif allow_drop:
                raise ConfigError("--allow-drop is for --from-checkpoint: give both")
            if stream and resume_from:
                _tell_resumed(resume_from, stream, config, as_json=as_json)
            send(client.send, program, on_progress=_on_progress(program, as_json=as_json))
            running = client.submit(
                full_name,
                replace(program.artifact, runs=application.runs),
                executors=executors or config.application.executors,
                config=application_overrides(config),
                resume_from=resume_from,
            )
    if as_json:
        print_json({"app_id": running.app_id, "name": running.name})
    else:
        if stream:
            print_guarantee(guarantee_lines(stream.paths))
        print(f"application {running.app_id} ({running.name}) submitted")


def _last_of(name: str, known: Sequence[ApplicationSummary]) -> str | None:
    """Return the number of the application that one of this name goes on from; None: there is none.

    That of one which has stored nothing is not left over: the one before it counts then.
    """
    stored = [each for each in known if each.name == name and each.progress.epoch]
    last = max(stored, key=lambda each: each.app_id, default=None)
    return None if last is None or not last.can_go_on else str(last.app_id)


def _tell_resumed(
    point: str, application: ProgramOutline, config: Config, *, as_json: bool
) -> None:
    """Print the moves of state of steps that do not simply go on, and what is shown twice."""
    from gearpy.cluster.checkpoints.resuming import resume_moves, shown_since

    moves = resume_moves(point, application.dag(), config=config)
    told = [
        f"state: {each}"
        for each in moves
        if each.is_lost or each.is_spread_anew or (each.fate == "moved" and each.keeps_something)
    ]
    if not as_json:
        for line in told:
            print(printable(line), file=sys.stderr)
        if hint := shown_since(point, config=config):
            print_hints([hint])


def _on_progress(program: Uploadable, *, as_json: bool) -> Progress | None:
    if as_json or program.size < _QUIET_BYTES or not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\ruploaded {done * 100 // total} %", end=end, file=sys.stderr, flush=True)

    return show


# -- hints --------------------------------------------------------------------------------------


def hints(application: ProgramOutline, args: Sequence[str], config: Config) -> Iterator[str]:
    """Return a line for each thing that often surprises."""
    # Arguments may name files of the working directory, also as patterns, or as --option=FILE.
    names = [arg.partition("=")[2] if arg.startswith("-") else arg for arg in args]
    paths = [each for each in names if each and not Path(each).is_absolute() and _is_there(each)]
    for processor in application.processors:
        for match in _FILES.finditer(processor.name):
            paths += [each for each in match[1].split(", ") if not Path(each).is_absolute()]
    if paths := list(dict.fromkeys(paths)):
        shown = ", ".join(paths[:_SHOWN_MAX]) + (", ..." if len(paths) > _SHOWN_MAX else "")
        yield (
            f"a cluster may run programs in another folder: where {shown} is a file, give its "
            "absolute path"
        )
    if keys := [key for key in as_overrides(config) if key in _OF_WORKERS]:
        yield f"{', '.join(keys)} counts where workers are started, not here"


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists() or bool(glob.has_magic(name) and glob.glob(name))  # noqa: PTH207
    except (OSError, ValueError):  # Too long, or not a path at all.
        return False
