"""A schema registry, asked over HTTP."""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from gearpy.errors import ConfigError, GearpyError

#: What a record begins with whose schema is in a registry; the number of the schema follows.
MAGIC: Final = b"\x00"
HEAD_BYTES: Final = 5

_TIMEOUT_S: Final = 10
_SAID_BYTES: Final = 100_000  # Some add a trace behind what they say.
_SAID_CHARACTERS: Final = 500
_JSON: Final = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND: Final = 404
_REFUSED: Final = (401, 403)
_DOES_NOT_FIT: Final = 409
_NO_SCHEMA: Final = 422
#: The registry is there, and at present can do nothing: as if it were away.
_LATER: Final = (429, 500, 502, 503, 504)
_AVRO: Final = "AVRO"


class RegistryAway(GearpyError):
    """A schema registry that does not answer now; waiting may mend it."""


class RegistryRefused(GearpyError):
    """A question that a schema registry refuses.

    ``is_final``: it would refuse again. A number that it does not know it may know in a moment,
    where it is one of several servers.
    """

    def __init__(self, text: str, *, is_final: bool) -> None:
        super().__init__(text)
        self.is_final = is_final


class Reference(NamedTuple):
    """A schema that another one uses: the name that it has there, and where it is kept."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegistrySchema:
    """A schema as a registry keeps it.

    Attributes:
        text: of the schema.
        kind: "AVRO", "PROTOBUF" or "JSON".
        references: the schemas that it uses.
    """

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
        ConfigError: the address is none of HTTP.

    Example:
        >>> import gearpy as gp
        >>> gp.SchemaRegistry("http://registry:8081").url
        'http://registry:8081'
    """

    url: str
    user: str | None = field(default=None, kw_only=True)
    password: str | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(
                f"SchemaRegistry: {self.url!r} is no address: write http://host:port or https://..."
            )

    def schema(self, number: int) -> RegistrySchema:
        """Return a schema by its number.

        Raises:
            RegistryAway: the registry does not answer.
            RegistryRefused: there is none.
        """
        return _schema_of(self._ask("GET", f"/schemas/ids/{number}"))

    def referred(self, reference: Reference) -> RegistrySchema:
        """Return a schema that another one uses.

        Raises:
            RegistryAway: the registry does not answer.
            RegistryRefused: there is none.
        """
        subject = quote(reference.subject, safe="")
        return _schema_of(self._ask("GET", f"/subjects/{subject}/versions/{reference.version}"))

    def register(self, subject: str, schema: RegistrySchema) -> int:
        """Return the number of a schema, which is added to its subject if it is not there.

        Args:
            subject: mostly the topic's name and ``-value``.
            schema: to be kept there.

        Raises:
            RegistryAway: the registry does not answer.
            RegistryRefused: it refuses the schema.
        """
        number: int = self._ask("POST", _versions(subject), _body_of(schema))["id"]
        return number

    def version(self, subject: str, schema: RegistrySchema) -> int:
        """Return which version of its subject a schema is that was registered.

        Raises:
            RegistryAway: the registry does not answer.
            RegistryRefused: it was not.
        """
        path = f"/subjects/{quote(subject, safe='')}"
        version: int = self._ask("POST", path, _body_of(schema))["version"]
        return version

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the address was checked
            self.url.rstrip("/") + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": _JSON, "Accept": _JSON, **self._login()},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - as above
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(_SAID_BYTES).decode("utf-8", "replace")
            if error.code in _LATER:
                said = f"status {error.code}: {_message_of(text)}"
                raise RegistryAway(f"schema registry {self.url}: {said}") from error
            told = self._told(path, error.code, text)
            raise RegistryRefused(told, is_final=error.code != _NOT_FOUND) from error
        except OSError as error:
            raise RegistryAway(
                f"schema registry {self.url} does not answer: {getattr(error, 'reason', error)}"
            ) from error
        except ValueError as error:
            text = f"{self.url} is no schema registry: its answer is no JSON: correct the address"
            raise RegistryRefused(text, is_final=True) from error

    def _login(self) -> dict[str, str]:
        if self.user is None:
            return {}
        pair = f"{self.user}:{self.password or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}

    def _told(self, path: str, code: int, text: str) -> str:
        if code in _REFUSED:
            fix = "the login was refused: correct user= and password= of the SchemaRegistry"
        elif code == _DOES_NOT_FIT:
            fix = (
                "the schema does not fit those before it: change it so that readers of both can go "
                "on, or lower the compatibility of the subject"
            )
        elif code == _NO_SCHEMA:
            fix = "it refuses the schema: correct it"
        elif code == _NOT_FOUND:
            fix = "it has no such schema: is it the registry that the producer uses?"
        else:
            fix = "it refuses"
        return f"schema registry {self.url}{path}: {fix} (status {code}: {_message_of(text)})"


def _versions(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions"


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


def _message_of(text: str) -> str:
    """Return the message of a registry about an error, which mostly is in JSON."""
    try:
        said = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        said = text
    return str(said).strip()[:_SAID_CHARACTERS]
