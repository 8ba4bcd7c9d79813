"""Makes certificates, and says which file goes where."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from gearpy.config.schema import Config
from gearpy.distribution import pip_install
from gearpy.errors import ConfigError
from gearpy.transport.security.tls import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE

__all__ = ["init", "node"]

#: What every machine needs.
_MACHINE_FILES: Final = (AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE)


def init(
    config: Config,
    hosts: Sequence[str],
    *,
    folder: Path | None,
    days: int,
    force: bool,
    as_json: bool,
) -> None:
    """Make the authority of a cluster, and the certificate of this machine."""
    certificates = _certificates()
    target = _folder(config, folder)
    certificates.make_authority_and_node(target, hosts, days=days, replace=force)
    files = (certificates.AUTHORITY_KEY_FILE, *_MACHINE_FILES)
    names = _names(certificates, hosts)
    if as_json:
        _print_json(target, files, names)
        return
    _print_made(target, files, names, days)
    print(
        "\nOn this machine, and on every other:\n"
        '  transport.tls = "on"\n'
        f'  transport.tls-folder = "{target}"\n'
        "\nFor each other machine, make a certificate here:\n"
        f"  gear certs node --authority {target} --folder DIRECTORY --host NAME\n"
        f"and copy {', '.join(_MACHINE_FILES)} of that directory to its transport.tls-folder,\n"
        f"and the secret file, {config.transport.secret_file}, to its transport.secret-file.\n"
        f"Keep {certificates.AUTHORITY_KEY_FILE} here: who has it can let machines in."
    )


def node(
    config: Config,
    hosts: Sequence[str],
    *,
    folder: Path | None,
    authority: Path | None,
    days: int,
    force: bool,
    as_json: bool,
) -> None:
    """Make the certificate of one more machine, or a new one for this machine."""
    certificates = _certificates()
    target = _folder(config, folder)
    certificates.make_node(
        target, hosts, authority=_folder(config, authority), days=days, replace=force
    )
    names = _names(certificates, hosts)
    if as_json:
        _print_json(target, _MACHINE_FILES, names)
        return
    _print_made(target, _MACHINE_FILES, names, days)
    print(f"\nCopy these to the transport.tls-folder of {hosts[0] if hosts else 'that machine'}.")


def _names(certificates: ModuleType, hosts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*certificates.LOOPBACK_HOSTS, *hosts]))


def _certificates() -> ModuleType:
    try:
        from gearpy.transport.security import certificates
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "cryptography":
            raise
        raise ConfigError(
            "certificates are made with the library cryptography, which is not installed: "
            f"{pip_install('tls')}; where certificates are only used, it is not needed"
        ) from None
    return certificates


def _folder(config: Config, chosen: Path | None) -> Path:
    return (chosen or Path(config.transport.tls_folder)).expanduser().absolute()


def _print_made(folder: Path, files: Sequence[str], hosts: Sequence[str], days: int) -> None:
    what = {
        AUTHORITY_FILE: "certificate of the cluster's authority",
        CERTIFICATE_FILE: f"certificate of a machine, good for {days} days",
        KEY_FILE: "its key",
    }
    print(f"made in {folder}, readable by you only:")
    for file in files:
        print(f"  {file:<9} {what.get(file, 'key of the authority')}")
    print(f"for the hosts {', '.join(hosts)}")


def _print_json(folder: Path, files: Sequence[str], hosts: Sequence[str]) -> None:
    from gearpy.cli.terminal.output import print_json

    print_json({"folder": str(folder), "files": list(files), "hosts": list(hosts)})
