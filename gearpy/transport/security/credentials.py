"""Credentials: keys and certificates that a process shows to its peers, and demands of them."""

import ipaddress
import logging
from typing import TypeAlias

from msgspec import Struct

from gearpy.config.schema import Config
from gearpy.errors import ConfigError
from gearpy.transport.security.secret import load_or_create_secret
from gearpy.transport.security.tls import TlsContexts, load_contexts
from gearpy.wire.connection.keys import KeyRing, LaunchToken

_log = logging.getLogger(__name__)


class Credentials(Struct, frozen=True, kw_only=True):
    """The keys of a process, its certificates if it speaks TLS, and where it may listen."""

    keys: KeyRing
    tls: TlsContexts | None = None
    plain_text_anywhere: bool = False

    @classmethod
    def of_cluster(cls, config: Config, secret: bytes = b"") -> "Credentials":
        """Return the credentials of a master, a worker or a client: they may read the secret file.

        Args:
            config: says where the secret and certificates are.
            secret: instead of that in the file, for who was told it in another way.

        Raises:
            ConfigError: the secret or a certificate cannot be used.
        """
        secret = secret or load_or_create_secret(config.transport.secret_file)
        return cls._of(config, KeyRing.of_cluster(secret))

    @classmethod
    def of_launch(cls, config: Config, token: LaunchToken) -> "Credentials":
        """Return the credentials of a process that runs code of an application."""
        return cls._of(config, token.keys)

    @classmethod
    def _of(cls, config: Config, keys: KeyRing) -> "Credentials":
        transport = config.transport
        tls = load_contexts(transport.tls_folder) if transport.tls == "on" else None
        return cls(keys=keys, tls=tls, plain_text_anywhere=transport.plain_text == "anywhere")

    def check_host(self, host: str, listen_host: str = "") -> None:
        """Find out whether this process may be known as a host, and listen there or elsewhere.

        Raises:
            ConfigError: it is beyond this machine and nothing hides what is said; or the
                certificate is not for this host.
        """
        if self.tls is not None:
            if not is_unspecified(host):
                self.tls.check_host(host)
        elif not is_loopback(where := listen_host or host):
            if not self.plain_text_anywhere:
                raise ConfigError(
                    f"refused to listen on {where}: connections would be authenticated but not "
                    "encrypted; make certificates with `gear certs init` and set transport.tls = "
                    '"on", or, on a network that you trust, set transport.plain-text = "anywhere"'
                )
            _log.warning(
                "listening on %s WITHOUT ENCRYPTION (transport.plain-text = anywhere): everybody "
                "on this network can read and change what is sent",
                where,
            )


#: A process shows this; a secret is short for the keys of the cluster, in plain text.
Shown: TypeAlias = Credentials | KeyRing | bytes


def credentials_of(shown: Shown) -> Credentials:
    if isinstance(shown, bytes):
        shown = KeyRing.of_cluster(shown)
    return Credentials(keys=shown) if isinstance(shown, KeyRing) else shown


def is_loopback(host: str) -> bool:
    address = _as_ip(host)
    return host == "localhost" if address is None else address.is_loopback


def is_unspecified(host: str) -> bool:
    address = _as_ip(host)
    return host == "" if address is None else address.is_unspecified


def _as_ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
