"""From the configuration to what a process shows, see `gearpy.transport.security.credentials`."""

from pathlib import Path

import pytest

from gearpy.config.schema import Config, config_of
from gearpy.errors import ConfigError
from gearpy.ids import AppId, ExecutorId
from gearpy.transport.security.certificates import (
    AUTHORITY_KEY_FILE,
    make_authority_and_node,
    make_node,
)
from gearpy.transport.security.credentials import Credentials, credentials_of
from gearpy.transport.security.secret import load_or_create_secret
from gearpy.transport.security.tls import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE, load_contexts
from gearpy.wire.connection.keys import LaunchToken
from tests.transport.build import KEYS, SECRET, Folders

DAYS = 365


def a_config(tmp_path: Path, **transport: str) -> Config:
    values = {"transport.secret-file": str(tmp_path / "secret")}
    for name, value in transport.items():
        values[f"transport.{name.replace('_', '-')}"] = value
    return config_of(values)


def test_credentials_follow_the_configuration(tmp_path: Path, folders: Folders) -> None:
    plain = Credentials.of_cluster(a_config(tmp_path))
    config = a_config(tmp_path, tls="on", tls_folder=str(folders.cluster), plain_text="anywhere")
    encrypted = Credentials.of_cluster(config)

    secret = load_or_create_secret(tmp_path / "secret")
    assert plain.keys.key_of(plain.keys.own) == secret
    assert (plain.tls, plain.plain_text_anywhere) == (None, False)
    assert encrypted.tls is not None
    assert encrypted.plain_text_anywhere


def test_a_launched_process_needs_no_secret_file(tmp_path: Path, folders: Folders) -> None:
    token = LaunchToken.issued(KEYS, AppId(7), ExecutorId(0), launch=1, expires_ms=1)
    config = a_config(tmp_path, tls="on", tls_folder=str(folders.cluster))

    credentials = Credentials.of_launch(config, token)

    assert str(credentials.keys.own) == "application 7"
    assert credentials.tls is not None
    assert not (tmp_path / "secret").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_plain_text_is_spoken_on_this_machine(host: str, caplog: pytest.LogCaptureFixture) -> None:
    credentials_of(SECRET).check_host(host)

    assert caplog.text == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "10.0.0.1", "node.example"])  # noqa: S104
def test_plain_text_beyond_this_machine_must_be_asked_for(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The refusal names both ways out; the permission is loud."""
    with pytest.raises(ConfigError) as caught:
        credentials_of(SECRET).check_host(host)
    Credentials(keys=KEYS, plain_text_anywhere=True).check_host(host)

    assert 'transport.tls = "on"' in str(caught.value)
    assert 'transport.plain-text = "anywhere"' in str(caught.value)
    assert "WITHOUT ENCRYPTION" in caplog.text


def test_with_tls_other_machines_are_let_in(shown: Credentials) -> None:
    """Under the names that are in the certificate; a wildcard address has none."""
    for host in ("node.example", "127.0.0.1", "::1", "0.0.0.0", "::"):  # noqa: S104
        shown.check_host(host)

    with pytest.raises(ConfigError, match=r"cannot listen on 10\.0\.0\.1 .* certs node --host"):
        shown.check_host("10.0.0.1")


@pytest.mark.parametrize("file", [AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE])
def test_a_missing_or_broken_file_is_one_clear_error(
    tmp_path: Path, folders: Folders, file: str
) -> None:
    for name in (AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE):
        copied = tmp_path / name
        copied.write_bytes((folders.cluster / name).read_bytes())
        copied.chmod(0o600)
    load_contexts(tmp_path)

    (tmp_path / file).write_text("nothing")
    with pytest.raises(ConfigError, match="cannot be read") as broken:
        load_contexts(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(ConfigError, match=f"there is no .*{file}") as missing:
        load_contexts(tmp_path)

    for caught in (broken, missing):
        assert "gear certs init" in str(caught.value)
        assert len(caught.value.mistakes) == 1


def test_no_folder_at_all_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"TLS is on, but there is no") as caught:
        Credentials.of_cluster(a_config(tmp_path, tls="on", tls_folder=str(tmp_path / "no")))

    assert len(caught.value.mistakes) == 1


def test_an_expired_certificate_is_one_clear_error(folders: Folders) -> None:
    """Otherwise every peer would refuse us, one after the other."""
    with pytest.raises(ConfigError, match="certificate has expired"):
        load_contexts(folders.expired)


def test_a_certificate_that_expires_soon_is_told(
    folders: Folders, caplog: pytest.LogCaptureFixture
) -> None:
    load_contexts(folders.cluster)
    assert caplog.text == ""

    load_contexts(folders.expiring)
    assert "expires in 9 days" in caplog.text


def test_a_certificate_of_another_authority_is_found_at_once(
    tmp_path: Path, folders: Folders
) -> None:
    for folder, names in (
        (folders.cluster, [AUTHORITY_FILE]),
        (folders.other_cluster, [CERTIFICATE_FILE, KEY_FILE]),
    ):
        for name in names:
            (tmp_path / name).write_bytes((folder / name).read_bytes())
            (tmp_path / name).chmod(0o600)

    with pytest.raises(ConfigError, match="of no use: a certificate was refused"):
        load_contexts(tmp_path)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    make_authority_and_node(tmp_path / "c", [], days=DAYS)
    (tmp_path / "c" / KEY_FILE).chmod(0o640)
    (tmp_path / "c" / AUTHORITY_KEY_FILE).chmod(0o644)

    with pytest.raises(ConfigError, match=r"node\.key is open to others \(mode 0640\)"):
        load_contexts(tmp_path / "c")
    with pytest.raises(ConfigError, match=r"ca\.key is open to others \(mode 0644\)"):
        make_node(tmp_path / "d", [], authority=tmp_path / "c", days=DAYS)
