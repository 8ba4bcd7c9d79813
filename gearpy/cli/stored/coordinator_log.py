"""``gear coordinator-log ...``: prints the coordinator log of an application, appends to it."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from gearpy.cli.stored.applications import OR_FORCE, find_stored, refuse_while_running
from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import Given, StoredAppId, argument, option, storing, takes
from gearpy.cli.terminal.output import print_hints, print_json, table
from gearpy.clocks import wall_ms
from gearpy.cluster.app.config import check_setting
from gearpy.config.hidden import shown_args, shown_setting
from gearpy.core.coordinator.codec import check_message
from gearpy.core.coordinator.log import EPOCH, CoordinatorMessage, CoordinatorState, draft
from gearpy.core.coordinator.views import (
    DAG,
    SET_CHANGELOG,
    SET_CHECKPOINT,
    SET_CONFIG,
    ChangelogPartitions,
    ConfigView,
    DagVersions,
    EpochManifests,
    SourcePlaces,
)
from gearpy.errors import ConfigError, LogDamaged, ProtocolError
from gearpy.storage.coordinator_log import CoordinatorLog, newest_launch, read_log, survey_log
from gearpy.views import text
from gearpy.wire.values.payload import decode_value
from gearpy.wire.values.records import NO_CLASSES

#: Stands for bytes, which JSON lacks.
_BYTES: Final = "base64"
#: Says of a message that this command has appended it.
_SOURCE: Final = "gear coordinator-log"


class _ShowGroup(TyperGroup):
    """``gear coordinator-log 3`` is ``gear coordinator-log show 3``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if args and args[0] not in self.commands and not is_help:
            args = ["show", *args]
        return super().parse_args(ctx, args)


commands = group(
    "What app masters store for each other; 'gear coordinator-log ID' shows it.", cls=_ShowGroup
)


@commands.command(epilog=HELP)
@takes(
    "checkpoints",
    "cluster",
    "conf",
    "set_",
    "as_json",
    "verbose",
    as_json=Annotated[
        bool, typer.Option("--json", help="For programs: a line of JSON for each message.")
    ],
)
def show(
    given: Given,
    app: StoredAppId,
    *,
    types: Annotated[
        list[str] | None,
        option(
            "--type",
            metavar="GLOB",
            help="Only messages of this type, such as epoch or 'set-*'; may be given several "
            "times.",
        ),
    ] = None,
    keys: Annotated[
        list[str] | None,
        option(
            "--key",
            metavar="GLOB",
            help="Only messages with this key, such as '0/*'; may be given several times.",
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Also what no longer counts, as far as it was not compacted away."
        ),
    ] = False,
) -> None:
    """Show the last message of each type and key, the oldest first.

    Of a damaged log what can be read is printed, and then the error.
    """
    stored = find_stored(given, app)
    damage: LogDamaged | None = None
    try:
        messages = read_log(stored.checkpoints, stored.prefix).history
    except LogDamaged as error:
        reports = survey_log(stored.checkpoints, stored.prefix)
        print_hints(
            f"{each.name} is left out: it cannot be read" for each in reports if each.problem
        )
        counting = [each for each in reports if each.counts is not False]
        damage, messages = error, [message for each in counting for message in each.messages]
    if not everything:
        messages = CoordinatorState(messages).messages()
    chosen = [each for each in messages if _is_chosen(each.type, types or ())]
    chosen = [each for each in chosen if _is_chosen(each.key, keys or ())]
    if given.as_json:
        for each in chosen:
            print_json(
                {
                    "type": each.type,
                    "key": each.key,
                    "values": _jsonable(each.values, each.key),
                    "host": each.host,
                    "username": each.username,
                    "source": each.source,
                    "timestamp_ms": each.timestamp_ms,
                    "version": each.version,
                    "extras": _jsonable(each.extras),
                }
            )
    else:
        rows = []
        for each in chosen:
            who = "@".join(filter(None, (each.username, each.host)))
            by = f"{each.source} ({who})" if who else each.source
            rows.append([text.moment(each.timestamp_ms), by, each.type, each.key, _brief(each)])
        if rows:
            columns = ("written", "by", "type", "key", "values")
            table(f"coordinator log of {stored.prefix}", columns, rows)
        else:
            print(f"the coordinator log of {stored.prefix} has no such message")
    if damage is not None:
        raise damage


