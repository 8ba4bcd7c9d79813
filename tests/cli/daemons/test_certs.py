"""`gear certs`: what it makes, and what it says about it."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cli.terminal.exits import SUCCESS, WRONG_USE
from gearpy.distribution import pip_install
from gearpy.transport.security.tls import load_contexts


def certs(*args: object) -> Any:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["certs", *map(str, args)])


def test_init_makes_what_a_cluster_needs_for_its_user_only(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "certs"

    result = certs("init", "--folder", folder, "--host", "a.example", "--host", "10.0.0.1")

    assert result.exit_code == SUCCESS, result.output
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert modes == dict.fromkeys(("ca.crt", "ca.key", "node.crt", "node.key"), 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    contexts = load_contexts(folder)
    for host in ("a.example", "10.0.0.1", "localhost", "127.0.0.1", "::1"):
        contexts.check_host(host)


def test_init_says_what_it_made_and_what_goes_where(tmp_path: Path) -> None:
    said = certs("init", "--folder", tmp_path / "c").stdout

    assert all(file in said for file in ("ca.crt", "ca.key", "node.crt", "node.key"))
    assert f'transport.tls-folder = "{tmp_path / "c"}"' in said
    assert f"gear certs node --authority {tmp_path / 'c'}" in said
    assert "Keep ca.key here" in said
    assert "PRIVATE" not in said


def test_init_replaces_nothing_unless_told_to(tmp_path: Path) -> None:
    certs("init", "--folder", tmp_path / "c")
    before = {file: file.read_bytes() for file in (tmp_path / "c").iterdir()}

    refused = certs("init", "--folder", tmp_path / "c")
    after = {file: file.read_bytes() for file in (tmp_path / "c").iterdir()}
    forced = certs("init", "--folder", tmp_path / "c", "--force")

    assert refused.exit_code == WRONG_USE
    assert "already: --force replaces" in refused.stderr
    assert after == before
    assert forced.exit_code == SUCCESS
    assert all(file.read_bytes() != text for file, text in before.items())
    load_contexts(tmp_path / "c")


def test_node_makes_the_certificate_of_another_machine(tmp_path: Path) -> None:
    certs("init", "--folder", tmp_path / "c")

    result = certs(
        "node", "--authority", tmp_path / "c", "--folder", tmp_path / "b", "--host", "b.example"
    )

    assert result.exit_code == SUCCESS, result.output
    assert "Copy these to the transport.tls-folder of b.example" in result.stdout
    assert {file.name for file in (tmp_path / "b").iterdir()} == {"ca.crt", "node.crt", "node.key"}
    assert (tmp_path / "b" / "node.key").read_bytes() != (tmp_path / "c" / "node.key").read_bytes()
    load_contexts(tmp_path / "b").check_host("b.example")


def test_node_renews_in_place(tmp_path: Path) -> None:
    certs("init", "--folder", tmp_path / "c")
    authority = (tmp_path / "c" / "ca.crt").read_bytes()
    here = ("--authority", tmp_path / "c", "--folder", tmp_path / "c")

    refused = certs("node", *here, "--host", "new.example")
    renewed = certs("node", *here, "--host", "new.example", "--force")

    assert (refused.exit_code, renewed.exit_code) == (WRONG_USE, SUCCESS)
    assert (tmp_path / "c" / "ca.crt").read_bytes() == authority
    load_contexts(tmp_path / "c").check_host("new.example")


@pytest.mark.parametrize("host", ["", "a b", "-x", "a/b", "host:8090", "ä.example"])
def test_what_is_no_host_is_refused_before_anything_is_written(tmp_path: Path, host: str) -> None:
    result = certs("init", "--folder", tmp_path / "c", f"--host={host}")

    assert result.exit_code == WRONG_USE
    assert "is no host" in result.stderr
    assert not (tmp_path / "c").exists()


def test_an_authority_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = certs("node", "--authority", tmp_path / "no", "--folder", tmp_path / "b")

    assert result.exit_code == WRONG_USE
    assert f"authority in {tmp_path / 'no'} cannot be read" in result.stderr
    assert "gear certs init" in result.stderr
    assert not (tmp_path / "b").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    result = certs("init", "--folder", tmp_path / "file" / "c")

    assert result.exit_code == WRONG_USE
    assert "cannot be written" in result.stderr


def test_json_is_for_programs(tmp_path: Path) -> None:
    made = json.loads(certs("init", "--folder", tmp_path / "c", "--json").stdout)

    assert made == {
        "folder": str(tmp_path / "c"),
        "files": ["ca.key", "ca.crt", "node.crt", "node.key"],
        "hosts": ["localhost", "127.0.0.1", "::1"],
    }


def test_the_folder_of_the_configuration_is_the_default(tmp_path: Path) -> None:
    result = certs("init", "--set", f"transport.tls-folder={tmp_path / 'configured'}")

    assert result.exit_code == SUCCESS, result.output
    load_contexts(tmp_path / "configured")


def test_without_its_library_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "gearpy.transport.security.certificates", raising=False)
    monkeypatch.delattr("gearpy.transport.security.certificates", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)

    result = certs("init", "--folder", tmp_path / "c")

    assert result.exit_code == WRONG_USE
    assert pip_install("tls") in result.stderr
