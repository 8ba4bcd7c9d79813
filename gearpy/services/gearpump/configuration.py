"""A configuration as nested tables, without what must not be shown."""

import re
from typing import Any, Final

from gearpy.config.schema import ROOT, Config, values_of

#: User and password in a URL, such as that of a checkpoint store.
_IN_URL: Final = re.compile(r"(?<=://)[^/@\s]+@")


def config_tables(config: Config) -> dict[str, Any]:
    """Return every key below the table ``gearpy``, as in a file; passwords of URLs are left out."""
    root: dict[str, Any] = {}
    for key, value in values_of(config).items():
        *path, name = key.split(".")
        table = root
        for each in path:
            table = table.setdefault(each, {})
        table[name] = list(value) if isinstance(value, tuple) else shown(value)
    return {ROOT: root}


def shown(value: Any) -> Any:
    """Return a value without user and password where it is a URL."""
    return _IN_URL.sub("***@", value) if isinstance(value, str) else value
