"""``conf/gear.toml`` and the schema are the same."""

import tomllib
from pathlib import Path

from gearpy.config.load import load
from gearpy.config.render import as_toml
from gearpy.config.schema import DEFAULTS, SETTINGS, Config, StreamingConfig

SHIPPED = Path(__file__).parents[2] / "conf" / "gear.toml"


def test_the_shipped_file_is_what_the_schema_renders() -> None:
    """Each key is there with its default, unit and reason, and nothing else is.

    When it differs: ``.venv/bin/python -c "from gearpy.config.render import as_toml;
    print(as_toml(), end='')" > conf/gear.toml``.
    """
    assert SHIPPED.read_text(encoding="utf-8") == as_toml()


def test_the_shipped_file_loads_as_the_defaults() -> None:
    assert load([SHIPPED], env={}) == DEFAULTS


def test_every_key_has_its_unit_in_a_comment() -> None:
    comments, unit = [], ""
    for line in as_toml().splitlines():
        if line.startswith("# Unit: "):
            unit = line.removeprefix("# Unit: ").partition(".")[0]
        elif " = " in line and not line.startswith("#"):
            comments.append(unit)

    assert comments == [setting.unit for setting in SETTINGS.values()]


def test_what_is_rendered_loads_as_what_was_rendered(tmp_path: Path) -> None:
    config = Config(hostname='a"b', streaming=StreamingConfig(batch_max_records=9))
    path = tmp_path / "gear.toml"

    path.write_text(as_toml(config), encoding="utf-8")

    assert load([path], env={}) == config
    assert tomllib.loads(as_toml(config))["gearpy"]["streaming"]["batch-max-records"] == 9
