"""A configuration as nested tables, without what must not be shown."""

from typing import Any

from gearpy.config.schema import ROOT, Config, values_of
from gearpy.storage.folder.at import without_password


def config_tables(config: Config) -> dict[str, Any]:
    """Return every key below the table ``gearpy``, as in a file; passwords of URLs are left out."""
    root: dict[str, Any] = {}
    for key, value in values_of(config).items():
        *path, name = key.split(".")
        table = root
        for each in path:
            table = table.setdefault(each, {})
        table[name] = _shown(value)
    return {ROOT: root}


def _shown(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_shown(each) for each in value]
    return without_password(value) if isinstance(value, str) else value
