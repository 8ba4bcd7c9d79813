"""``gear certs ...``: makes certificates, and says which file goes where."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final, TypeAlias

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import Given, configured, option
from gearpy.config.schema import Config
from gearpy.distribution import require
from gearpy.transport.security.tls import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE

#: What every machine needs.
_MACHINE_FILES: Final = (AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE)

commands = group("Certificates of a cluster's own authority, for transport.tls = on.")

_Folder: TypeAlias = Annotated[
    Path | None,
    option("--folder", metavar="FOLDER", help="Where to put them; default: transport.tls-folder."),
]
_Hosts: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--host",
        metavar="NAME",
        help="Name or address of the machine as the others see it; may be given several times. "
        "localhost, 127.0.0.1 and ::1 are always in.",
    ),
]
_Days: TypeAlias = Annotated[
    int, typer.Option("--days", min=1, max=3650, help="How long the machine's is good.")
]
_Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


@commands.command(epilog=HELP)
@configured
def init(
    given: Given,
    *,
    folder: _Folder = None,
    host: _Hosts = None,
    days: _Days = 730,
    force: _Force = False,
) -> None:
    """Make an authority, once for a cluster, and a certificate of this machine."""
    config, hosts = given.config(), host or ()
    certificates = _certificates()
    target = _folder(config, folder)
    certificates.make_authority_and_node(target, hosts, days=days, replace=force)
    files = (certificates.AUTHORITY_KEY_FILE, *_MACHINE_FILES)
    names = _names(certificates, hosts)
    given.answer(
        _values(target, files, names),
        *_made(target, files, names, days),
        "\nOn this machine, and on every other:\n"
        '  transport.tls = "on"\n'
        f'  transport.tls-folder = "{target}"\n'
        "\nFor each other machine, make a certificate here:\n"
        f"  gear certs node --authority {target} --folder DIRECTORY --host NAME\n"
        f"and copy {', '.join(_MACHINE_FILES)} of that directory to its transport.tls-folder,\n"
        f"and the secret file, {config.transport.secret_file}, to its transport.secret-file.\n"
        f"Keep {certificates.AUTHORITY_KEY_FILE} here: who has it can let machines in.",
    )


@commands.command(epilog=HELP)
@configured
def node(
    given: Given,
    *,
    authority: Annotated[
        Path | None,
        option(
            "--authority",
            metavar="FOLDER",
            help="Where 'gear certs init' made the authority; default: transport.tls-folder.",
        ),
    ] = None,
    folder: _Folder = None,
    host: _Hosts = None,
    days: _Days = 730,
    force: _Force = False,
) -> None:
    """Make a certificate of one more machine, or a new one before the old expires."""
    config, hosts = given.config(), host or ()
    certificates = _certificates()
    target = _folder(config, folder)
    certificates.make_node(
        target, hosts, authority=_folder(config, authority), days=days, replace=force
    )
    names = _names(certificates, hosts)
    given.answer(
        _values(target, _MACHINE_FILES, names),
        *_made(target, _MACHINE_FILES, names, days),
        f"\nCopy these to the transport.tls-folder of {hosts[0] if hosts else 'that machine'}.",
    )


def _names(certificates: ModuleType, hosts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*certificates.LOOPBACK_HOSTS, *hosts]))


def _certificates() -> ModuleType:
    require("making certificates (not using them)", "cryptography")
    from gearpy.transport.security import certificates

    return certificates


def _folder(config: Config, chosen: Path | None) -> Path:
    return (chosen or Path(config.transport.tls_folder)).expanduser().absolute()


def _made(folder: Path, files: Sequence[str], hosts: Sequence[str], days: int) -> list[str]:
    what = {
        AUTHORITY_FILE: "certificate of the cluster's authority",
        CERTIFICATE_FILE: f"certificate of a machine, good for {days} days",
        KEY_FILE: "its key",
    }
    return [
        f"made in {folder}, readable by you only:",
        *(f"  {file:<9} {what.get(file, 'key of the authority')}" for file in files),
        f"for the hosts {', '.join(hosts)}",
    ]


def _values(folder: Path, files: Sequence[str], hosts: Sequence[str]) -> dict[str, object]:
    return {"folder": str(folder), "files": list(files), "hosts": list(hosts)}
