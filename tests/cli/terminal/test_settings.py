"""Options become a configuration, or one list of mistakes."""

from pathlib import Path

import pytest

from gearpy.cli.terminal.options import configure
from gearpy.cluster.app.config import application_overrides
from gearpy.errors import ConfigError


def test_set_wins_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "gear.toml"
    file.write_text("[gearpy.worker]\nslots = 5\n[gearpy.source]\nread-batch-size = 6\n")

    config = configure([file], ["worker.slots = 7"])

    assert (config.worker.slots, config.source.read_batch_records) == (7, 6)


def test_mistakes_of_all_options_come_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        configure([tmp_path / "none.toml"], ["worker.slots", "worker.slots=0"], master="nowhere")

    text = str(caught.value)
    assert len(caught.value.mistakes) == 4
    assert all(part in text for part in ("none.toml", "key=value", "is 0", "'nowhere'"))


def test_a_value_may_hold_an_equals_sign() -> None:
    config = configure(None, ["transport.secret-file=/a=b"])

    assert config.transport.secret_file == "/a=b"


def test_a_cluster_is_not_told_how_its_client_reaches_it() -> None:
    """An application's settings travel with it; those of the cluster are the cluster's."""
    config = configure(
        None, ["streaming.batch-max-records=9", "worker.slots=3"], master="10.0.0.1:3000"
    )

    assert application_overrides(config) == {"streaming.batch-max-records": "9"}
