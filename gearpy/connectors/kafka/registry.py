"""A schema registry, asked over HTTP."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from gearpy.errors import ConfigError, GearpyError

#: A record whose schema is in a registry begins so; the number of the schema follows.
MAGIC: Final = b"\x00"
HEAD_BYTES: Final = 5

_TIMEOUT_S: Final = 10
_SAID_BYTES: Final = 100_000  # Some add a trace behind what they say.
_SAID_CHARACTERS: Final = 500
_JSON: Final = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND: Final = 404
#: Also of a web server that is no registry, or has it below another path.
_NOT_THERE: Final = (_NOT_FOUND, 405)
_NO_LOGIN: Final = 401
_FIXES: Final = {
    _NO_LOGIN: "the login was refused: correct user= and password= of the SchemaRegistry",
    403: "the user has no right to this: have it granted, or correct user= and password=",
    _NOT_FOUND: "it has no such schema: is it the registry that the producer uses?",
    409: "the schema does not fit those before it: change it so that readers of both can go on, or "
    "lower the compatibility of the subject",
    422: "it refuses the schema: correct it",
}
#: The registry is there, and at present can do nothing: as if it were away.
_LATER: Final = (429, 500, 502, 503, 504)
_AVRO: Final = "AVRO"

T = TypeVar("T")


class RegistryAway(GearpyError):
    """A schema registry that does not answer now; waiting may mend it."""


class RegistryRefused(GearpyError):
    """A question that a schema registry refuses; it would refuse it again."""

    is_final = True


class SchemaUnknown(RegistryRefused, ValueError):
    """A schema that the registry does not have: a record that names it is a bad one.

    A registry that is one of several servers may know it in a moment.
    """

    is_final = False


class Reference(NamedTuple):
    """A schema that another one uses: the name that it has there, and where it is kept."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegistrySchema:
    """A schema as a registry keeps it; ``kind`` is "AVRO", "PROTOBUF" or "JSON"."""

    text: str
    kind: str = _AVRO
    references: Sequence[Reference] = ()


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """Address of a schema registry with Confluent's interface, such as Karapace or Apicurio.

    Args:
        url: of the registry, such as ``http://registry:8081``.
        user: name to log in by; None: no login.
        password: of the user.

    Raises:
        ConfigError: the address is none of HTTP, or the login is half given.

    Example:
        >>> import gearpy as gp
        >>> gp.SchemaRegistry("http://registry:8081").url
        'http://registry:8081'
    """

    url: str
    user: str | None = field(default=None, kw_only=True)
    password: str | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if "@" in self.url:
            raise ConfigError(
                "SchemaRegistry: the address has a login: leave it out, and give user= and "
                "password="
            )
        try:
            parts = urlsplit(self.url)
            is_address = parts.scheme in {"http", "https"} and parts.port != 0
        except ValueError:  # The port is none.
            is_address = False
        if not is_address or not parts.hostname or any(map(str.isspace, self.url)):
            raise ConfigError(
                f"SchemaRegistry: {self.url!r} is no address: write http://host:port or https://..."
            )
        if self.password is not None and self.user is None:
            raise ConfigError("SchemaRegistry: a login needs user= and password=: user= is missing")

    def schema(self, number: int) -> RegistrySchema:
        """Return a schema by its number."""
        return self._ask("GET", f"/schemas/ids/{number}", _schema_of)

    def referred(self, reference: Reference) -> RegistrySchema:
        """Return a schema that another one uses."""
        subject = quote(reference.subject, safe="")
        path = f"/subjects/{subject}/versions/{reference.version}"
        return self._ask("GET", path, _schema_of)

    def register(self, subject: str, schema: RegistrySchema) -> int:
        """Return the number of a schema, which is added to its subject if it is not there."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return self._ask("POST", path, lambda said: int(said["id"]), _body_of(schema))

    def version(self, subject: str, schema: RegistrySchema) -> int:
        """Return which version of its subject a schema is that was registered."""
        path = f"/subjects/{quote(subject, safe='')}"
        return self._ask("POST", path, lambda said: int(said["version"]), _body_of(schema))

    def _ask(
        self, method: str, path: str, take: Callable[[Any], T], body: dict[str, Any] | None = None
    ) -> T:
        headers = {"Content-Type": _JSON, "Accept": _JSON}
        if self.user is not None:
            pair = f"{self.user}:{self.password or ''}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        request = urllib.request.Request(  # noqa: S310 - the address was checked
            self.url.rstrip("/") + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers=headers,
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - as above
                return take(json.load(answer))
        except urllib.error.HTTPError as error:
            raise self._refused(path, error) from error
        except (OSError, IncompleteRead) as error:
            reason = getattr(error, "reason", error)
            who = f"schema registry {self.url}"
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise RegistryRefused(
                    f"{who}: its certificate is not trusted: name the file with that of its "
                    f"authority in SSL_CERT_FILE, or correct the address ({reason})"
                ) from error
            raise RegistryAway(f"{who} does not answer: {reason}") from error
        except HTTPException as error:
            raise self._none("its answer is no HTTP; with TLS it is https://") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._none("its answer is not that of one") from error

    def _refused(self, path: str, error: urllib.error.HTTPError) -> GearpyError:
        text, code = "", error.code
        with error, suppress(OSError, HTTPException):
            text = error.read(_SAID_BYTES).decode("utf-8", "replace")
        body: Any = None
        with suppress(ValueError):
            body = json.loads(text)
        try:
            message = body["message"]
        except (KeyError, TypeError):
            message = text
        said = f"status {code}: {str(message).strip()[:_SAID_CHARACTERS]}"
        if code in _LATER:
            return RegistryAway(f"schema registry {self.url}: {said}")
        # Errors of registries have a code of their own.
        is_of_registry = isinstance(body, dict) and "error_code" in body
        if code in _NOT_THERE and not is_of_registry:
            return self._none(f"it has no {path} ({said})")
        fix = _FIXES.get(code, "it refuses")
        if code == _NO_LOGIN and self.user is None:
            fix = "it wants a login: give registry=gp.SchemaRegistry(..., user=, password=)"
        kind = SchemaUnknown if code == _NOT_FOUND else RegistryRefused
        return kind(f"schema registry {self.url}{path}: {fix} ({said})")

    def _none(self, why: str) -> RegistryRefused:
        path = "correct the address and its path, such as /apis/ccompat/v7 with Apicurio"
        return RegistryRefused(f"{self.url} is no schema registry: {why}: {path}")


def number_of(body: bytes) -> int:
    if body[:1] != MAGIC or len(body) < HEAD_BYTES:
        raise ValueError("does not name a schema of the registry: was it written without one?")
    return int.from_bytes(body[1:HEAD_BYTES], "big")


def _body_of(schema: RegistrySchema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.kind != _AVRO:
        body["schemaType"] = schema.kind
    if schema.references:
        body["references"] = [each._asdict() for each in schema.references]
    return body


def _schema_of(answer: Any) -> RegistrySchema:
    references = [
        Reference(each["name"], each["subject"], each["version"])
        for each in answer.get("references") or ()
    ]
    return RegistrySchema(answer["schema"], answer.get("schemaType", _AVRO), references)
