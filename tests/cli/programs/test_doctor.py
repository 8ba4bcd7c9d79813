"""``gear doctor``: what it finds on a machine."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from tests.cli.build import Gear


def found(*options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    answer = CliRunner().invoke(app, ["doctor", "--json", *options])

    assert answer.exit_code == code, answer.output
    return {each["what"]: each for each in json.loads(answer.stdout)["findings"]}


def test_what_is_there_is_told_with_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"

    findings = found("--set", f"checkpoint.folder={folder}")

    assert findings["extra ui"]["state"] == "ok"
    assert findings["checkpoint.folder"]["found"].startswith(str(folder))
    assert findings["cluster"] == {
        "what": "cluster",
        "state": "missing",
        "found": "none at 127.0.0.1:3000",
        "fix": "gear local starts one",
    }


def test_a_master_whose_address_leads_nowhere_is_missing() -> None:
    findings = found("--master", "[::1]:9")

    assert findings["cluster"]["found"] == "none at [::1]:9"


def test_an_extra_that_is_missing_has_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gearpy.distribution._is_there", lambda module: module != "deltalake")

    findings = found()

    assert findings["extra delta"]["state"] == "missing"
    assert findings["extra delta"]["fix"].endswith("[delta]'")
    assert findings["extra kafka"]["state"] == "ok"


def test_a_full_disk_and_a_wrong_configuration_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1))

    assert found(code=1)["checkpoint.folder"]["fix"].startswith("make room")
    wrong = found("--set", "checkpoint.foldr=x", code=1)["configuration"]
    assert "did you mean" in wrong["found"]


def test_port_0_is_any_free_one() -> None:
    findings = found("--set", "services.port=0")

    assert findings["services.port"]["found"] == "any port that is free"


def test_a_cluster_is_told_by_its_id(gear: Gear) -> None:
    findings = {each["what"]: each for each in json.loads(gear("doctor", "--json"))["findings"]}

    assert findings["cluster"]["state"] == "ok"
    assert findings["cluster"]["found"].startswith("k3f9a1c2 at ")
