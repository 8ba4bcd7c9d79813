"""Questions of clients: messages that tell of which kind their answer is."""

import sys
from typing import Any, Generic, TypeVar, get_args

from msgspec import Struct

A = TypeVar("A")


class Question(Struct, Generic[A], frozen=True, kw_only=True):
    """Base of a message for clients: the answer is an ``A``, or `client.Refused`."""


def answer_of(question: type[Question[Any]]) -> type:
    """Return the kind of the answer to a question, which may be declared behind it."""
    (base,) = question.__orig_bases__  # type: ignore[attr-defined] # Python's own.
    (answer,) = get_args(base)
    name = getattr(answer, "__forward_arg__", "")
    found: type = vars(sys.modules[question.__module__])[name] if name else answer
    return found
