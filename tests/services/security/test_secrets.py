"""Addresses of webhooks, and secrets in arguments, are seen by nobody whom they are not for."""

from pathlib import Path
from typing import Any

import httpx

from gearpy.cli.apps.report import report_html
from gearpy.cluster.app.config import application_overrides
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.report import report_of
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication, GetSubmission
from gearpy.services.server import Services
from gearpy.transport.security.tokens import TokenFile, TokenScope
from tests.eventually import DEADLINE_S, eventually
from tests.services.conftest import API, PLENTY, Served, a_config

_HOOK = "https://hooks.example.org/services/T0/HUSH"
_PROGRAM = """
import itertools
import gearpy as gp

def main(args):
    app = gp.StreamApp("own")
    app.read(gp.generate(itertools.count, rate=10)).write(gp.to_list([]))
    return app
"""


def test_secrets_are_hidden(tmp_path: Path) -> None:
    config = a_config(tmp_path, **{"alerts.webhooks": _HOOK})
    file = TokenFile(config.services.token_file)
    tokens = {each: file.add(each.text, each, now_ms=1) for each in TokenScope}
    with (
        LocalCluster(config) as cluster,
        Services(cluster.client, config, limits=PLENTY) as services,
        httpx.Client(base_url=services.url, timeout=DEADLINE_S) as http,
    ):

        def ask(path: str, scope: TokenScope = TokenScope.SUBMIT) -> Any:
            shown = {"authorization": f"Bearer {tokens[scope]}"}
            return http.get(f"{API}/{path}", headers=shown).json()

        submitted = http.post(
            f"{API}/master/submitprogram",
            headers={"authorization": f"Bearer {tokens[TokenScope.SUBMIT]}"},
            files={"file": ("own.py", _PROGRAM.encode())},
            data={
                "name": "own",
                "args": "--password=HUSH --token HUSH kafka://ann:HUSH@host out",
                "config": f"alerts.webhooks={_HOOK}\ncheckpoint.interval-ms=500",
            },
        )
        assert submitted.status_code == 200, submitted.text
        eventually(lambda: cluster.client.ask(GetApplication(app_id=AppId(1))).status == "active")

        for path in ("master/config", "worker/0/config", "appmaster/1/config"):
            for scope in TokenScope:
                webhooks = ask(path, scope)["gearpy"]["alerts"]["webhooks"]
                assert webhooks == ["https://hooks.example.org/***"]
        assert cluster.client.ask(GetSubmission(app_id=AppId(1))).config == {
            "checkpoint.interval-ms": "500"
        }
        hidden = ["--password=***", "--token", "***", "kafka://ann@host", "out"]
        for scope in (TokenScope.READ, TokenScope.SUBMIT):
            assert ask("appmaster/1/versions", scope)["versions"][0]["args"] == hidden
        (known,) = ask("appmaster/1/versions", TokenScope.ADMIN)["versions"]
        assert known["args"][:3] == ["--password=HUSH", "--token", "HUSH"]
        assert "HUSH" not in report_html(report_of(cluster.client, AppId(1)))
        cluster.client.shutdown(AppId(1))


def test_folders_are_named_by_admins(served: Served, tmp_path: Path) -> None:
    """Others would have daemons make and read files where they may not themselves."""
    config = a_config(tmp_path)
    file = TokenFile(config.services.token_file)
    tokens = {each: file.add(each.text, each, now_ms=1) for each in TokenScope}
    there = tmp_path / "there"
    graph = {
        "appName": "graph",
        "processors": {"0": {"taskClass": "a.B"}},
        "dag": {"vertexList": [0], "edgeList": []},
        "userConfig": {"checkpoint.folder": str(there)},
    }
    toml = f'[gearpy.state]\nfolder = "{there}"\n'
    program = ("own.py", _PROGRAM.encode())
    with Services(served.cluster.client, config, limits=PLENTY) as services:

        def send(route: str, scope: TokenScope, **sent: Any) -> httpx.Response:
            shown = {"authorization": f"Bearer {tokens[scope]}"}
            url = f"{services.url}{API}/master/{route}"
            return httpx.post(url, headers=shown, timeout=DEADLINE_S, **sent)

        lines = {"config": f"checkpoint.folder={there}"}
        for route, sent, key in (
            ("submitprogram", {"files": {"file": program}, "data": lines}, "checkpoint.folder"),
            (
                "submitapp",
                {"files": {"jar": program, "configfile": ("own.toml", toml)}},
                "state.folder",
            ),
            ("submitdag", {"json": graph}, "checkpoint.folder"),
        ):
            answer = send(route, TokenScope.SUBMIT, **sent)
            assert answer.status_code == 403, answer.text
            assert answer.json()["error"].startswith(f"{key}: to name a folder of the cluster")
        assert not there.exists()
        answer = send(
            "submitprogram", TokenScope.ADMIN, files={"file": program}, data={**lines, "name": "f"}
        )
        assert answer.status_code == 200, answer.text
        served.cluster.client.shutdown(answer.json()["appId"])


def test_settings_of_alerts_do_not_travel(tmp_path: Path) -> None:
    config = a_config(tmp_path, **{"alerts.webhooks": _HOOK, "alerts.restarts": "7"})

    assert not [key for key in application_overrides(config) if key.startswith("alerts.")]
