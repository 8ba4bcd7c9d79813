"""Services: Gearpump's REST API, pushed events and the page, from a thread of this process."""

import logging
import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Self

import uvicorn

from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import ClusterClient, user_at_hand
from gearpy.cluster.host.audit import audit_log
from gearpy.cluster.host.open_files import allow_open_files
from gearpy.config.schema import Config
from gearpy.errors import ConfigError
from gearpy.services.application import services_app
from gearpy.services.deps import Deps
from gearpy.services.programs.submission import Submitting
from gearpy.services.programs.uploads import Uploads
from gearpy.services.push.topics import Topics
from gearpy.services.push.watching import Watching
from gearpy.services.security.connections import LimitedProtocol, LimitedSocket
from gearpy.services.security.guard import GuardSettings
from gearpy.services.security.limits import RequestLimits
from gearpy.services.security.sessions import Logins
from gearpy.transport.security.credentials import is_loopback
from gearpy.transport.security.start_token import StartToken, kept_for_others, start_tokens_of
from gearpy.transport.security.tls import page_context
from gearpy.transport.security.tokens import StoredToken, TokenFile, TokenScope, hash_of, new_token

_log = logging.getLogger(__name__)

_BACKLOG: Final = 2048
_KEEP_ALIVE_S: Final = 30
_SOCKET_MAX_BYTES: Final = 4096
_STOP_S: Final = 5.0
_FILES_WANTED: Final = 8192  # Twice as many as connections: uploads and questions need some, too.


class Services:
    """Serves a cluster over HTTP until it is closed.

    Use as a context manager, or call `close`.

    Runs on: a thread of its own.
    """

    def __init__(
        self,
        client: ClusterClient,
        config: Config,
        *,
        host: str | None = None,
        port: int | None = None,
        names: Sequence[str] = (),
        limits: RequestLimits | None = None,
        of_one_run: bool = False,
        needs_token: bool = True,
    ) -> None:
        host = config.services.host if host is None else host
        limits = limits or RequestLimits(upload_max_bytes=config.artifact.max_bytes)
        connections = min(limits.connections_max, allow_open_files(_FILES_WANTED) // 2)
        limits = replace(limits, connections_max=connections)
        tokens = TokenFile(config.services.token_file)
        has_tokens = bool(tokens.tokens())
        if not is_loopback(host) and not has_tokens:
            raise ConfigError(
                f"the services at {host} can be reached from other machines, and there are no "
                "tokens: make one with 'gear token add NAME --scope admin', or listen at 127.0.0.1"
            )
        if has_tokens and not needs_token:
            raise ConfigError(
                f"there are tokens in {tokens.path}, so everybody needs one: leave --no-token out, "
                "or remove them with 'gear token remove NAME'"
            )
        secret = new_token() if needs_token and not has_tokens else ""
        tls = page_context(config.services.tls_folder) if config.services.tls == "on" else None
        self._socket = _listening(host, config.services.port if port is None else port)
        port = self._socket.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://{_in_url(host)}:{port}"
        #: Of this start; None if tokens were made before, or nobody needs one.
        self.started = StartToken(url=self.url, token=secret) if secret else None
        self._folder = Path(tempfile.mkdtemp(prefix="gearpy-services-"))
        user = user_at_hand()
        guard = GuardSettings(
            tokens=tokens,
            started=StoredToken(
                name=user, scope=TokenScope.ADMIN, sha256=hash_of(secret), created_ms=wall_ms()
            )
            if secret
            else None,
            needs_login=needs_token,
            user=user,
            names=frozenset(each.lower() for each in (host, socket.gethostname(), *names) if each),
            cookie=f"gearpy_login_{port}",
            limits=limits,
        )
        uploads = Uploads(self._folder, config.artifact.max_bytes)
        self._deps = Deps(
            client=client,
            config=config,
            guard=guard,
            logins=Logins(),
            watching=Watching(client),
            topics=Topics(viewers_max=limits.viewers_max),
            uploads=uploads,
            submitting=Submitting(client, config, uploads),
            of_one_run=of_one_run,
        )
        self._opened = ExitStack()
        self._opened.enter_context(audit_log(config))
        if self.started is not None:
            self._opened.enter_context(_findable(self.started, tokens.path))
        self._server = _server(self._deps, limits, tls)
        serve = partial(self._server.run, sockets=[self._socket])
        self._thread = threading.Thread(target=serve, name="gearpy-services", daemon=True)
        self._thread.start()

    @property
    def page(self) -> str:
        """The address of the page, which logs in whom it is told, if that needs a token."""
        return self.started.page if self.started else f"{self.url}/"

    def close(self) -> None:
        self._deps.topics.close()
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        if self._thread.is_alive():
            self._server.force_exit = True
            self._thread.join(_STOP_S)
        self._socket.close()
        self._opened.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _findable(started: StartToken, token_file: Path) -> Iterator[None]:
    """Let other programs of this user find the token, if it has a place to write it to."""
    with ExitStack() as kept:
        try:
            kept.enter_context(kept_for_others(start_tokens_of(token_file), started))
        except ConfigError as error:
            _log.warning("'gear token show' will not know these services: %s", error)
        yield


def _server(deps: Deps, limits: RequestLimits, tls: ssl.SSLContext | None) -> uvicorn.Server:
    config = uvicorn.Config(
        services_app(deps),
        http=LimitedProtocol.with_limits(limits),
        ws=LimitedSocket.with_limits(limits),
        ws_max_size=_SOCKET_MAX_BYTES,  # Nobody listens to what clients say.
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level=logging.WARNING,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    config.load()
    config.ssl = tls
    return uvicorn.Server(config)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, proto)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(
            f"the services cannot listen at {_in_url(host)}:{port}: {reason}; choose another "
            "with --port or services.port"
        ) from error
    return listening


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
