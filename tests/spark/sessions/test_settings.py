"""Which settings a session gets."""

import pytest

from gearpy.spark.sessions.settings import (
    FAST_FILES,
    conflicts,
    cores_of,
    defaults_of,
    fast_files_for,
    is_here,
    launch_settings,
    python_env,
    remote_settings,
    session_settings,
)

_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_STORE = "spark.sql.streaming.stateStore.providerClass"


def the_settings(
    *, master: str = "local[2]", fast_files: bool = True, **conf: str
) -> dict[str, str]:
    return session_settings(
        "app",
        master=master,
        memory="1g",
        conf={name.replace("_", "."): value for name, value in conf.items()},
        fast_files=fast_files,
        cores=8,
    )


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[2]", "local[*]", "local[4,3]", "local-cluster[2,1,512]"),
        *("spark://127.0.0.1:7077", "spark://localhost:7077", "spark://127.0.0.1:1,localhost:2"),
    ],
)
def test_a_master_on_this_machine_needs_no_address_outside(master: str) -> None:
    """Nobody else on the network shall reach a driver that needs nobody else."""
    settings = the_settings(master=master)

    assert is_here(master)
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"


@pytest.mark.parametrize(
    "master", ["spark://10.0.0.5:7077", "spark://127.0.0.1:1,10.0.0.5:1", "yarn", "k8s://localhost"]
)
def test_a_master_elsewhere_has_to_reach_the_driver(master: str) -> None:
    """Executors there connect back; which address is right, only the user knows."""
    settings = the_settings(master=master)

    assert not is_here(master)
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & settings.keys()
    assert not FAST_FILES.keys() & settings.keys()


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local[*]", 8),
        ("local[*,2]", 8),
        ("local-cluster[2,1,512]", None),
        ("spark://127.0.0.1:7077", None),
        ("yarn", None),
    ],
)
def test_a_local_session_shuffles_to_as_many_partitions_as_it_has_cores(
    master: str, expected: int | None
) -> None:
    """The default of 200 costs 200 tasks per micro-batch; on a cluster it is the user's choice."""
    partitions = the_settings(master=master).get("spark.sql.shuffle.partitions")

    assert cores_of(master, 8) == expected
    assert partitions == (None if expected is None else str(expected))


def test_a_session_is_quiet_and_in_utc() -> None:
    """No page, no progress bars; a day is the day that windows are cut by."""
    settings = the_settings()

    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.ui.showConsoleProgress"] == "false"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.app.name"] == "app"


def test_the_callers_settings_win() -> None:
    """Over each that gearpy would set."""
    mine = dict.fromkeys(the_settings(), "mine")

    settings = session_settings(
        "app", master="local", memory="1g", conf=mine, fast_files=True, cores=1
    )

    assert settings == mine


def test_fast_files_can_be_refused() -> None:
    """Two writers of one checkpoint would not see each other."""
    assert not FAST_FILES.keys() & the_settings(fast_files=False).keys()


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({}, set(FAST_FILES)),
        ({"spark.hadoop.fs.defaultFS": "file:///"}, set(FAST_FILES)),
        ({"spark.hadoop.fs.defaultFS": "hdfs://name:9000"}, set()),
        ({"spark.hadoop.fs.defaultFS": "s3a://bucket"}, set()),
        ({_STORE: _ROCKS}, set(FAST_FILES) - {"spark.hadoop.fs.file.impl"}),
    ],
)
def test_fast_files_are_applied_where_they_are_safe(
    conf: dict[str, str], expected: set[str]
) -> None:
    """RocksDB state cannot commit on the raw file system; other stores have their own ways."""
    assert fast_files_for(conf).keys() == expected


def test_a_file_of_defaults_is_read_as_spark_reads_it() -> None:
    """Blanks, `=` and `:` divide; comments and names without a value are passed over."""
    text = (
        "# comment\n\n! another\n  spark.master   local[3]\n"
        "spark.a=b=c d\nspark.e: f\nspark.lonely\n"
    )

    assert defaults_of(text) == {"spark.master": "local[3]", "spark.a": "b=c d", "spark.e": "f"}


def test_a_server_gets_the_zone_and_what_the_caller_says() -> None:
    assert remote_settings({}) == {"spark.sql.session.timeZone": "UTC"}
    assert remote_settings({"spark.sql.session.timeZone": "CET", "a": "b"}) == {
        "spark.sql.session.timeZone": "CET",
        "a": "b",
    }


def test_only_what_differs_and_cannot_change_is_a_conflict() -> None:
    current = {"spark.master": "local[2]", "same": "1", "soft": "1"}

    mistakes = conflicts(
        {"spark.master": "local[4]", "same": "1", "soft": "2", "new": "3"},
        current=current.get,
        is_changeable=lambda name: name == "soft",
    )

    ending = (
        " in the Spark session that this process has, and {} was asked for: it counts when Spark "
        "starts; call gearpy.spark.stop() before"
    )
    assert mistakes == [
        "spark.master is local[2]" + ending.format("local[4]"),
        "new is not set" + ending.format("3"),
    ]


def test_user_functions_run_on_this_python() -> None:
    """`python3` on PATH is often another one, without the packages."""
    assert python_env("local[2]", {}, python="/venv/python") == {
        "PYSPARK_DRIVER_PYTHON": "/venv/python",
        "PYSPARK_PYTHON": "/venv/python",
    }


def test_other_machines_have_their_own_python() -> None:
    assert "PYSPARK_PYTHON" not in python_env("spark://far:7077", {}, python="/venv/python")


def test_the_users_choice_of_python_counts() -> None:
    env = {"PYSPARK_PYTHON": "/opt/python"}

    assert python_env("local", env, python="/venv/python")["PYSPARK_PYTHON"] == "/opt/python"


def test_secrets_are_not_on_the_command_line() -> None:
    """Every user of the machine sees it; they go over the connection."""
    secret = (
        *("spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key"),
        *("spark.ssl.keyPassword", "spark.some.Token"),
    )

    told = launch_settings(dict.fromkeys(secret, "hidden") | {"spark.a": "1"}, logging="-D")

    assert told == {"spark.a": "1", "spark.driver.defaultJavaOptions": "-D"}


def test_settings_of_the_session_alone_do_not_make_another_jvm() -> None:
    """A JVM is used again if it would be started alike."""
    of_sessions = {"spark.app.name": "a", "spark.sql.x": "1", "spark.ui.y": "2"}

    assert launch_settings(of_sessions, logging="") == launch_settings({}, logging="")


def test_options_of_the_user_come_behind_the_own() -> None:
    told = launch_settings({"spark.driver.defaultJavaOptions": "-Da=1"}, logging="-Db=2")

    assert told == {"spark.driver.defaultJavaOptions": "-Db=2 -Da=1"}
