"""Files, environment and flags become one configuration, or one list of mistakes."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.config.load import (
    as_overrides,
    as_texts,
    chosen,
    env_name,
    from_overrides,
    load,
    project_file,
)
from gearpy.config.schema import DEFAULTS, SETTINGS, Config, config_of
from gearpy.config.setting import Value
from gearpy.errors import ConfigError

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(text: str) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return _write


def mistakes_of(
    *files: Path, env: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None
) -> list[str]:
    """Return the mistakes that loading these finds, with paths cut to the file's name."""
    with pytest.raises(ConfigError) as caught:
        load(files, env=env or {}, overrides=overrides or {})
    folders = {f"{path.parent}/" for path in files}
    texts = list(caught.value.mistakes)
    for folder in folders:
        texts = [text.replace(folder, "") for text in texts]
    return texts


def test_nothing_given_makes_the_defaults() -> None:
    assert load(env={}) == DEFAULTS


def test_what_comes_later_wins(write: Write) -> None:
    keys = ("total-retries", "retry-window-seconds", "backoff-base-ms", "drain-timeout-seconds")
    first, second = (
        write("[gearpy.application]\n" + "".join(f"{key} = {number}\n" for key in keys[skip:]))
        for skip, number in enumerate((1, 2))
    )
    env = {env_name(f"application.{key}"): "3" for key in keys[2:]}

    overrides = {"application.drain-timeout-seconds": "4"}

    found = load([first, second], env=env, overrides=overrides).application

    assert found.retries == 1
    assert found.retry_window_s == 2
    assert found.backoff_base_ms == 3
    assert found.drain_timeout_s == 4


def test_a_program_gives_settings_or_a_configuration() -> None:
    assert chosen({"worker.slots": 3}, defaults={"worker.slots": 2}).worker.slots == 3
    assert chosen(None, defaults={"worker.slots": 2}).worker.slots == 2
    whole = Config()
    assert chosen(whole, defaults={"worker.slots": 2}) is whole
    with pytest.raises(ConfigError, match=r"worker\.slot is not a known key, did you mean"):
        chosen({"worker.slot": 3})
    with pytest.raises(ConfigError, match="override: 3 is not a known key"):
        chosen({3: 3})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match=r"config is 'gear\.toml': give settings, such as .*"):
        chosen("gear.toml")  # type: ignore[arg-type]


def test_the_environment_can_name_a_file(write: Write) -> None:
    """``GEARPY_CONFIG`` is read first, so that a file given by flag wins over it."""
    named, given_file = write("[gearpy.worker]\nslots = 7\n"), write("[gearpy]\nhostname = 'a'\n")

    config = load([given_file], env={"GEARPY_CONFIG": str(named)})

    assert (config.worker.slots, config.hostname) == (7, "a")


def test_a_list_is_a_list_in_files_and_commas_in_text(write: Write) -> None:
    path = write('[gearpy.cluster]\nmasters = ["a:1", "b:2"]\n')

    from_file = load([path], env={})
    from_env = load(env={"GEARPY_CLUSTER_MASTERS": "a:1, b:2"})

    assert from_file.cluster.masters == ("a:1", "b:2")
    assert from_env == from_file


def test_variables_of_others_are_left_alone() -> None:
    assert load(env={"HOME": "/home/me", "GEARPYTHON": "1"}) == DEFAULTS


