"""A schema registry, asked over HTTP."""

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from gearpy.errors import ConfigError, GearpyError

#: What a record begins with whose schema is in a registry; the number of the schema follows.
MAGIC: Final = b"\x00"
HEAD_BYTES: Final = 5

_TIMEOUT_S: Final = 10
_JSON: Final = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND: Final = 404
_REFUSED: Final = (401, 403)


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

    def schema(self, number: int) -> str:
        """Return the text of a schema by its number.

        Raises:
            GearpyError: there is none, or the registry does not answer.
        """
        found: str = self._ask("GET", f"/schemas/ids/{number}")["schema"]
        return found

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> int:
        """Return the number of a schema, which is added to its subject if it is not there.

        Args:
            subject: mostly the topic's name and ``-value``.
            schema: its text.
            kind: "AVRO", "PROTOBUF" or "JSON".

        Raises:
            GearpyError: the registry refuses it, or does not answer.
        """
        body = {"schema": schema} if kind == "AVRO" else {"schema": schema, "schemaType": kind}
        path = f"/subjects/{quote(subject, safe='')}/versions"
        number: int = self._ask("POST", path, body)["id"]
        return number

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
                text = error.read(500).decode("utf-8", "replace")
            raise GearpyError(self._told(path, error.code, text)) from error
        except (OSError, ValueError) as error:
            raise GearpyError(
                f"schema registry {self.url} does not answer: {getattr(error, 'reason', error)}"
            ) from error

    def _login(self) -> dict[str, str]:
        if self.user is None:
            return {}
        pair = f"{self.user}:{self.password or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}

    def _told(self, path: str, code: int, text: str) -> str:
        if code == _NOT_FOUND:
            fix = "it has no such schema: is it the registry that the producer uses?"
        elif code in _REFUSED:
            fix = "the login was refused: correct user= and password= of the SchemaRegistry"
        else:
            fix = "it refuses"
        return f"schema registry {self.url}{path}: {fix} (status {code}: {text.strip()})"
