"""Files, environment and flags into a `Config`; all mistakes are reported together.

The later one wins: defaults, the file of the project, the file named by ``GEARPY_CONFIG``, the
given files in order, the environment, overrides (from flags, or from a control message).

- A file is TOML: ``[gearpy.streaming]`` and below it ``batch-max-records = 512``.
- The file of the project is ``gear.toml`` of the working folder, or else its ``pyproject.toml``,
  where the same table is ``[tool.gearpy.streaming]``.
- In the environment the same is ``GEARPY_STREAMING_BATCH_MAX_RECORDS=512``.
- As an override it is ``streaming.batch-max-records`` with the text ``512``.

A list is written in text with commas between its items, or as in a file: ``["a:1", "b:1"]``.
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from reprlib import repr as short_repr
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from gearpy.config.schema import (
    DEFAULTS,
    RETIRED,
    ROOT,
    SECTIONS,
    SETTINGS,
    Config,
    config_of,
    mistakes_in,
    values_of,
)
from gearpy.config.setting import Value
from gearpy.errors import ConfigError

_ENV_PREFIX: Final = ROOT.upper() + "_"

#: Variables with our prefix that are no keys, each with its use.
ENV_OTHER: Final[Mapping[str, str]] = {
    "GEARPY_CONFIG": "path of a configuration file that is read before all others",
    "GEARPY_MASTER": "where commands find the cluster, as --master does: HOST:PORT",
}

#: Dotted keys with their values, or with these as text.
Overrides: TypeAlias = Mapping[str, Value | Sequence[str]]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_PROJECT: Final = "pyproject.toml"


def load(
    files: Sequence[Path] = (),
    *,
    env: Mapping[str, str] | None = None,
    overrides: Overrides = _NOTHING,
    defaults: Overrides = _NOTHING,
    project: Path | None = None,
) -> Config:
    """Return the configuration that follows from defaults, files, environment and overrides.

    Args:
        files: TOML files; each must exist. Of two that set a key the later one wins.
        env: the environment; that of this process if not given. Names that begin with
            ``GEARPY_`` must be known.
        overrides: dotted keys with their values as they are, or as text, as in ``gear --set
            key=value``.
        defaults: the same, in place of the ordinary defaults of these keys.
        project: the file of the project, if there is one; see `project_file`.

    Raises:
        ConfigError: with one text for each mistake in any of them.
    """
    env = os.environ if env is None else env
    found = _Found()
    found.read_overrides(defaults)
    if "GEARPY_CONFIG" in env:
        files = [Path(env["GEARPY_CONFIG"]), *files]
    if project is not None:
        files = [project, *files]
    for path in files:
        found.read_file(path)
    found.read_env(env)
    found.read_overrides(overrides)
    return found.config()


def chosen(
    config: Config | Overrides | None,
    *,
    defaults: Overrides = _NOTHING,
    project: Path | None = None,
) -> Config:
    """Return a configuration as it is, or what `load` gives with some settings in front of all."""
    if isinstance(config, Config):
        return config
    if config is None or isinstance(config, Mapping):
        return load(overrides=config or _NOTHING, defaults=defaults, project=project)
    raise ConfigError(
        f"config is {short_repr(config)}: give settings, such as "
        "{'checkpoint.interval-ms': 500}, or what gp.load_config() returns"
    )


def project_file(folder: Path | None = None) -> Path | None:
    """Return the file of the project with configuration, if the working folder has one."""
    folder = folder or Path()
    if (own := folder / "gear.toml").is_file():
        return own
    project = folder / _PROJECT
    try:
        return project if _has_table(project.read_text(encoding="utf-8")) else None
    except (OSError, ValueError):  # It is missing, or Python's own tools say what is wrong with it.
        return None


@lru_cache(maxsize=1)
def _has_table(text: str) -> bool:
    # Each run in a process asks, and to parse the file takes some ms.
    return ROOT in tomllib.loads(text).get("tool", {})


def as_overrides(config: Config) -> dict[str, str]:
    """Return the keys that differ from their defaults, as text that `from_overrides` reads."""
    return dict(_overrides_of(config))


@lru_cache(maxsize=16)
def _overrides_of(config: Config) -> Mapping[str, str]:
    found = values_of(config).items()
    return {key: _text_of(value) for key, value in found if value != SETTINGS[key].default}


def _text_of(value: Value | Sequence[str]) -> str:
    if not isinstance(value, list | tuple):
        return str(value)
    items = [str(each) for each in value]
    is_plain = all("," not in each and each == each.strip() for each in items)
    if is_plain and items and not items[0].startswith("["):
        return ",".join(items)
    return json.dumps(items, ensure_ascii=False)


def as_texts(overrides: Overrides) -> dict[str, str]:
    """Return keys with their values as text, without the root table's name."""
    load(env=_NOTHING, overrides=overrides)
    return {key.removeprefix(f"{ROOT}."): _text_of(each) for key, each in overrides.items()}


def from_overrides(overrides: Mapping[str, str]) -> Config:
    """Return the configuration with these overrides and nothing else; see `as_overrides`."""
    return _from_overrides(tuple(overrides.items()))


