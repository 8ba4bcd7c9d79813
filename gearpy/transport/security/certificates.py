"""Makes the certificates of a cluster: its own authority, and one for each machine; ADR 0005.

Needs the library ``cryptography`` (extra ``tls``). To use certificates, `tls` is enough.
"""

import datetime as dt
import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gearpy.errors import ConfigError
from gearpy.transport.security.secret import check_private, write_private
from gearpy.transport.security.tls import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE

AUTHORITY_KEY_FILE: Final = "ca.key"
#: Every certificate has them: processes of one machine connect this way.
LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "::1")

_AUTHORITY_FILES: Final = (AUTHORITY_FILE, AUTHORITY_KEY_FILE)
_NODE_FILES: Final = (CERTIFICATE_FILE, KEY_FILE)
_AUTHORITY_DAYS: Final = 3650
_COMMON_NAME_CHARACTERS_MAX: Final = 64
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?", re.IGNORECASE)


def make_authority_and_node(
    folder: Path, hosts: Sequence[str], *, days: int, replace: bool = False
) -> None:
    """Make an authority, and a certificate of it for this machine, in one folder."""
    _refuse_to_replace(folder, (*_AUTHORITY_FILES, *_NODE_FILES), replace=replace)
    _alternative_names(hosts)  # Before anything is written.
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities with one name would be told apart by a wrong signature only.
    name = _name(f"gearpy cluster {os.urandom(4).hex()}")
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _builder(name, issuer=name, key=key, days=_AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_key(folder / AUTHORITY_KEY_FILE, key)
    _write(folder / AUTHORITY_FILE, certificate.public_bytes(Encoding.PEM))
    make_node(folder, hosts, authority=folder, days=days, replace=replace)


def make_node(
    folder: Path, hosts: Sequence[str], *, authority: Path, days: int, replace: bool = False
) -> None:
    _refuse_to_replace(folder, _NODE_FILES, replace=replace)
    names = _alternative_names([*LOOPBACK_HOSTS, *hosts])
    signer, signer_key = _load_authority(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name([*hosts, LOOPBACK_HOSTS[0]][0][:_COMMON_NAME_CHARACTERS_MAX])
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key())
    certificate = (
        _builder(subject, issuer=signer.subject, key=key, days=days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(issued_by, critical=False)
        .sign(signer_key, hashes.SHA256())
    )
    _write_key(folder / KEY_FILE, key)
    _write(folder / CERTIFICATE_FILE, certificate.public_bytes(Encoding.PEM))
    if folder != authority:
        _write(folder / AUTHORITY_FILE, signer.public_bytes(Encoding.PEM))


def _refuse_to_replace(folder: Path, names: Iterable[str], *, replace: bool) -> None:
    there = [str(folder / name) for name in names if (folder / name).exists()]
    if there and not replace:
        raise ConfigError(
            f"there is {', '.join(there)} already: --force replaces, or name another folder"
        )


def _builder(
    subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))  # Clocks of machines differ.
        .not_valid_after(now + dt.timedelta(days=days))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys(hosts):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            if _HOST.fullmatch(host) is None:
                raise ConfigError(f"{host!r} is no host: write a name or an address") from None
            names.append(x509.DNSName(host))
    return names


def _load_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key_file = folder / AUTHORITY_KEY_FILE
    try:
        with key_file.open("rb") as opened:
            check_private(key_file, opened.fileno(), what="key file")
            key = load_pem_private_key(opened.read(), password=None)
        certificate = x509.load_pem_x509_certificate((folder / AUTHORITY_FILE).read_bytes())
    except OSError as error:
        raise ConfigError(
            f"authority in {folder} cannot be read: {error.strerror}; "
            "`gear certs init` makes one, once for a cluster"
        ) from None
    except (ValueError, TypeError) as error:
        raise ConfigError(f"authority in {folder} cannot be read: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"authority in {folder} was not made by gearpy: sign with its own tools")
    return certificate, key


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    _write(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _write(file: Path, data: bytes) -> None:
    try:
        write_private(file, data)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
