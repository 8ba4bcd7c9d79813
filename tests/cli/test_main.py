"""Commands: what they take, what they print, and how they end."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import COMMANDS, app
from gearpy.cli.terminal.exits import FAILED, NO_CLUSTER, SUCCESS, WRONG_USE

Program = Callable[[str], str]

HEAD = "import gearpy as gp\n"
ABOUT = {name: about for theme in COMMANDS.values() for name, (_, about) in theme.items()}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def _write(text: str) -> str:
        path = tmp_path / "app.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return str(path)

    return _write


def gear(*args: str) -> Any:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, args)


def errors_of(*args: str, code: int = WRONG_USE) -> str:
    """Run a command that must fail; return what it says about it."""
    result = gear(*args)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return str(result.stderr)


def test_version_is_one_line() -> None:
    result = gear("--version")

    assert result.stdout.startswith("gearpy ")
    assert result.exit_code == SUCCESS


def test_help_begins_with_run() -> None:
    """A newcomer runs a program first; what keeps a cluster alive comes later."""
    assert gear("--help").stdout.index(" run ") < gear("--help").stdout.index(" master ")


@pytest.mark.parametrize(("name", "about"), ABOUT.items())
def test_a_command_says_of_itself_what_the_list_says_of_it(name: str, about: str) -> None:
    shown = " ".join(gear(name, "--help").stdout.split())

    assert about in shown


@pytest.mark.parametrize("command", [(), ("run",), ("app", "submit"), ("info",), ("local",)])
def test_help_tells_the_exit_codes(command: tuple[str, ...]) -> None:
    """Scripts depend on them."""
    assert "3 no cluster" in gear(*command, "--help").stdout


def test_an_unknown_option_is_wrong_use() -> None:
    assert "--executor" in errors_of("run", "app.py", "--executor", "2")


def test_run_keeps_its_own_words_out_of_the_output(program: Program) -> None:
    """`gear run app.py > out` must leave nothing but the application's output in the file."""
    path = program(
        "app = gp.StreamApp('letters')\napp.read(gp.collection(['a', '[b]'])).write(gp.console())\n"
    )

    result = gear("run", path)

    assert result.stdout == "a\n[b]\n"
    (summary,) = result.stderr.splitlines()
    assert summary.startswith("letters succeeded: 2 records in, ")
    assert result.exit_code == SUCCESS


def test_quiet_says_nothing(program: Program) -> None:
    path = program("app = gp.StreamApp('q')\napp.read(gp.collection([1])).write(gp.to_list([]))\n")

    result = gear("run", path, "--quiet")

    assert (result.stdout, result.stderr, result.exit_code) == ("", "", SUCCESS)


def test_run_as_json_ends_with_the_summary_on_stderr(program: Program) -> None:
    path = program("app = gp.StreamApp('j')\napp.read(gp.collection([1])).write(gp.console())\n")

    result = gear("run", path, "--json")

    summary = json.loads(result.stderr)
    assert (summary["name"], summary["status"]) == ("j", "succeeded")
    assert summary["progress"]["records_in"] == 1
    assert result.stdout == "1\n"


def test_words_behind_dashes_go_to_the_program(program: Program) -> None:
    path = program(
        "def main(args):\n"
        "    app = gp.StreamApp('args')\n"
        "    app.read(gp.collection(args)).write(gp.console())\n"
        "    return app\n"
    )

    result = gear("run", path, "--executors", "1", "--", "--json", "b")

    assert result.stdout == "--json\nb\n"


def test_an_attribute_picks_one_of_several(program: Program) -> None:
    path = program(
        "one, two = gp.StreamApp('one'), gp.StreamApp('two')\n"
        "for each in (one, two):\n"
        "    each.read(gp.collection([each.name])).write(gp.console())\n"
    )

    assert "one, two" in errors_of("run", path)
    assert "has no 'three'" in errors_of("run", f"{path}:three")
    assert gear("run", f"{path}:two").stdout == "two\n"


