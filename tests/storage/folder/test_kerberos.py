"""Kerberos for HDFS: the options reach the client; no server is needed for that."""

import sys
from types import ModuleType
from typing import Any

import pytest

from gearpy.errors import ConfigError
from gearpy.storage.folder.at import file_system_at, folder_at

PLACE = "webhdfs://names.example.org:9870/out"


class _Auth:
    def __init__(self, **options: Any) -> None:
        self.options = options


def test_the_options_reach_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request is then signed by the library with the user's ticket."""
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
