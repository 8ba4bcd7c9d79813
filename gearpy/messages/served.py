"""The base of messages and views that the REST API gives as they are."""

from base64 import b64encode
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import asdict, fields

__all__ = ["Served"]


class Served(Struct, frozen=True):
    """A struct that Pydantic, and so FastAPI, knows by its fields and its docstring.

    Bytes are base64, and null where there are none.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - only services have it

        parts, text = {}, core_schema.nullable_schema(core_schema.str_schema())
        for each in fields(source):
            part = handler.generate_schema(each.type)
            if each.type is bytes:
                part["serialization"] = core_schema.plain_serializer_function_ser_schema(
                    lambda value: b64encode(value).decode() or None, return_schema=text
                )
            is_required = each.default is NODEFAULT and each.default_factory is NODEFAULT
            if each.default is not NODEFAULT:
                part = core_schema.with_default_schema(part, default=each.default)
            parts[each.name] = core_schema.typed_dict_field(part, required=is_required)
        described = {"title": cls.__name__, "description": (cls.__doc__ or "").strip()}
        schema = core_schema.typed_dict_schema(
            parts,
            cls_name=cls.__name__,
            ref=f"{cls.__module__}.{cls.__qualname__}",
            metadata={"pydantic_js_updates": described},
        )

        def plain(value: Any) -> Any:
            return asdict(value) if isinstance(value, Struct) else value

        # A dataclass that holds one is not validated, but only written.
        written = core_schema.wrap_serializer_function_ser_schema(
            lambda value, write: write(plain(value)), schema=schema
        )
        return core_schema.no_info_before_validator_function(plain, schema, serialization=written)