@pytest.mark.parametrize("command", [("run",), ("app", "submit")])
def test_a_program_without_an_application_is_wrong_use(
    command: tuple[str, ...], program: Program
) -> None:
    """Both commands load it here, and so find it at once."""
    assert "no such file: nowhere.py" in errors_of(*command, "nowhere.py")
    assert "no application in" in errors_of(*command, program("x = 1\n"))


def test_a_cycle_is_wrong_use(program: Program) -> None:
    path = program(
        "def main():\n"
        "    a, b = (gp.Processor(gp.Task, name=name) for name in 'ab')\n"
        "    graph = gp.Graph()\n"
        "    graph.connect(a, b)\n"
        "    graph.connect(b, a)\n"
        "    return gp.StreamApplication('cyclic', graph)\n"
    )

    assert "cycle: a -> b -> a" in errors_of("run", path)


def test_a_program_that_raises_is_shown_with_its_line(program: Program) -> None:
    path = program("raise ValueError('[bold]no[/bold]')\n")

    lines = errors_of("run", path, code=FAILED).splitlines()

    assert lines[0] == "error: ValueError: [bold]no[/bold]"
    assert lines[2:4] == [f"  at      {path}:2", "            raise ValueError('[bold]no[/bold]')"]


def test_a_misspelt_step_is_wrong_use_with_its_line_and_a_proposal(program: Program) -> None:
    line = "app = gp.StreamApp('app').read(gp.collection([1])).mapp(str)"
    path = program(f"{line}\n")

    assert errors_of("run", path).splitlines() == [
        "error: a stream has no 'mapp': did you mean map?",
        f"  at      {path}:2",
        f"            {line}",
    ]


def test_a_window_that_slides_without_a_step_is_wrong_use(program: Program) -> None:
    """Python's own text would come with the exit code of a failure."""
    path = program("windows = gp.sliding('1m')\n")

    assert 'add it, as in sliding("1m", every="10s")' in errors_of("run", path)


def test_a_mistake_that_the_program_finds_itself_is_shown_as_it_says(program: Program) -> None:
    """It is about what it was given, and its own line would tell nobody more."""
    path = program("def main():\n    raise gp.ConfigError('say which folder')\n")

    assert errors_of("run", path) == "error: say which folder\n"


def test_all_mistakes_of_a_configuration_come_at_once() -> None:
    shown = errors_of("info", "--set", "worker.slots=0", "--set", "nonsense=1", "--conf", "/none")

    assert shown.startswith("error: there are 3 mistakes\n")


def test_no_cluster_has_its_own_exit_code(tmp_path: Path) -> None:
    shown = errors_of(
        "info",
        "--master",
        "127.0.0.1:1",  # Reserved; nothing listens there.
        "--set",
        f"transport.secret-file={tmp_path / 'secret'}",
        code=NO_CLUSTER,
    )

    assert "no cluster at 127.0.0.1:1" in shown
    assert "bin/local" in shown


def test_a_local_cluster_has_one_master() -> None:
    """It would listen at one address only, and the others would be dead."""
    shown = errors_of("local", "--set", "cluster.masters=127.0.0.1:1,127.0.0.1:2")

    assert "name one master" in shown


def test_config_show_prints_a_file_that_can_be_read_again(tmp_path: Path) -> None:
    """`gear config show > gear.toml` is how to begin one."""
    file = tmp_path / "gear.toml"
    file.write_text(gear("config", "show", "--set", "worker.slots=77").stdout, encoding="utf-8")

    shown = json.loads(gear("config", "show", str(file), "--json").stdout)

    assert shown["worker.slots"] == 77


