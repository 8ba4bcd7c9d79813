"""The bytes of values: by a form such as JSON, or by a function of the user."""

from collections.abc import Callable, Sequence
from copy import copy
from itertools import repeat
from typing import Any, Final, TypeAlias

from gearpy.connectors.files.stamps import each
from gearpy.connectors.files.writers import json_lines
from gearpy.connectors.kafka.values import BytesForm, FormName, TextForm, ValueForm, form_of
from gearpy.errors import OperatorError
from gearpy.messages.table import Table

#: The bytes of a value, or None for a record that deletes its key.
ValueFunction: TypeAlias = Callable[[Any], bytes | None]

_JSON: Final = "json"
_REFUSE_NONE: Final = (BytesForm, TextForm)


class RecordValues:
    """Makes values of results; a result that is None is a record without one."""

    def __init__(self, operator: str, value: FormName | ValueForm | ValueFunction) -> None:
        self._operator = operator
        is_form = isinstance(value, ValueForm)
        self._function = value if callable(value) and not is_form else None
        self._form = None if self._function else form_of(operator, "value", value)

    def begun(self) -> "RecordValues":
        """Return values for one task, as a form keeps the schemas that it knows."""
        if self._form is None:
            return self
        form = copy(self._form)
        form.begin(self._operator)
        return RecordValues(self._operator, form)

    @property
    def take_tables(self) -> bool:
        return self._form is not None and self._form.name == _JSON

    def prepare(self, topic: str) -> None:
        if self._form is not None:
            self._form.prepare(topic)

    def of(self, topics: Sequence[str], results: Sequence[Any]) -> list[bytes | None]:
        function, form = self._function, self._form
        if function is not None:
            return each(self._operator, lambda result: _checked(function(result)), results)
        assert form is not None
        if self.take_tables:
            lines: list[bytes | None] = [*json_lines(self._operator, results).split(b"\n")[:-1]]
            if type(results) is not Table and None in results:
                pairs = zip(results, lines, strict=True)
                lines = [None if result is None else line for result, line in pairs]
            return lines
        if not results:
            return []
        is_one = topics.count(topics[0]) == len(topics)
        if is_one and (isinstance(form, _REFUSE_NONE) or type(None) not in set(map(type, results))):
            try:
                return [*form.encode(topics[0], results)]
            except Exception as error:
                if len(results) == 1 and isinstance(error, OperatorError):
                    raise

        def encode(pair: tuple[str, Any]) -> bytes | None:
            topic, result = pair
            return None if result is None else form.encode(topic, [result])[0]

        named = zip(repeat(topics[0]) if is_one else topics, results, strict=False)
        return each(self._operator, encode, named, records=results)


def _checked(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    raise TypeError(f"value() has returned {value!r:.100}, must be bytes, or None")