@lru_cache(maxsize=16)
def _from_overrides(overrides: tuple[tuple[str, str], ...]) -> Config:
    # Each launch of an embedded run asks for the same few configurations again.
    return load(env=_NOTHING, overrides=dict(overrides))


def env_name(key: str) -> str:
    """Return the environment variable of a dotted key."""
    return _ENV_PREFIX + key.replace(".", "_").replace("-", "_").upper()


_KEY_OF_ENV: Final[Mapping[str, str]] = {env_name(key): key for key in SETTINGS}

#: Dotted paths in a file.
_KEY_OF_PATH: Final[Mapping[str, str]] = {f"{ROOT}.{key}": key for key in SETTINGS}
_TABLES: Final[Sequence[str]] = [ROOT, *(f"{ROOT}.{name}" for name in SECTIONS)]


@dataclass(slots=True)
class _Found:
    """The values found so far; later finds replace earlier ones.

    ``origins`` has for each key the text that names it and its place, to begin a mistake with.
    """

    values: dict[str, Value] = field(default_factory=lambda: values_of(DEFAULTS))
    origins: dict[str, str] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)

    def config(self) -> Config:
        mistakes = [*self.mistakes, *mistakes_in(self.values, self.origins)]
        if mistakes:
            raise ConfigError(*mistakes)
        return config_of(self.values)

    def read_file(self, path: Path) -> None:
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            self.mistakes.append(f"{path}: not valid TOML: {_lower(str(error))}")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.mistakes.append(
                f"{path}: cannot be read: {_lower(reason or type(error).__name__)}"
            )
        else:
            prefix = ""
            if path.name == _PROJECT:
                prefix, tables = "tool.", {ROOT: tables.get("tool", {}).get(ROOT, {})}
            for name, raw in _leaves(tables):
                origin = f"{path}: {prefix}{name}"
                if name in _KEY_OF_PATH:
                    self._take(_KEY_OF_PATH[name], origin, raw, _from_toml)
                elif name in _TABLES:
                    self.mistakes.append(f"{origin} is {raw!r}, must be a table")
                elif isinstance(raw, dict):
                    self._refuse(origin, name, "table", _TABLES)
                else:
                    self._refuse(origin, name, "key", _KEY_OF_PATH)

    def read_env(self, env: Mapping[str, str]) -> None:
        for name in sorted(env):
            origin = f"environment: {name}"
            if name in _KEY_OF_ENV:
                self._take(_KEY_OF_ENV[name], origin, env[name], _from_text)
            elif name.startswith(_ENV_PREFIX) and name not in ENV_OTHER:
                self._refuse(origin, name, "variable", [*_KEY_OF_ENV, *ENV_OTHER])

    def read_overrides(self, overrides: Overrides) -> None:
        for name, given in overrides.items():
            key, origin = str(name).removeprefix(f"{ROOT}."), f"override: {name}"
            if key in SETTINGS:
                self._take(key, origin, _text_of(given), _from_text)
            else:
                self._refuse(origin, key, "key", SETTINGS)

    def _refuse(self, origin: str, name: str, kind: str, known: Iterable[str]) -> None:
        for retired, advice in RETIRED.items():
            if name.startswith((f"{ROOT}.{retired}".rstrip("."), retired, env_name(retired))):
                self.mistakes.append(f"{origin} is no longer a {kind}: {advice}")
                return
        nearest = get_close_matches(name, list(known), n=1)
        hint = f", did you mean {nearest[0]}?" if nearest else ""
        self.mistakes.append(f"{origin} is not a known {kind}{hint}")

    def _take(
        self, key: str, origin: str, raw: Any, convert: Callable[[Value, Any], Value | None]
    ) -> None:
        value = convert(SETTINGS[key].default, raw)
        if value is None:
            self.mistakes.append(f"{origin} is {raw!r}, must be {SETTINGS[key].allowed}")
        else:
            self.values[key], self.origins[key] = value, origin


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a file by dotted path; an unknown table is one value."""
    for name, raw in table.items():
        path = prefix + name
        if isinstance(raw, dict) and path in _TABLES:
            yield from _leaves(raw, f"{path}.")
        else:
            yield path, raw


def _from_toml(default: Value, raw: Any) -> Value | None:
    if isinstance(default, tuple):
        is_texts = isinstance(raw, list) and all(isinstance(item, str) for item in raw)
        return tuple(raw) if is_texts else None
    # `type`, not `isinstance`: TOML's true is no number.
    return raw if type(raw) is type(default) else None


def _from_text(default: Value, text: str) -> Value | None:
    """Return a text as the type of the default; None if it cannot be that."""
    if isinstance(default, tuple):
        if text.startswith("["):
            try:
                items = tomllib.loads(f"items = {text}")["items"]
            except tomllib.TOMLDecodeError:
                items = None
            if isinstance(items, list) and all(isinstance(item, str) for item in items):
                return tuple(items)
        return tuple(item.strip() for item in text.split(","))
    if isinstance(default, str):
        return text
    try:
        return int(text)
    except ValueError:
        return None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
