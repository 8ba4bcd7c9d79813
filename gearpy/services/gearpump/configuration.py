"""A configuration as nested tables, without what must not be shown."""

from typing import Any

from gearpy.config.hidden import shown_setting
from gearpy.config.schema import ROOT, Config, values_of


def config_tables(config: Config) -> dict[str, Any]:
    """Return every key below the table ``gearpy``, as in a file; secrets are left out."""
    root: dict[str, Any] = {}
    for key, value in values_of(config).items():
        *path, name = key.split(".")
        table = root
        for each in path:
            table = table.setdefault(each, {})
        table[name] = shown_setting(key, value)
    return {ROOT: root}
