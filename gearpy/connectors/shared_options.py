"""Options that several functions share: written once, in a `TypedDict`, and taken by ``**``.

Checkers know them by `Unpack`. People find them where they look: in the signature of each function,
with their defaults, and in its docstring.
"""

import re
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_LINE: Final = re.compile(r"^ *options: .*\n", re.MULTILINE)


def takes(shared: type, defaults: Callable[..., Any]) -> Callable[[F], F]:
    """Show the options of a `TypedDict` as those of the function that takes them by ``**options``.

    Args:
        shared: its docstring has a line for each behind ``Attributes:``; these take the place of
            the function's own line about ``options``.
        defaults: a function or class with such parameters.
    """

    def shown(function: F) -> F:
        own, known = signature(function), signature(defaults).parameters
        kept = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        more = [known[name].replace(kind=Parameter.KEYWORD_ONLY) for name in shared.__annotations__]
        vars(function)["__signature__"] = own.replace(parameters=[*kept, *more])
        about = (shared.__doc__ or "").partition("Attributes:\n")[2].rstrip() + "\n"
        function.__doc__ = _LINE.sub(lambda _: about, function.__doc__ or "", count=1)
        return function

    return shown


def check_options(function: str, given: Mapping[str, Any], shared: type) -> None:
    for name in given:
        if name not in shared.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