def test_all_mistakes_are_reported_together(write: Write) -> None:
    path = write("[gearpy.worker]\nslots = 0\nslot = 1\n")

    mistakes = mistakes_of(path, env={"GEARPY_WORKER_SLOTS": "many"}, overrides={"hostname": ""})

    assert sorted(mistakes) == [
        "0.toml: gearpy.worker.slot is not a known key, did you mean gearpy.worker.slots?",
        "0.toml: gearpy.worker.slots is 0, must be a whole number from 1 to 1000000 (slots)",
        (
            "environment: GEARPY_WORKER_SLOTS is 'many', "
            "must be a whole number from 1 to 1000000 (slots)"
        ),
        "override: hostname is '', must be a host name or address",
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[gearpy]\nhostname = 1\n", "gearpy.hostname is 1, must be a host name or address"),
        (
            "[gearpy.worker]\nslots = true\n",
            "gearpy.worker.slots is True, must be a whole number from 1 to 1000000 (slots)",
        ),
        (
            "[gearpy.worker]\nslots = 1.0\n",
            "gearpy.worker.slots is 1.0, must be a whole number from 1 to 1000000 (slots)",
        ),
        (
            "[gearpy]\ntask-dispatcher = 'both'\n",
            "gearpy.task-dispatcher is 'both', must be 'shared' or 'pinned'",
        ),
        (
            "[gearpy.cluster]\nmasters = 'a:1'\n",
            "gearpy.cluster.masters is 'a:1', must be a list of host:port",
        ),
        (
            "[gearpy.cluster]\nmasters = ['a:1', 'b']\n",
            "gearpy.cluster.masters is ('a:1', 'b'), must be a list of host:port",
        ),
        (
            "[gearpy.cluster]\nmasters = []\n",
            "gearpy.cluster.masters is (), must be a list of host:port",
        ),
        ("[gearpy]\nworker = 5\n", "gearpy.worker is 5, must be a table"),
        (
            "[gearpy.worker.slots]\nmax = 5\n",
            "gearpy.worker.slots is {'max': 5}, must be a whole number from 1 to 1000000 (slots)",
        ),
        (
            "[gearpy.streming]\na = 1\nb = 2\n",
            "gearpy.streming is not a known table, did you mean gearpy.streaming?",
        ),
        ("[streaming]\na = 1\n", "streaming is not a known table, did you mean gearpy.streaming?"),
        (
            "[gearpy]\nbatch_max_records = 1\n",
            (
                "gearpy.batch_max_records is not a known key, "
                "did you mean gearpy.streaming.batch-max-records?"
            ),
        ),
        ("[gearpy]\nzzz = 1\n", "gearpy.zzz is not a known key"),
        ("[gearpy\n", "not valid TOML: expected ']' at the end of a table declaration (at line 1"),
    ],
)
def test_a_mistake_in_a_file_names_place_value_and_cure(
    text: str, mistake: str, write: Write
) -> None:
    (found,) = mistakes_of(write(text))

    assert found.startswith(f"0.toml: {mistake}")


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    assert mistakes_of(tmp_path / "gear.toml") == [
        "gear.toml: cannot be read: no such file or directory"
    ]


def test_a_misspelt_variable_is_a_mistake_with_a_hint() -> None:
    assert mistakes_of(env={"GEARPY_WORKER_SLOT": "5"}) == [
        "environment: GEARPY_WORKER_SLOT is not a known variable, did you mean GEARPY_WORKER_SLOTS?"
    ]


def test_a_misspelt_override_is_a_mistake_with_a_hint() -> None:
    assert mistakes_of(overrides={"worker.slot": "5"}) == [
        "override: worker.slot is not a known key, did you mean worker.slots?"
    ]


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("appmaster.total-retries", "the keys of [gearpy.application] hold for app masters, too"),
        ("executor.file-max-bytes", "set `ulimit -f` in the shell that starts the worker"),
    ],
)
def test_a_key_that_was_taken_away_says_what_to_do_instead(
    key: str, advice: str, write: Write
) -> None:
    table, _, name = key.partition(".")
    path = write(f"[gearpy.{table}]\n{name} = 1\n")

    mistakes = mistakes_of(path, env={env_name(key): "1"}, overrides={key: "1"})

    assert len(mistakes) == 3
    assert all(
        f"is no longer a {kind}: {advice}" in each
        for kind, each in zip(
            ("table" if table == "appmaster" else "key", "variable", "key"), mistakes, strict=True
        )
    )


def test_keys_that_do_not_go_together_name_both_places(write: Write) -> None:
    path = write("[gearpy.streaming]\nack-once-every-message-count = 30_000\n")

    mistakes = mistakes_of(
        path, env={env_name("streaming.max-pending-message-count-per-connection"): "25000"}
    )

    assert mistakes == [
        (
            "0.toml: gearpy.streaming.ack-once-every-message-count is 30000, must not be above "
            "environment: GEARPY_STREAMING_MAX_PENDING_MESSAGE_COUNT_PER_CONNECTION, 25000: "
            "else a sender would stop before it asks for an acknowledgement"
        )
    ]


def test_no_two_keys_share_a_variable() -> None:
    assert len({env_name(key) for key in SETTINGS}) == len(SETTINGS)


def a_value(key: str) -> st.SearchStrategy[Value]:
    setting = SETTINGS[key]
    if isinstance(setting.default, int):
        return st.integers(setting.low, setting.high)
    if setting.choices:
        one = st.sampled_from(setting.choices)
        is_list = isinstance(setting.default, tuple)
        return st.lists(one, min_size=1, unique=True).map(tuple) if is_list else one
    if isinstance(setting.default, tuple):
        address = st.builds(
            "{}:{}".format, st.from_regex(r"[a-z.]{1,9}", fullmatch=True), st.integers(0, 65535)
        )
        return st.lists(address, min_size=1, max_size=3).map(tuple)
    return st.from_regex(r"[a-z0-9.]{1,9}", fullmatch=True)


