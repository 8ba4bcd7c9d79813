"""Certificates of a cluster inside Spark, where hosts are known only when workers are there."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from gearpy.distribution import pip_install
from gearpy.errors import ConfigError
from gearpy.spark.guest.order import Authority
from gearpy.transport.security.secret import make_private_folders
from gearpy.transport.security.tls import AUTHORITY_FILE

_DAYS: Final = 365


def make_authority(folder: Path, hosts: Sequence[str]) -> Authority:
    """Have an authority in a folder, with a certificate of this host; return the authority."""
    _check_library()
    from gearpy.transport.security import certificates  # noqa: PLC0415 - needs the extra

    key = folder / certificates.AUTHORITY_KEY_FILE
    if key.exists():  # The host may be another one than before.
        certificates.make_node(folder, hosts, authority=folder, days=_DAYS, replace=True)
    else:
        certificates.make_authority_and_node(folder, hosts, days=_DAYS)
    return Authority((folder / AUTHORITY_FILE).read_bytes(), key.read_bytes())


def make_certificate(folder: Path, authority: Authority, host: str) -> None:
    """Make the certificate of a worker in a folder, where the authority's key does not stay."""
    _check_library()
    from gearpy.transport.security import certificates  # noqa: PLC0415 - needs the extra

    make_private_folders(folder)
    with TemporaryDirectory(dir=folder) as name:  # Only this user can enter it.
        place = Path(name)
        (place / AUTHORITY_FILE).write_bytes(authority.certificate)
        key = place / certificates.AUTHORITY_KEY_FILE
        key.touch(mode=0o600)
        key.write_bytes(authority.key)
        certificates.make_node(folder, [host], authority=place, days=_DAYS)


def _check_library() -> None:
    if find_spec("cryptography") is None:
        raise ConfigError(
            "Spark's executors are on other machines, so connections are encrypted, and making "
            f"certificates needs a library: {pip_install('tls')}; or, on a network that you trust, "
            'config={"transport.plain-text": "anywhere"}'
        )
