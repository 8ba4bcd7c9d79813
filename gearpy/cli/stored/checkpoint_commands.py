"""``gear checkpoint ...``: its commands with their arguments and help."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from gearpy.cli.terminal.exits import FAILED, HELP
from gearpy.cli.terminal.guard import guarded
from gearpy.cli.terminal.options import AsJson, Checkpoints, Cluster, Conf, Master, Set, StoredAppId

__all__ = ["checkpoint_commands"]

checkpoint_commands = typer.Typer(
    help="What is stored of applications: epochs, places of sources, files. No cluster is needed.",
    no_args_is_help=True,
)

_Epoch: TypeAlias = Annotated[
    int | None,
    typer.Argument(metavar="[EPOCH]", min=1, help="Default: the newest.", show_default=False),
]
_Apply: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Do it; without this, only what would be done is told.")
]


@checkpoint_commands.command("list", epilog=HELP)
def list_(
    app: StoredAppId,
    *,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
) -> None:
    """List the complete epochs of an application, the oldest first."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.applications import find_stored
        from gearpy.cli.stored.checkpoint import list_epochs
        from gearpy.cli.terminal.settings import configure

        stored = find_stored(configure(conf, set_), app, checkpoints=checkpoints, cluster=cluster)
        list_epochs(stored, as_json=as_json)


@checkpoint_commands.command(epilog=HELP)
def show(
    app: StoredAppId,
    epoch: _Epoch = None,
    *,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
) -> None:
    """Show what is in an epoch: where its sources are, its tasks with sizes, its files."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.applications import find_stored
        from gearpy.cli.stored.checkpoint import show_epoch
        from gearpy.cli.terminal.settings import configure

        stored = find_stored(configure(conf, set_), app, checkpoints=checkpoints, cluster=cluster)
        show_epoch(stored, epoch, as_json=as_json)


@checkpoint_commands.command(epilog=HELP)
def verify(
    app: StoredAppId,
    epoch: Annotated[
        int | None,
        typer.Argument(metavar="[EPOCH]", min=1, help="Default: all.", show_default=False),
    ] = None,
    *,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
) -> None:
    """Read all files of an application's epochs; exit code 1 if one is missing or damaged."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.applications import find_stored
        from gearpy.cli.stored.checkpoint import verify_epochs
        from gearpy.cli.terminal.settings import configure

        stored = find_stored(configure(conf, set_), app, checkpoints=checkpoints, cluster=cluster)
        is_whole = verify_epochs(stored, epoch, as_json=as_json)
    if not is_whole:
        raise typer.Exit(FAILED)


@checkpoint_commands.command(epilog=HELP)
def diff(
    app: StoredAppId,
    old: Annotated[int, typer.Argument(metavar="EPOCH", min=1, show_default=False)],
    new: Annotated[int, typer.Argument(metavar="EPOCH", min=1, show_default=False)],
    *,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    as_json: AsJson = False,
) -> None:
    """Tell in what two epochs differ: places of sources, sizes and cells of state."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.applications import find_stored
        from gearpy.cli.stored.checkpoint import compare_epochs
        from gearpy.cli.terminal.settings import configure

        stored = find_stored(configure(conf, set_), app, checkpoints=checkpoints, cluster=cluster)
        compare_epochs(stored, old, new, as_json=as_json)


@checkpoint_commands.command("set", epilog=HELP)
def set_offsets(
    app: StoredAppId,
    task: Annotated[
        str | None,
        typer.Argument(metavar="[TASK]", help="Such as 0.1; see 'show'.", show_default=False),
    ] = None,
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PARTITION=PLACE]...",
            help="A place is JSON, of the kind that 'show' has there.",
            show_default=False,
        ),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help='Places of several tasks, as JSON: {"0.1": {"PARTITION": PLACE}}; or what '
            "'show --json' has printed, with other places in it.",
            show_default=False,
        ),
    ] = None,
    apply: _Apply = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also if the application runs: its app master then ends, and is launched again.",
        ),
    ] = False,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Let the next launch of a stopped application read its sources from other places.

    State stays as it is: what is read again counts again, what is left out is missing.
    """
    with guarded(as_json=as_json):
        from gearpy.cli.stored.applications import find_stored
        from gearpy.cli.stored.checkpoint_edit import set_sources
        from gearpy.cli.terminal.settings import configure

        config = configure(conf, set_, master=master)
        stored = find_stored(config, app, checkpoints=checkpoints, cluster=cluster)
        set_sources(
            config,
            stored,
            task=task,
            assignments=places or (),
            file=file,
            apply=apply,
            force=force,
            as_json=as_json,
        )


@checkpoint_commands.command(epilog=HELP)
def clean(
    app: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Default: all stopped.", show_default=False),
    ] = None,
    *,
    apply: _Apply = False,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Remove files that no epoch needs any more, as crashes leave behind."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.applications import find_stored
        from gearpy.cli.stored.checkpoint_edit import clean_stored, stored_applications
        from gearpy.cli.terminal.settings import configure

        config = configure(conf, set_, master=master)
        if app is None:
            found = stored_applications(checkpoints or config.checkpoint.folder)
        else:
            found = [find_stored(config, app, checkpoints=checkpoints, cluster=cluster)]
        clean_stored(config, found, apply=apply, as_json=as_json)


@checkpoint_commands.command(epilog=HELP)
def drop(
    app: StoredAppId,
    *,
    apply: _Apply = False,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Remove everything that is stored of a stopped application: nothing can go on from it."""
    with guarded(as_json=as_json):
        from gearpy.cli.stored.applications import find_stored
        from gearpy.cli.stored.checkpoint_edit import drop_stored
        from gearpy.cli.terminal.settings import configure

        config = configure(conf, set_, master=master)
        stored = find_stored(config, app, checkpoints=checkpoints, cluster=cluster)
        drop_stored(config, stored, apply=apply, as_json=as_json)


@checkpoint_commands.command(epilog=HELP)
def repair(
    app: StoredAppId,
    *,
    apply: _Apply = False,
    checkpoints: Checkpoints = None,
    cluster: Cluster = None,
    conf: Conf = None,
    set_: Set = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Name the losses of a damaged coordinator log, and write it anew without them.

    Exit code 1 if it is damaged and stays so.
    """
    with guarded(as_json=as_json):
        from gearpy.cli.stored.applications import find_stored
        from gearpy.cli.stored.checkpoint_edit import repair_stored
        from gearpy.cli.terminal.settings import configure

        config = configure(conf, set_, master=master)
        stored = find_stored(config, app, checkpoints=checkpoints, cluster=cluster)
        is_whole = repair_stored(config, stored, apply=apply, as_json=as_json)
    if not is_whole:
        raise typer.Exit(FAILED)
