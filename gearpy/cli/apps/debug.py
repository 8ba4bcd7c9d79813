"""``gear debug``: runs one task of an application again, in this process."""

import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from msgspec import to_builtins

from gearpy.cli.terminal.exits import FAILED
from gearpy.cli.terminal.options import AppRef, Given, argument, asking, option
from gearpy.cli.terminal.output import (
    card_lines,
    json_of_error,
    print_hints,
    print_json,
    print_lines,
)
from gearpy.cluster.rerun.again import RerunOutcome, TaskAgain, Wanted, task_of
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import TaskId
from gearpy.views import text


@asking
def debug(
    given: Given,
    ref: AppRef,
    task: Annotated[str, argument(metavar="[TASK]", help="Such as 2.0: processor and index.")] = "",
    *,
    epoch: Annotated[
        int | None,
        option(
            "--epoch",
            min=0,
            metavar="N",
            help="Begin with the state at the end of this epoch, or of the newest stored before "
            "it. Default: what leads to the last failure.",
        ),
    ] = None,
    until: Annotated[
        int | None,
        option(
            "--until",
            min=1,
            metavar="N",
            help="End with this epoch. Default: the one in which it failed, or else the last.",
        ),
    ] = None,
    record: Annotated[
        int | None,
        option(
            "--record",
            min=1,
            metavar="N",
            help="Give it this record of 'gear quarantine list' instead.",
        ),
    ] = None,
    stop: Annotated[
        bool, typer.Option("--pdb", help="Where it raises, look around in the debugger.")
    ] = False,
) -> None:
    """Run one task again, here: with its state at an epoch, and its input after that.

    What it takes must be recorded (application.record-input-bytes); a task that reads a source
    reads it again, and a record in quarantine is there anyway. Sinks show nothing. It says whether
    the same came of it as then; if not, it ends with 1.
    """
    wanted = Wanted(task=_task(task, record), epoch=epoch, until=until, record=record)
    with given.client(ref) as client:
        again = TaskAgain(client, client.find(ref), wanted, configured=given.config)
        with again.program() as application:
            outcome = again.run(application)
            if given.as_json:
                different = outcome.rerun.difference
                print_json(
                    {
                        "task": str(again.task),
                        "epoch": again.after,
                        "records": outcome.rerun.records,
                        "outputs": outcome.rerun.outputs,
                        "compared": outcome.compared,
                        "same": outcome.is_same,
                        "difference": None
                        if different is None
                        else {
                            "epoch": different.epoch,
                            "message": different.place,
                            "then": different.then,
                            "now": different.now,
                        },
                        "failed_then": outcome.failed_then,
                        "error": None if outcome.error is None else json_of_error(outcome.error),
                        "cut": outcome.cut,
                        "put_aside": outcome.rejects,
                        "put_aside_first": None
                        if outcome.rejected is None
                        else to_builtins(outcome.rejected),
                        "notes": again.notes,
                    }
                )
            else:
                place = f"task {again.task} ({again.operator(application)})"
                print_lines(_lines(place, again, outcome, verbose=given.verbose))
                print_hints(again.notes)
            if stop and outcome.error is not None:
                error = outcome.error
                import pdb  # noqa: T100 - what the user asks for

                raised: BaseException = error
                while isinstance(raised, OperatorError) and (
                    inner := raised.__cause__ or raised.__context__
                ):
                    raised = inner
                pdb.post_mortem(raised.__traceback__)
    if not outcome.is_same:
        sys.exit(FAILED)


def _task(given: str, record: int | None) -> TaskId | None:
    task = task_of(given)
    if given and task is None:
        raise ConfigError(f"{given!r} is no task: write processor.index, such as 2.0")
    if (task is None) == (record is None):
        if task is not None:
            raise ConfigError(f"name a task or a record: leave out {given} or --record {record}")
        raise ConfigError("name a task, such as 2.0, or a record with --record N")
    return task


def _lines(place: str, again: TaskAgain, outcome: RerunOutcome, *, verbose: bool) -> Iterator[str]:
    start = f"its state of epoch {again.after}" if again.after else "no state, as at its beginning"
    taken = text.plural(outcome.rerun.records, "record")
    yield f"{place} with {start}"
    yield f"input: {outcome.input}: {taken}"
    if outcome.cut:
        yield f"the recorded input ends too early: {outcome.cut}"
    if outcome.error is not None:
        yield from card_lines(outcome.error, verbose=verbose)
    if outcome.rejected is not None:
        aside = text.plural(outcome.rejects, "record")
        yield f"it has put aside {aside}, the first for this:"
        yield from card_lines(outcome.rejected, verbose=verbose)
    if (different := outcome.rerun.difference) is not None:
        place = f"message {different.place} of epoch {different.epoch}"
        other = f"{different.now} other records than then"
        if different.then != different.now:
            now = text.plural(different.now, "record")
            other = f"{now} now, and put out {different.then} then"
        yield f"not as then: after {place} it puts out {other}"
    elif outcome.error is None and not outcome.failed_then:
        number = text.plural(outcome.rerun.outputs, "record")
        compared = f"as then: the same output after {outcome.compared} messages, {number}"
        yield compared if outcome.compared else "it has not raised"
    elif not outcome.is_same:
        then = f"it failed with {outcome.failed_then}" if outcome.failed_then else "it did not fail"
        yield f"not as then: then {then}{', and now it does not' * (outcome.error is None)}"
    else:
        yield "as then: it has failed in the same way" if outcome.failed_then else "it has raised"
