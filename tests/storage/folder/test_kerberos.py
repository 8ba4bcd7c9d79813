"""Kerberos for HDFS: the options reach the client; no server is needed for that."""

import sys
from types import ModuleType
from typing import Any

import pytest
import requests
from fsspec.config import apply_config, set_conf_env  # type: ignore[import-untyped]

from gearpy.errors import ConfigError
from gearpy.storage.folder.at import file_system_at, folder_at

PLACE = "webhdfs://names.example.org:9870/out"


class _Auth:
    def __init__(self, **options: Any) -> None:
        self.options = options


def test_the_options_reach_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("requests_kerberos")
    library.HTTPKerberosAuth = _Auth  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "requests_kerberos", library)
    options = {"kerberos": True, "kerb_kwargs": {"principal": "ann@EXAMPLE.ORG"}}

    files, _ = file_system_at(PLACE, {**options, "skip_instance_cache": True})

    assert isinstance(files.session.auth, _Auth)
    assert files.session.auth.options == {"principal": "ann@EXAMPLE.ORG"}


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests_kerberos", None)

    with pytest.raises(ConfigError, match="requests_kerberos"):
        folder_at(PLACE, {"kerberos": True, "skip_instance_cache": True}, key="folder")


@pytest.mark.parametrize(
    ("auth", "told"),
    [
        (None, r"a login .*FSSPEC_WEBHDFS_KERBEROS=true .* storage_options=.*kerberos.* kinit"),
        (_Auth(), "takes no ticket of this user: .* kinit"),
    ],
    ids=["no login", "no ticket"],
)
def test_a_login_that_is_missing_is_told(
    monkeypatch: pytest.MonkeyPatch, auth: Any, told: str
) -> None:
    files, path = file_system_at(PLACE, {"skip_instance_cache": True})
    refused = requests.Response()
    refused.status_code = 401
    monkeypatch.setattr(files.session, "auth", auth)
    monkeypatch.setattr(files.session, "request", lambda **_: refused)

    with pytest.raises(PermissionError, match=told):
        files.info(path)


def test_the_login_can_be_a_setting_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("requests_kerberos")
    library.HTTPKerberosAuth = _Auth  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "requests_kerberos", library)
    asked = {"FSSPEC_WEBHDFS_KERBEROS": "true"}
    conf: dict[str, dict[str, Any]] = {}
    set_conf_env(conf, envdict=asked)
    monkeypatch.setattr("fsspec.config.conf", conf)
    monkeypatch.setattr("fsspec.spec.apply_config", lambda cls, kw: apply_config(cls, kw, conf))

    files, _ = file_system_at(PLACE, {"skip_instance_cache": True})

    assert isinstance(files.session.auth, _Auth)
