"""Avro as a form of values, with the schemas in a registry or given."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gearpy.connectors.kafka.avro_fit import Fit, fit_of, is_kept, is_recursive
from gearpy.connectors.kafka.registry import (
    HEAD_BYTES,
    MAGIC,
    RegistrySchema,
    SchemaRegistry,
    number_of,
)
from gearpy.connectors.kafka.values import ValueForm
from gearpy.distribution import require
from gearpy.errors import ConfigError, GearpyError

_NAME: Final = "avro"
#: A schema has others in it by these keys.
_INNER: Final = ("type", "fields", "items", "values")
_OF_DICTS: Final = frozenset({"fields", "values"})
#: In fewer bytes no value is so deep that the stack of a thread would be too small for it.
_DEEP_BYTES: Final = 1000
_OF_LISTS: Final = frozenset({"items"})


def avro(
    *,
    registry: SchemaRegistry | str | None = None,
    schema: str | Mapping[str, Any] | None = None,
    subject: str | None = None,
) -> "AvroForm":
    """Return Avro as the form of the values of a topic.

    With a registry each record says by which schema it was written, as Confluent's clients have
    it. Without one all are of the schema that is given, and nothing stands before them.

    Args:
        registry: where schemas are kept, or its address.
        schema: an Avro schema as JSON text or as a dict. A source reads as it says, whatever the
            schema of the writer, by Avro's rules of evolution; a sink writes by it.
        subject: of a sink, the name under which the schema is added to the registry; by default
            the topic's name and ``-value``.

    Raises:
        ConfigError: there is neither a registry nor a schema, or the schema is none.

    Example:
        >>> import gearpy as gp
        >>> schema = {"type": "record", "name": "Click", "fields": [{"name": "n", "type": "int"}]}
        >>> gp.avro(schema=schema).name
        'avro'
    """
    require("avro", "fastavro")
    if registry is None and schema is None:
        raise ConfigError("avro: give registry= or schema=, or both")
    if isinstance(registry, str):
        registry = SchemaRegistry(registry)
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise ConfigError(f"avro: schema is no JSON: {error}") from error
    return AvroForm(registry, schema, subject)


class AvroForm(ValueForm):
    name = _NAME

    def __init__(self, registry: SchemaRegistry | None, schema: Any, subject: str | None) -> None:
        self._registry = registry
        self._schema = schema
        self._subject = subject
        self._parsed: Any = None
        self._fits: Fit | None = None  # See `fit_of`.
        self._written: Any = None  # See `_optional`.
        self._named: dict[str, Any] = {}  # Its named types.
        self._recursive: set[int] = set()  # Schemas that are kept, by `id`.
        self._writers: dict[int, Any] = {}  # Schemas of the registry, by number.
        self._heads: dict[str, bytes] = {}  # They are by topic.

    def begin(self, operator: str) -> None:
        import fastavro  # noqa: PLC0415 - an extra
        from fastavro import _read_py, validation, write  # noqa: PLC0415 - an extra

        self._avro, self._validation = fastavro, validation
        self._slow_reader = _read_py.schemaless_reader
        if self._schema is not None:
            try:
                named: dict[str, Any] = {}
                self._parsed = fastavro.parse_schema(self._schema, named)
                if is_recursive(self._parsed, named):
                    self._recursive.add(id(self._parsed))
                self._fits = fit_of(self._parsed, named, write.LOGICAL_WRITERS)
                self._written = fastavro.parse_schema(_optional(self._schema), self._named)
            except Exception as error:
                raise ConfigError(f"{operator}: the Avro schema is none: {error}") from error

    def prepare(self, topic: str) -> None:
        self._head(topic)

    def decode(self, bodies: Sequence[bytes | None]) -> list[Any]:
        return [None if body is None else self._decoded(body) for body in bodies]

    def encode(self, topic: str, values: Sequence[Any]) -> list[bytes]:
        head = self._head(topic)
        return [head + self._encoded(value) for value in values]

    def _decoded(self, body: bytes) -> Any:
        writer, begin = self._parsed, 0
        if self._registry is not None:
            number = number_of(body)
            if number not in self._writers:
                schema = self._registry.schema(number)
                try:
                    named: dict[str, Any] = {}
                    parsed = self._writers[number] = self._parse(schema, named)
                    if is_recursive(parsed, named):
                        self._recursive.add(id(parsed))
                except GearpyError:
                    raise
                except Exception as error:  # fastavro raises errors of many kinds.
                    raise ValueError(
                        f"its schema, {number} of the registry, is {schema.kind} and none of Avro: "
                        f"{type(error).__name__}: {error}"
                    ) from error
            writer, begin = self._writers[number], HEAD_BYTES
        try:
            stream = io.BytesIO(body)
            stream.seek(begin)
            is_deep = len(body) > _DEEP_BYTES and id(writer) in self._recursive
            read = self._slow_reader if is_deep else self._avro.schemaless_reader
            value = read(stream, writer, self._parsed)
        except Exception as error:  # fastavro raises errors of many kinds.
            cause = f"{type(error).__name__}: {error}"
            raise ValueError(f"is no Avro of its schema: {cause}") from error
        if stream.tell() != len(body):
            raise ValueError("is no Avro of its schema: bytes are left over")
        return value

    def _parse(self, schema: RegistrySchema, named: dict[str, Any]) -> Any:
        assert self._registry is not None
        for reference in schema.references:
            self._parse(self._registry.referred(reference), named)
        return self._avro.parse_schema(json.loads(schema.text), named_schemas=named)

    def _encoded(self, value: Any) -> bytes:
        stream = io.BytesIO()
        try:
            assert self._fits is not None, "_head() has seen a schema"
            try:
                is_sure = self._fits(value)
            except Exception:  # noqa: BLE001 - the value does not fit; what follows names it.
                is_sure = False
            # The writer alone makes 1 of 1.5, and an int of any number: readers get another value.
            if not is_sure:
                self._validation.validate(value, self._parsed)
            # Otherwise it leaves out fields that the schema does not have.
            self._avro.schemaless_writer(stream, self._written, value, strict_allow_default=True)
        except Exception as error:  # fastavro raises errors of many kinds.
            told = "; ".join(map(str, getattr(error, "errors", ())))
            told = told or _unknown_field(self._written, value, self._named) or str(error)
            raise ValueError(f"the value does not fit the Avro schema: {told}") from error
        body = stream.getvalue()
        if not is_sure:
            read = self._slow_reader(io.BytesIO(body), self._written, None)
            if not is_kept(value, read):
                raise ValueError(
                    f"the value does not fit the Avro schema: readers would get {read!r:.200}; "
                    "give times a zone and no more digits than the schema has, and no number that "
                    "a fraction does not keep"
                )
        return body

    def _head(self, topic: str) -> bytes:
        if self._parsed is None:
            raise ConfigError("a sink needs the schema to write by: give schema= to avro()")
        if self._registry is None:
            return b""
        if topic not in self._heads:
            subject = self._subject or f"{topic}-value"
            schema = RegistrySchema(json.dumps(self._schema))
            number = self._registry.register(subject, schema)
            self._heads[topic] = MAGIC + number.to_bytes(4, "big")
        return self._heads[topic]


def _optional(schema: Any) -> Any:
    """Return a schema in which fields that may be null are null where a result has none."""
    if isinstance(schema, list):
        return [*map(_optional, schema)]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: _optional(part) if key in _INNER else part for key, part in schema.items()}
    if "name" in made and "default" not in made and "null" in made.get("type", ()):
        made["default"] = None
    return made


def _unknown_field(schema: Any, value: Any, named: Mapping[str, Any]) -> str:
    """Return which field of a value a schema does not have, and how to mend it; empty: none."""
    if isinstance(schema, list):
        # The branch of a union that has most of the fields, or the name that the value gives.
        name, value = value if isinstance(value, tuple) else ("", value)
        keys = _OF_DICTS if isinstance(value, Mapping) else _OF_LISTS
        full = [_full(each, named) for each in schema]
        fitting = [
            each
            for each in full
            if not keys.isdisjoint(each) and (not name or name == each.get("name"))
        ]
        schema = max(
            fitting,
            key=lambda each: sum(field["name"] in value for field in each.get("fields", ())),
            default=None,
        )
    schema = _full(schema, named)
    parts: list[tuple[Any, Any]] = []
    if "items" in schema and isinstance(value, Sequence):
        parts = [(schema["items"], each) for each in value]
    elif "values" in schema and isinstance(value, Mapping):
        parts = [(schema["values"], each) for each in value.values()]
    elif "fields" in schema and isinstance(value, Mapping):
        fields = {field["name"]: field["type"] for field in schema["fields"]}
        for name in value:
            if name not in fields:
                return (
                    f"{schema['name']} has no field {name!r:.100}; it has {', '.join(fields)}: add "
                    "it to the schema, with a default, or leave it out by a map() before the sink"
                )
        parts = [(fields[name], part) for name, part in value.items()]
    return next(filter(None, (_unknown_field(*part, named) for part in parts)), "")


def _full(schema: Any, named: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = named.get(schema) if isinstance(schema, str) else schema
    return schema if isinstance(schema, Mapping) else {}