@pytest.mark.parametrize(
    "command", [("show",), ("show", "--json"), ("check",), ("check", "--json")]
)
def test_config_is_shown_without_secrets(command: tuple[str, ...]) -> None:
    """What a terminal shows is often sent on; `--secrets` is for a file that is to be used."""
    hook = "alerts.webhooks=https://hooks.example.org/T0/HUSH"
    secrets = ("--set", hook, "--set", "checkpoint.folder=s3://ann:HUSH@host/a")

    shown = gear("config", *command, *secrets)

    assert "HUSH" not in shown.stdout
    assert "https://hooks.example.org/***" in shown.stdout
    assert "s3://ann@host/a" in shown.stdout
    if "show" in command:
        assert shown.stderr == "secrets are hidden: --secrets shows them\n"
        assert gear("config", *command, "--secrets", *secrets).stdout.count("HUSH") == 2


def test_config_check_tells_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "gear.toml"
    file.write_text("[gearpy.worker]\nslots = 78\n")

    assert "worker.slots = 78" in gear("config", "check", str(file)).stdout


def test_config_check_finds_all_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "gear.toml"
    file.write_text("[gearpy.worker]\nslots = 0\nslotz = 1\n")

    assert "there are 2 mistakes" in errors_of("config", "check", str(file))


# -- modules ---------------------------------------------------------------------------------

MAKES: str = """\
import sys
at_import = sys.argv[1:]

def main(args):
    app = gp.StreamApp('made')
    app.read(gp.collection([*at_import, *args])).write(gp.console())
    return app

def other():
    return main(['other'])
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Put a module into a package of the working folder; return its name."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shop_of_tests"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "jobs.py").write_text(HEAD + MAKES, encoding="utf-8")
    yield "shop_of_tests.jobs"
    for name in [name for name in sys.modules if name.startswith("shop_of_tests")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("attr", "args", "printed"),
    [("", ["a"], "a\na\n"), (":main", [], ""), (":other", [], "other\n")],
)
def test_a_module_is_run_like_a_file(attr: str, args: list[str], printed: str, module: str) -> None:
    assert gear("run", f"{module}{attr}", "--", *args).stdout == printed


def test_the_plan_of_a_module_is_shown(module: str) -> None:
    assert gear("plan", f"{module}:main").exit_code == SUCCESS


def test_a_file_of_a_module_is_run_by_its_path(module: str) -> None:
    assert gear("run", f"{module.replace('.', '/')}.py:other").stdout == "other\n"


def test_a_wrong_attribute_names_those_that_are_there(module: str) -> None:
    """Functions, too: any of them may make an application."""
    said = errors_of("run", f"{module}:mian")

    assert f"{module} has no 'mian'; it has main, other; did you mean {module}:main?" in said


@pytest.mark.parametrize("name", ["nowhere", "shop_of_tests.nowhere", "nowhere.at:all"])
def test_a_module_that_is_not_there_is_wrong_use(name: str, module: str) -> None:
    assert f"no such file or module: {name.partition(':')[0]}\n" in errors_of("run", name)


def test_a_module_that_cannot_be_imported_says_why(module: str, tmp_path: Path) -> None:
    """It is there, so "not found" would mislead."""
    (tmp_path / "shop_of_tests" / "broken.py").write_text("import no_such_library\n")

    assert "no_such_library" in errors_of("run", "shop_of_tests.broken", code=FAILED)


def test_the_arguments_of_a_program_are_its_own_while_it_is_imported(module: str) -> None:
    """`argparse` at the top of a script finds what it would find under Python."""
    before = list(sys.argv)

    assert gear("run", module, "--", "--flag").stdout == "--flag\n--flag\n"
    assert sys.argv == before


def test_what_counts_for_processes_alone_is_told_here(tmp_path: Path) -> None:
    program = tmp_path / "one.py"
    program.write_text(
        "import gearpy as gp\napp = gp.StreamApp('one')\n"
        "app.read(gp.collection([1])).write(gp.console())\n"
    )
    for key in ("executor.python-options=-O", "executor.environment=TZ=UTC"):
        shown = gear("run", str(program), "--set", key)
        assert shown.exit_code == SUCCESS
        assert "hint: executor.python-options and executor.environment are for" in shown.stderr
    assert "hint:" not in gear("run", str(program)).stderr
