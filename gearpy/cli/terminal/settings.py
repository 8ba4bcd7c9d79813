"""Makes a configuration from the options of a command."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gearpy.config.load import load, project_file
from gearpy.config.schema import Config
from gearpy.errors import ConfigError


def configure(
    files: Sequence[Path] | None = None,
    assignments: Sequence[str] | None = None,
    *,
    master: str | None = None,
    defaults: Mapping[str, str] | None = None,
) -> Config:
    """Return the configuration of the project, ``--conf``, environment, ``--set`` and ``--master``.

    ``defaults`` count where none of them says anything.
    """
    parts = [each.partition("=") for each in assignments or ()]
    overrides = {key.strip(): value.strip() for key, equals, value in parts if equals}
    mistakes = [
        f"--set {key!r} has no value: write key=value" for key, equals, _ in parts if not equals
    ]
    if master is not None:
        overrides["cluster.masters"] = master
    try:
        config = load(
            list(files or ()),
            overrides=overrides,
            defaults=defaults or {},
            project=project_file(),
        )
    except ConfigError as error:
        raise ConfigError(*mistakes, *error.mistakes) from None
    if mistakes:
        raise ConfigError(*mistakes)
    return config
