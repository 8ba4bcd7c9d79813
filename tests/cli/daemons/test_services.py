"""`gear services`, `gear token` and `gear run --ui`: what they say, and when they do not start."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import gearpy as gp
from gearpy.cli.main import app
from gearpy.cli.programs.run import Page
from gearpy.cli.terminal.exits import SUCCESS, WRONG_USE
from gearpy.cli.terminal.services import check_services
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import user_at_hand
from gearpy.cluster.embedded.signals import StopSignals
from gearpy.config.load import load
from gearpy.distribution import pip_install
from gearpy.errors import NotInstalled
from gearpy.transport.security.tokens import TokenFile
from tests.eventually import DEADLINE_S


def gear(*args: str) -> Any:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, args)


def test_tokens_are_made_listed_and_removed(tmp_path: Path) -> None:
    """A token is printed once; the list has names and scopes."""
    path = tmp_path / "tokens"
    given = ("--set", f"services.token-file={path}")
    assert gear("token", "list", *given).stdout == (
        "there are no tokens: services on this machine make one at each start, see "
        "'gear token show'\n"
    )

    made = gear("token", "add", "ann", "--scope", "submit", *given)

    assert made.exit_code == SUCCESS, made.output
    found = TokenFile(path).find(made.stdout.strip())
    assert found is not None
    assert (found.name, found.scope.text) == ("ann", "submit")
    listed = json.loads(gear("token", "list", "--json", *given).stdout)
    assert [(each["name"], each["scope"]) for each in listed["tokens"]] == [("ann", "submit")]
    assert re.search(r"ann +submit +\d{4}-", gear("token", "list", *given).stdout)
    again = gear("token", "add", "ann", *given)
    assert again.exit_code == WRONG_USE
    assert "there is a token ann" in again.stderr
    assert gear("token", "remove", "ann", *given).stdout == "the token ann is removed\n"
    assert TokenFile(path).tokens() == ()


def _keys(folder: Path) -> dict[str, str]:
    return {
        "services.token-file": f"{folder}/tokens",
        "services.port": "0",
        "log.folder": f"{folder}/log",
        "transport.secret-file": f"{folder}/secret",
        "cluster.masters": "127.0.0.1:0",
    }


def test_other_machines_need_tokens(tmp_path: Path) -> None:
    config = load(env={}, overrides=_keys(tmp_path))
    with LocalCluster(config, listen=True) as cluster:
        keys = {**_keys(tmp_path), "cluster.masters": cluster.address}
        assignments = [part for key in keys for part in ("--set", f"{key}={keys[key]}")]

        refused = gear("services", "--host", "0.0.0.0", *assignments)  # noqa: S104

    assert refused.exit_code == WRONG_USE
    assert "make one with 'gear token add NAME --scope admin'" in refused.stderr


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    said = re.escape(f"needs uvicorn, not installed here: {pip_install('ui')}")
    with pytest.raises(NotInstalled, match=said):
        check_services()


def test_the_page_of_a_run_goes_on_behind_its_end(tmp_path: Path) -> None:
    config, said = load(env={}, overrides=_keys(tmp_path)), list[str]()
    stop = StopSignals(on_second=lambda _: None)
    answers = list[int]()
    given = ("--set", f"services.token-file={tmp_path}/tokens")

    def say(line: str) -> None:
        said.append(line)
        found = re.search(r" at (http://\S+)/\?token=(gear_\S+)#/app/1\b", line)
        assert found, line
        url, token = found.groups()
        assert gear("token", "show", url, *given).stdout == f"{token}\n"
        assert gear("token", "show", *given).stdout == f"{url}/?token={token}\n"
        for shown in ({}, {"authorization": f"Bearer {token}"}):
            answer = httpx.get(f"{url}/api/v1.0/overview", headers=shown, timeout=DEADLINE_S)
            answers.append(answer.status_code)
        if "has ended" in line:
            stop.ask(2)

    page = Page(config, port=None, keeps=True, say=say)
    with (
        LocalCluster(config) as cluster,
        cluster.submitted(_empty(), executors=1) as submitted,
        page.of(stop, submitted),
    ):
        submitted.wait(DEADLINE_S)

    assert [line.partition(" at ")[0] for line in said] == [
        "the page of this run is",
        "the run has ended; the page goes on",
    ]
    assert answers == [401, 200, 401, 200]
    none = gear("token", "show", *given)
    assert none.exit_code == WRONG_USE
    assert "no services that you run on this machine have made a token" in none.stderr


def test_without_a_token_it_says_what_that_gives_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, said = load(env={}, overrides=_keys(tmp_path)), list[str]()
    page = Page(config, port=None, keeps=False, say=said.append, no_token=True)
    with (
        LocalCluster(config) as cluster,
        cluster.submitted(_empty(), executors=1) as submitted,
        page.of(StopSignals(on_second=lambda _: None), submitted),
    ):
        url = said[0].partition(" at ")[2].partition("/#")[0]
        assert httpx.get(f"{url}/api/v1.0/overview", timeout=DEADLINE_S).status_code == 200
        submitted.wait(DEADLINE_S)

    assert "token=" not in said[0]
    assert capsys.readouterr().err == (
        f"--no-token: every user of this machine can run code as you ({user_at_hand()})\n"
    )


def _empty() -> gp.StreamApp:
    program = gp.StreamApp("empty")
    program.read(gp.collection([1])).write(gp.to_list([]))
    return program
