"""Tokens are stored as hashes, in a file that is for its owner alone."""

import os
import pwd
from pathlib import Path

import pytest

from gearpy.errors import ConfigError
from gearpy.transport.security.tokens import TokenFile, TokenScope


def test_a_token_is_found_and_cannot_be_read(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "new" / "tokens")

    secret = file.add("ann", TokenScope.SUBMIT, now_ms=7)

    assert file.path.stat().st_mode & 0o777 == 0o600
    assert secret not in file.path.read_text()
    found = TokenFile(file.path).find(secret)
    assert found is not None
    assert (found.name, found.scope, found.created_ms) == ("ann", TokenScope.SUBMIT, 7)
    assert file.find(secret + "x") is None


def test_a_change_by_another_process_counts(tmp_path: Path) -> None:
    file, other = TokenFile(tmp_path / "tokens"), TokenFile(tmp_path / "tokens")
    assert file.tokens() == ()

    secret = other.add("ann", TokenScope.READ, now_ms=1)
    assert file.find(secret) is not None
    other.remove("ann")

    assert file.find(secret) is None
    assert file.tokens() == ()


def test_mistakes_are_told(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    file.add("ann", TokenScope.READ, now_ms=1)
    with pytest.raises(ConfigError, match="there is a token ann"):
        file.add("ann", TokenScope.ADMIN, now_ms=1)
    with pytest.raises(ConfigError, match="no name of a token"):
        file.add("ann smith", TokenScope.ADMIN, now_ms=1)
    with pytest.raises(ConfigError, match="there is no token ben; there are: ann"):
        file.remove("ben")
    me = pwd.getpwuid(os.getuid()).pw_name
    for scope in (TokenScope.READ, TokenScope.SUBMIT):
        with pytest.raises(ConfigError, match=f"{me} is a user of this machine.*--scope admin"):
            file.add(me, scope, now_ms=1)
    assert file.find(file.add(me, TokenScope.ADMIN, now_ms=1))
    file.path.chmod(0o644)
    with pytest.raises(ConfigError, match=r"open to others \(mode 0644\): chmod 600"):
        file.tokens()
    file.path.chmod(0o600)
    file.path.write_text("{}")
    with pytest.raises(ConfigError, match="is damaged"):
        file.tokens()
