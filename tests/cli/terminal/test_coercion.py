"""Values of options without pydantic: they, and what is said of wrong ones, are those of typer."""

import subprocess
import sys
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import pytest
import typer
from typer import core
from typer.testing import CliRunner

from gearpy.cli.main import coerce_without_pydantic

_IN_A_PROCESS: Final = """
import sys
from gearpy.cli.main import main
try:
    main()
finally:
    print("pydantic" in sys.modules)
"""


class Form(StrEnum):
    table = "table"
    json = "json"


made = typer.Typer()


@made.command()
def values(
    name: str = "",
    rest: Annotated[list[str] | None, typer.Argument()] = None,
    *,
    number: Annotated[int, typer.Option(min=1, max=9)] = 5,
    any_number: int | None = None,
    numbers: Annotated[list[int] | None, typer.Option()] = None,
    ratio: float = 0.5,
    form: Form = Form.table,
    until: Literal["end", "now"] = "end",
    on: bool = False,
) -> None:
    """Print what has come."""
    typer.echo(repr((name, rest, number, any_number, numbers, ratio, form, until, on)))


@pytest.mark.parametrize(
    "args",
    [
        "",
        "a",
        "a b c",
        "--number 3",
        "--number 0",
        "--number 10",
        "--number ²",
        "--number many",
        "--any-number 007",
        "--any-number -7",
        "--any-number 1.5",
        "--numbers 1 --numbers 2",
        "--numbers x",
        "--ratio 2",
        "--form json",
        "--form yaml",
        "--until now",
        "--until then",
        "--on",
    ],
)
def test_values_are_those_of_typer(args: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_typer = CliRunner().invoke(made, args.split())
    parameter: Any = getattr(core, "_TyperParameter", None)
    if parameter is None:
        pytest.skip("this typer does without pydantic")
    # So that it is the same as before in the end.
    monkeypatch.setattr(parameter, "get_runtime_param", parameter.get_runtime_param)

    coerce_without_pydantic()

    found = CliRunner().invoke(made, args.split())
    assert (found.exit_code, found.output) == (by_typer.exit_code, by_typer.output)


def test_no_command_waits_until_pydantic_is_loaded() -> None:
    """It would take a third of the time of a small one."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            _IN_A_PROCESS,
            "config",
            "show",
            "--json",
            "--set",
            "worker.slots=3",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"
