"""The schema says of each key what it is, and refuses values that cannot work."""

from collections.abc import Iterator

import pytest
from msgspec import Struct
from msgspec.structs import fields, replace

from gearpy.config.schema import DEFAULTS, SETTINGS, Config, StreamingConfig, config_of, values_of
from gearpy.config.setting import Setting
from gearpy.errors import ConfigError

#: How a field's name ends, by the unit of its key. Other units are counted things.
SUFFIXES = {"ms": "_ms", "us": "_us", "seconds": "_s", "bytes": "_bytes", "records": "_records"}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_every_key_has_a_unit_a_reason_and_bounds_that_hold_its_default(setting: Setting) -> None:
    """A number without a reason is never changed by anybody."""
    assert setting.unit
    assert setting.doc.endswith(".")
    assert setting.allows(setting.default)


def test_field_names_end_in_their_unit() -> None:
    """Style: units last, so that nobody adds seconds to milliseconds."""
    names = dict(zip(SETTINGS, _field_names(), strict=True))

    wrong = {
        key: name
        for key, name in names.items()
        if not name.endswith(SUFFIXES.get(SETTINGS[key].unit, ""))
    }

    assert wrong == {}


def _field_names() -> Iterator[str]:
    for part in fields(Config):
        if isinstance(part.type, type) and issubclass(part.type, Struct):
            yield from (inner.name for inner in fields(type(getattr(DEFAULTS, part.name))))
        else:
            yield part.name


@pytest.mark.parametrize("key", [key for key in SETTINGS if SETTINGS[key].high])
@pytest.mark.parametrize("side", ["below", "above"])
def test_a_number_outside_its_bounds_is_refused(key: str, side: str) -> None:
    setting = SETTINGS[key]
    value = setting.low - 1 if side == "below" else setting.high + 1

    with pytest.raises(ConfigError, match=rf"^{key} is {value}, must be a whole number from"):
        config_of({key: value})


def test_a_window_smaller_than_the_ack_interval_is_refused() -> None:
    """The sender would stop before it asks. Gearpump: `Subscription`."""
    streaming = StreamingConfig(ack_interval_records=20_001)

    with pytest.raises(ConfigError, match="would stop before it asks"):
        Config(streaming=streaming)


def test_a_batch_larger_than_the_window_is_refused() -> None:
    streaming = replace(DEFAULTS.streaming, max_pending_records=2000, batch_max_records=2001)

    with pytest.raises(ConfigError, match="a full batch would never be sent"):
        Config(streaming=streaming)


def test_every_text_is_compared_with_a_form_that_is_known() -> None:
    """Else the first user who sets the key would see a `KeyError`."""
    texts = [each for each in SETTINGS.values() if each.form and not each.choices]

    assert texts
    assert not any(each.allows("\n") for each in texts)


def test_steps_that_autoscale_may_change_are_settable() -> None:
    config = config_of({"application.autoscale": ("count=1..8", "sum-1=2..16@60%")})

    assert len(config.application.autoscale) == 2


def test_all_mistakes_of_a_configuration_are_raised_together() -> None:
    with pytest.raises(ConfigError) as caught:
        config_of({"worker.slots": 0, "hostname": "", "streaming.batch-max-records": 20_001})

    assert len(caught.value.mistakes) == 3


def test_values_and_configuration_are_two_forms_of_one_thing() -> None:
    config = Config(hostname="here", streaming=StreamingConfig(batch_max_records=5))

    assert config_of(values_of(config)) == config


def test_a_configuration_cannot_change() -> None:
    """Actors share one; a change would reach some of them."""
    with pytest.raises(AttributeError):
        DEFAULTS.hostname = "x"  # type: ignore[misc]
