"""A `Config` as a commented TOML file.

``conf/gear.toml`` is what `as_toml` makes of the defaults, so file and schema cannot differ.
"""

import json
from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from gearpy.config.schema import DEFAULTS, ROOT, SETTINGS, Config, values_of
from gearpy.config.setting import Setting, Value

_WIDTH: Final = 98

_HEADER: Final = """\
# Every key of gearpy with its default, its unit and what it is for.
#
# Give a file like this one to the command line with --conf, or name it in GEARPY_CONFIG; it
# needs only the keys that differ. The environment (GEARPY_STREAMING_BATCH_MAX_RECORDS=512) wins
# over files, and --set streaming.batch-max-records=512 wins over both.
"""


def as_toml(config: Config = DEFAULTS) -> str:
    """Return the text of a file that sets every key, with unit, bounds and reason as comments."""
    return "\n".join([_HEADER.rstrip("\n"), *_lines(config)]) + "\n"


def _lines(config: Config) -> Iterator[str]:
    table = ""
    for key, value in values_of(config).items():
        *path, name = (ROOT, *key.split("."))
        if table != (table := ".".join(path)):
            yield from ("", f"[{table}]")
        yield from ("", *_comment(SETTINGS[key]), f"{name} = {_literal(value)}")


def _comment(setting: Setting) -> Iterator[str]:
    yield from (f"# {line}" for line in wrap(setting.doc, _WIDTH))
    is_number = isinstance(setting.default, int)
    allowed = f"{setting.low} to {setting.high}" if is_number else setting.allowed
    yield f"# Unit: {setting.unit}. Allowed: {allowed}."


def _literal(value: Value) -> str:
    # A JSON text, list or number is the same in TOML.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