@given(st.fixed_dictionaries({}, optional={key: a_value(key) for key in SETTINGS}))
def test_overrides_carry_every_configuration(values: dict[str, Value]) -> None:
    """Control messages carry a configuration as text; none may change on the way."""
    try:
        config = config_of(values)
    except ConfigError:
        return  # Keys that do not go together; other tests cover them.

    assert from_overrides(as_overrides(config)) == config


def test_only_what_differs_becomes_an_override() -> None:
    config = load(env={}, overrides={"gearpy.worker.slots": "7", "hostname": "127.0.0.1"})

    assert as_overrides(config) == {"worker.slots": "7"}


def test_the_environment_is_read_but_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env_name("spark.pause-ms"), "7")

    assert load().spark.pause_ms == 7
    assert inspect.signature(load).parameters["env"].default is None


@pytest.mark.parametrize(
    "items",
    [
        ("TZ=UTC",),
        ("A=1,2", "B= x ", "C="),
        ("LIST=[1]", 'QUOTED="x\\y"', "TEXT=\u00e4 \t"),
        ("[A=1",),
    ],
)
def test_items_of_a_list_survive_as_text(items: tuple[str, ...]) -> None:
    if items[0].startswith("["):
        with pytest.raises(ConfigError, match="NAME=value"):
            load(env={}, overrides={"executor.environment": json.dumps(items)})
        return
    config = load(env={}, overrides={"executor.environment": json.dumps(items)})
    assert config.executor.environment == items
    assert from_overrides(as_overrides(config)) == config


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("executor.python-options", "-c"),
        ("executor.python-options", "-m"),
        ("executor.python-options", "-i"),
        ("executor.python-options", "-X"),
        ("executor.python-options", "script.py"),
        ("executor.python-options", "-O script.py"),
        ("executor.environment", "TZ"),
        ("executor.environment", "1A=b"),
        ("executor.environment", "GEARPY_MASTER=x:1"),
        ("executor.environment", "_GEARPY_LAUNCH=1"),
    ],
)
def test_what_a_process_cannot_begin_with_is_refused(key: str, text: str) -> None:
    with pytest.raises(ConfigError, match=rf"{key} is .*{text}.*, must be a list of"):
        load(env={}, overrides={key: text})


@pytest.mark.parametrize(
    "text", ["-O", "-OO,-B", "-X dev", "-Xfaulthandler", "-W error::UserWarning", "-bb,-u,-vv"]
)
def test_options_of_the_interpreter_are_taken(text: str) -> None:
    found = load(env={}, overrides={"executor.python-options": text}).executor.python_options
    assert ",".join(found) == text


def test_overrides_are_values_or_texts() -> None:
    slots: dict[str, Value | Sequence[str]] = {"worker.slots": 7, "hostname": "h"}
    given = {**slots, "gearpy.alerts.off": ["waiting", "restarts"]}

    found = load(env={}, overrides=given)

    assert (found.worker.slots, found.hostname) == (7, "h")
    assert found.alerts.off == ("waiting", "restarts")
    texts = {"worker.slots": "7", "hostname": "h", "alerts.off": "waiting,restarts"}
    assert as_texts(given) == texts
    assert from_overrides(texts) == found
    with pytest.raises(ConfigError) as caught:
        as_texts({"worker.slots": 1.5, "checkpoint.interval-ms": True, "worker.slot": 1})  # type: ignore[dict-item]
    wrong, interval, unknown = caught.value.mistakes
    assert wrong.startswith("override: worker.slots is '1.5', must be a whole number from 1 to ")
    assert interval.startswith("override: checkpoint.interval-ms is 'True', must be a whole number")
    assert unknown == "override: worker.slot is not a known key, did you mean worker.slots?"


def test_the_file_of_a_project_is_read_before_all_others(tmp_path: Path, write: Write) -> None:
    assert project_file(tmp_path) is None
    project = tmp_path / "pyproject.toml"
    project.write_text("[project]\nname = 'flow'\n", encoding="utf-8")
    assert project_file(tmp_path) is None
    project.write_text("[tool.gearpy.worker]\nslots = 3\n[tool.other]\n", encoding="utf-8")
    assert project_file(tmp_path) == project
    assert load(env={}, project=project).worker.slots == 3
    own = tmp_path / "gear.toml"
    own.write_text("[gearpy.worker]\nslots = 4\n", encoding="utf-8")
    assert project_file(tmp_path) == own
    assert load(env={}, project=own).worker.slots == 4
    other = write("[gearpy.worker]\nslots = 5\n")
    assert load([other], env={}, project=own).worker.slots == 5


def test_a_mistake_in_a_project_is_named_as_it_is_written(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.gearpy.worker]\nslot = 3\n", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"pyproject.toml: tool.gearpy.worker.slot is not a known"
    ):
        load(env={}, project=project)
    project.write_text("[tool.gearpy]\nhost = 1\n[tool", encoding="utf-8")
    assert project_file(tmp_path) is None
