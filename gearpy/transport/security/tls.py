"""TLS 1.3 with certificates of the cluster's own authority, on both ends; see ADR 0005.

It goes around the proof of a key, it does not replace it: a certificate says that a machine
belongs to the cluster, the key says in whose name a process speaks.
"""

import logging
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from gearpy.errors import ConfigError, ProtocolError
from gearpy.transport.security.secret import check_private

_log = logging.getLogger(__name__)

AUTHORITY_FILE: Final = "ca.crt"
CERTIFICATE_FILE: Final = "node.crt"
KEY_FILE: Final = "node.key"

_DAY_S: Final = 24 * 60 * 60
_WARN_DAYS: Final = 30
_READ_BYTES: Final = 65_536
#: A handshake with a chain of a few certificates takes a tenth of it.
_HANDSHAKE_BYTES_MAX: Final = 65_536
#: The reasons of OpenSSL for bytes of any other protocol.
_NO_TLS: Final = frozenset({"HTTP_REQUEST", "UNKNOWN_PROTOCOL", "WRONG_VERSION_NUMBER"})
#: A fatal alert, "protocol version": `Connection` recognises it.
_ALERT: Final = b"\x15\x03\x03\x00\x02\x02\x46"
_MAKE_THEM: Final = "make certificates with `gear certs init`, or copy this machine's here"


class TlsPipe:
    """TLS between a socket and a connection: bytes in, bytes out, no socket.

    After every `receive`, `send` and `close`: put `data_to_send` on the socket.

    Invariant: returns nothing that a peer without a certificate of the authority has sent.

    Runs on: one thread at a time.
    """

    def __init__(self, context: ssl.SSLContext, server_name: str | None = None) -> None:
        """Begin; a client says whom it expects, a server gives no name."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_name is None,
            server_hostname=server_name,
        )
        self._ready = False
        self._early: list[bytes] = []  # Bytes to send after the handshake.
        self._handshake_bytes = 0
        if server_name is not None:
            self._shake_hands()

    @property
    def ready(self) -> bool:
        return self._ready

    @property
    def peer_expires_s(self) -> float:
        certificate: Any = self._tls.getpeercert()
        return float(ssl.cert_time_to_seconds(certificate["notAfter"]))

    def receive(self, data: bytes | memoryview) -> bytes:
        """Take bytes from the socket; return the decrypted bytes."""
        self._incoming.write(data)
        if not self._ready:
            self._handshake_bytes += len(data)
            self._shake_hands()
        found: list[bytes] = []
        try:
            while self._ready and (part := self._tls.read(_READ_BYTES)):
                found.append(part)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass  # No more for now; or for ever, and then the socket ends as well.
        except ssl.SSLError as error:
            raise ProtocolError(_reason(error)) from None
        return b"".join(found)

    def send(self, data: bytes) -> None:
        """Encrypt; bytes sent before the end of the handshake wait for it."""
        if self._ready:
            self._tls.write(data)
        else:
            self._early.append(data)

    def close(self) -> None:
        if self._ready:
            with suppress(ssl.SSLError):  # The peer has not said so, too, and need not.
                self._tls.unwrap()

    def data_to_send(self) -> bytes:
        return self._outgoing.read()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._handshake_bytes > _HANDSHAKE_BYTES_MAX:
                raise ProtocolError(
                    f"more than {_HANDSHAKE_BYTES_MAX} bytes of a TLS handshake"
                ) from None
            return
        except ssl.SSLError as error:
            if error.reason in _NO_TLS:  # OpenSSL says nothing to such a peer.
                self._outgoing.write(_ALERT)
            raise ProtocolError(_reason(error)) from None
        self._ready = True
        early, self._early = self._early, []
        for data in early:
            self._tls.write(data)


class TlsContexts(Struct, frozen=True):
    """The TLS contexts of a process, as a server and as a client."""

    server: ssl.SSLContext
    client: ssl.SSLContext

    def server_pipe(self) -> TlsPipe:
        return TlsPipe(self.server)

    def client_pipe(self, host: str) -> TlsPipe:
        return TlsPipe(self.client, host)

    def check_host(self, host: str) -> None:
        """Try whether clients would accept our certificate for this host."""
        try:
            _try_handshake(self.server_pipe(), self.client_pipe(host))
        except ProtocolError as error:
            raise ConfigError(
                f"cannot listen on {host} with this certificate: {error}; "
                f"make one with `gear certs node --host {host}`"
            ) from None


def load_contexts(folder: str | Path) -> TlsContexts:
    """Return contexts with the certificates in a folder, once they were tried on each other."""
    path = Path(folder).expanduser()
    contexts = TlsContexts(server_context(path), client_context(path))
    anybody = client_context(path)
    anybody.check_hostname = False  # A process that only connects needs no name.
    client = TlsPipe(anybody, "localhost")
    try:
        _try_handshake(contexts.server_pipe(), client)
    except ProtocolError as error:
        raise ConfigError(f"certificates in {path} are of no use: {error}; {_MAKE_THEM}") from None
    days = int((client.peer_expires_s - time.time()) / _DAY_S)
    if days < _WARN_DAYS:
        _log.warning(
            "the certificate in %s expires in %d days: make a new one with `gear certs node`",
            path,
            days,
        )
    return contexts


def server_context(folder: Path) -> ssl.SSLContext:
    """Return the context of a server that accepts certificates of the authority only."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, folder)
    context.verify_mode = ssl.CERT_REQUIRED
    # Connections last; a ticket would make an idle socket readable, as if it had ended.
    context.num_tickets = 0
    return context


def page_context(folder: str | Path) -> ssl.SSLContext:
    context = server_context(Path(folder).expanduser())
    context.verify_mode = ssl.CERT_NONE
    return context


def client_context(folder: Path) -> ssl.SSLContext:
    return _context(ssl.PROTOCOL_TLS_CLIENT, folder)


def _context(protocol: int, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    files = [folder / name for name in (AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE)]
    authority, certificate, key = files
    missing = [str(file) for file in files if not file.exists()]
    if missing:
        raise ConfigError(f"TLS is on, but there is no {', '.join(missing)}: {_MAKE_THEM}")
    try:
        with key.open("rb") as opened:
            check_private(key, opened.fileno(), what="key file")
        context.load_verify_locations(authority)
        # A key with a password would ask for it on the terminal of a daemon.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except ssl.SSLError as error:
        raise ConfigError(
            f"certificates in {folder} cannot be read: {_reason(error)}; {_MAKE_THEM}"
        ) from None
    except OSError as error:
        raise ConfigError(f"certificates in {folder} cannot be read: {error.strerror}") from None
    return context


def _try_handshake(server: TlsPipe, client: TlsPipe) -> None:
    while hello := client.data_to_send():
        server.receive(hello)
        client.receive(server.data_to_send())


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"a certificate was refused: {error.verify_message.rstrip('.')}"
    if error.reason in _NO_TLS:
        return 'the peer does not speak TLS: set transport.tls = "on" there, too'
    text = (error.reason or str(error)).replace("_", " ").lower()
    return f"TLS failed: {text}"
