"""``gear app shadow``: another version of a step beside an application, without being shown."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer
from msgspec import to_builtins

from gearpy.cli.terminal.connect import connected
from gearpy.cli.terminal.exits import FAILED, exit_code_of_signal
from gearpy.cli.terminal.guard import noting_signals
from gearpy.cli.terminal.options import (
    AppRef,
    Given,
    NextArgs,
    NoArgs,
    Program,
    argument,
    next_args,
    takes,
)
from gearpy.cli.terminal.output import (
    card_lines,
    json_of_error,
    print_hints,
    print_json,
    print_lines,
    table,
)
from gearpy.clocks import monotonic_ms
from gearpy.cluster.rerun.again import RerunSide
from gearpy.cluster.rerun.shadow import Shadow, ShadowReport
from gearpy.views import text

_TEXT_MAX = 60
_TELLS_MS: Final = 10_000


class ProgressNotice:
    """Says now and then how far a comparison is."""

    def __init__(self, epochs: int, now_ms: int) -> None:
        self._epochs = epochs
        self._told_ms = now_ms

    def lines(self, compared: int, now_ms: int) -> list[str]:
        if now_ms - self._told_ms < _TELLS_MS:
            return []
        self._told_ms = now_ms
        done = f"{compared} of {self._epochs} epochs are compared"
        return [f"{done}; Ctrl-C shows what was found so far"]


@takes("conf", "set_", "master", "as_json", "verbose")
def shadow(
    given: Given,
    ref: AppRef,
    step: Annotated[str, argument(metavar="STEP", help="By id or name.")],
    target: Program,
    args: NextArgs = None,
    *,
    no_args: NoArgs = False,
    epochs: Annotated[
        int, typer.Option("--epochs", min=1, metavar="N", help="So many epochs of each task.")
    ] = 10,
    examples: Annotated[
        int, typer.Option("--examples", min=0, metavar="N", help="Differences that are shown.")
    ] = 10,
) -> None:
    """Run another version of a step beside the one that runs, here, and compare the outputs.

    It takes what the step takes, with the state that it had; nothing of it is shown. The input must
    be recorded (application.record-input-bytes). If there is a difference, it ends with 1.
    """
    with connected(given.config()) as client:
        app_id = client.find(ref)
        artifact, application = client.upload_next(app_id, target, next_args(args, no_args=no_args))
        application.check_stream("gear app shadow")
        notice = ProgressNotice(epochs, monotonic_ms())

        def tell(compared: int) -> None:
            print_hints(notice.lines(compared, monotonic_ms()))

        beside = Shadow(client, app_id, step, artifact, configured=given.config, examples=examples)
        with noting_signals() as signal:
            found = beside.run(
                epochs, on_round=tell, is_called_off=lambda: signal.number is not None
            )
    if given.as_json:
        compared = found.compared
        print_json(
            {
                "step": found.step,
                "tasks": found.tasks,
                "epochs": compared.epochs,
                "records": found.records,
                "same": found.is_same,
                "then": _side_values(found.then, compared.then),
                "now": _side_values(found.now, compared.now),
                "missing": compared.missing,
                "added": compared.added,
                "keys": len(compared.keys),
                "examples": [to_builtins(each) for each in compared.examples],
                "notes": found.notes,
            }
        )
    else:
        _print(found, verbose=given.verbose)
        print_hints(found.notes)
    if signal.number is not None:
        sys.exit(exit_code_of_signal(signal.number))
    if not found.is_same or _is_empty(found):
        sys.exit(FAILED)


def _print(found: ShadowReport, *, verbose: bool) -> None:
    compared = found.compared
    tasks, epochs = text.plural(found.tasks, "task"), text.plural(compared.epochs, "epoch")
    print(
        f"{text.printable(found.step)}: {tasks}, {epochs}, {text.count(found.records)} records in"
    )
    change = ""
    if found.then.seconds and found.records:
        change = f"{found.now.seconds / found.then.seconds - 1:+.0%}"
    rows = [
        [
            text.printable(side.program),
            text.count(number),
            f"{side.seconds * 1e6 / found.records:.1f}" if found.records else "",
            by,
        ]
        for side, number, by in ((found.then, compared.then, ""), (found.now, compared.now, change))
    ]
    table("versions", ("program", "#out", "#us a record", "#change"), rows)
    print_lines(_verdict(found, verbose=verbose))
    if compared.examples:
        print()
        table(
            "differences",
            ("#epoch", "key", "then", "now"),
            [
                [
                    str(each.epoch),
                    *(
                        cell if len(cell) <= _TEXT_MAX else f"{cell[: _TEXT_MAX - 3]}..."
                        for cell in map(text.printable, (each.key, each.then, each.now))
                    ),
                ]
                for each in compared.examples
            ],
        )


def _is_empty(found: ShadowReport) -> bool:
    return not found.records and not found.compared.epochs


def _verdict(found: ShadowReport, *, verbose: bool) -> Iterator[str]:
    compared = found.compared
    for side in (found.then, found.now):
        if side.error is not None:
            yield f"{text.printable(side.program)} has failed:"
            yield from card_lines(side.error, verbose=verbose)
        if side.rejected is not None and not _are_alike(found):
            aside = text.plural(side.rejects, "record")
            yield f"{text.printable(side.program)} has put aside {aside}, the first for this:"
            yield from card_lines(side.rejected, verbose=verbose)
    if found.then.rejected is not None and _are_alike(found):
        aside = text.plural(found.then.rejects, "record")
        yield f"both have put aside {aside}, the first for this: {found.then.rejected.cause}"
    if _is_empty(found):
        yield "nothing was compared"
        return
    if compared.is_same:
        yield "no difference" if found.is_same else "no difference in what was put out"
        return
    keys, missing = text.plural(len(compared.keys), "key"), text.plural(compared.missing, "record")
    lack = "is" if compared.missing == 1 else "are"
    new = "is" if compared.added == 1 else "are"
    yield f"different: {missing} {lack} missing, {text.count(compared.added)} {new} new, of {keys}"


def _are_alike(found: ShadowReport) -> bool:
    then, now = found.then, found.now
    causes = [each.rejected and each.rejected.cause for each in (then, now)]
    return then.rejects == now.rejects and causes[0] == causes[1]


def _side_values(side: RerunSide, outputs: int) -> dict[str, Any]:
    return {
        "program": side.program,
        "outputs": outputs,
        "seconds": side.seconds,
        "error": None if side.error is None else json_of_error(side.error),
        "put_aside": side.rejects,
        "put_aside_first": None if side.rejected is None else to_builtins(side.rejected),
    }