@commands.command(epilog=HELP)
@storing
def append(
    given: Given,
    app: StoredAppId,
    type_: Annotated[str, argument(metavar="TYPE", help="Such as set-config.")],
    key: Annotated[str, argument(metavar="KEY")],
    values: Annotated[
        str,
        argument(
            metavar="VALUES",
            help='A JSON object, in which {"base64": ...} stands for bytes; null deletes.',
        ),
    ],
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also if the application runs: its app master then ends, and is launched again. "
            "Whether it runs, the master tells; if none answers within seconds, it counts as "
            "running while its log is younger than a minute.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check and print it.")] = False,
) -> None:
    """Append a message; the next launch of the application's app master reads it."""
    made, config = _draft(type_, key, values), given.config()
    stored = find_stored(given, app, config)
    now_ms = wall_ms()
    if not dry_run:
        history = read_log(stored.checkpoints, stored.prefix).history
        launch = newest_launch(stored.checkpoints, stored.prefix)
        if not launch:
            raise ConfigError(
                f"{stored.prefix} has no coordinator log: it has not been launched yet"
            )
        if not force:
            refuse_while_running(config, stored, history, now_ms=now_ms, advice=OR_FORCE)
        log = CoordinatorLog(
            stored.checkpoints, stored.prefix, launch=launch, source=_SOURCE, wall_ms=lambda: now_ms
        )
        log.append([made])
    shown = {"type": made.type, "key": made.key, "values": _jsonable(made.values)}
    done = ("would be " if dry_run else "") + ("deleted" if made.values is None else "appended")
    given.answer(
        {"app_id": stored.app_id, "prefix": stored.prefix, "appended": not dry_run, **shown},
        text.printable(f"{stored.prefix}: {made.type} {made.key} {done}"),
    )


# -- what is printed -------------------------------------------------------------------------


def _is_chosen(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _brief(message: CoordinatorMessage) -> str:
    if message.values is None:
        return "deleted"
    state = CoordinatorState([message])
    with suppress(ProtocolError):
        if message.type == EPOCH:
            view = EpochManifests(state)
            (manifest,) = view.manifests(view.regions()[0])
            size = text.plural(sum(each.size_bytes for each in manifest.snapshots), "byte")
            files = text.plural(len(manifest.snapshots), "file")
            return f"{files}, {size}, clock {text.watermark(manifest.clock_ms)}"
        if message.type == SET_CHECKPOINT:
            (checkpoint,) = SourcePlaces(state).read_all()
            places = [
                f"{name}: {_offset(offset)}{' (override)' if name in checkpoint.overridden else ''}"
                for name, offset in sorted(checkpoint.offsets.items())
            ]
            return ", ".join([f"epoch {checkpoint.epoch}", *places])
        if message.type == SET_CONFIG:
            return shown_setting(message.key, ConfigView(state).read()[message.key])
        if message.type == DAG:
            (dag,) = DagVersions(state).read()
            return f"{text.plural(len(dag.description), 'line')}, hash {dag.structural_hash}"
    return json.dumps(_jsonable(message.values))


def _offset(encoded: bytes) -> str:
    if not encoded:
        return "finished"
    try:
        return repr(decode_value(encoded, NO_CLASSES))
    except ProtocolError:
        return encoded.hex()


# -- messages as JSON ------------------------------------------------------------------------


def _jsonable(value: Any, key: str = "") -> Any:
    """Return a value of the message with this key as JSON, without secrets."""
    match value:
        case bytes():
            return {_BYTES: base64.b64encode(value).decode()}
        case Mapping():
            return {name: _jsonable(each, key) for name, each in value.items()}
        case list() if all(isinstance(each, str) for each in value):
            return list(shown_args(value))  # They may be those of a program.
        case list():
            return [_jsonable(each, key) for each in value]
        case str():
            return shown_setting(key, value)
        case _:
            return value


def _from_json(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if found.keys() == {_BYTES} and isinstance(found[_BYTES], str):
        return base64.b64decode(found[_BYTES], validate=True)
    return found


def _draft(type_: str, key: str, values: str) -> CoordinatorMessage:
    try:
        given = json.loads(values, object_pairs_hook=_from_json)
    except (json.JSONDecodeError, binascii.Error, RecursionError) as error:
        raise ConfigError(f"values {values[:100]!r} are no JSON: {error}") from error
    if given is not None and not isinstance(given, dict):
        raise ConfigError(
            f"values {values[:100]!r} are no JSON object: write for example "
            """'{"value": "1"}', or null to delete"""
        )
    made = draft(type_, key, given)
    check_message(made)
    _check_known(made)
    return made


def _check_known(message: CoordinatorMessage) -> None:
    """Refuse a message of a known type that the next launch would not understand."""
    if message.values is None:
        return
    if message.type == SET_CONFIG:
        text_of = message.values.get("value")
        if message.values.keys() != {"value"} or not isinstance(text_of, str):
            shown = json.dumps(_jsonable(text_of if isinstance(text_of, int) else "TEXT"))
            raise ConfigError(
                f"set-config {message.key} takes its value as a text and nothing else: write for "
                f"""example '{{"value": "{shown.strip('"')}"}}', or null to go back to """
                "the default"
            )
        check_setting(message.key, text_of)
    state = CoordinatorState([message])
    readers = {
        SET_CONFIG: ConfigView(state).read,
        SET_CHECKPOINT: SourcePlaces(state).read_all,
        SET_CHANGELOG: ChangelogPartitions(state).read,
        DAG: DagVersions(state).read,
        EPOCH: lambda: EpochManifests(state).manifests(EpochManifests(state).regions()[0]),
    }
    try:
        readers.get(message.type, lambda: None)()
    except ProtocolError as error:
        raise ConfigError(str(error)) from error
