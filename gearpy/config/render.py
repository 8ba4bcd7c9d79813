"""A `Config` as a commented TOML file.

``conf/gear.toml`` is what `as_toml` makes of the defaults, so file and schema cannot differ.
"""

import json
from textwrap import wrap
from typing import Final

from gearpy.config.schema import DEFAULTS, ROOT, SETTINGS, Config, values_of

_WIDTH: Final = 98

_HEADER: Final = """\
# Every key of gearpy with its default, its unit and what it is for.
#
# Put a file like this one, gear.toml, into the folder where you work, give it to the command line
# with --conf, or name it in GEARPY_CONFIG; it needs only the keys that differ. In a pyproject.toml
# the tables are [tool.gearpy] and below. The environment (GEARPY_STREAMING_BATCH_MAX_RECORDS=512)
# wins over files, and --set streaming.batch-max-records=512 wins over both.
"""


def as_toml(config: Config = DEFAULTS) -> str:
    """Return the text of a file that sets every key, with unit, bounds and reason as comments."""
    lines, table = [_HEADER.rstrip("\n")], ""
    for key, value in values_of(config).items():
        *path, name = (ROOT, *key.split("."))
        if table != (table := ".".join(path)):
            lines += ["", f"[{table}]"]
        setting = SETTINGS[key]
        is_number = isinstance(setting.default, int)
        allowed = f"{setting.low} to {setting.high}" if is_number else setting.allowed
        lines += ["", *(f"# {line}" for line in wrap(setting.doc, _WIDTH))]
        lines.append(f"# Unit: {setting.unit}. Allowed: {allowed}.")
        # A JSON text, list or number is the same in TOML.
        plain = list(value) if isinstance(value, tuple) else value
        lines.append(f"{name} = {json.dumps(plain, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"
