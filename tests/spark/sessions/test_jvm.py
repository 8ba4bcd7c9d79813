"""The command line of a driver, and what happens when it does not come up."""

import struct
from itertools import pairwise
from pathlib import Path

import pytest

from gearpy.errors import ConfigError, ConnectionLost
from gearpy.spark.sessions.java import VECTOR_MODULE, Java
from gearpy.spark.sessions.jvm import command, connection_file, environment, launch, read_connection

_JAVA = Java(Path("/java"), "PATH", 21)
_HOME = Path("/spark")


def a_command(
    conf: dict[str, str] | None = None,
    *,
    java: Java = _JAVA,
    submit: str = "",
    env: dict[str, str] | None = None,
) -> list[str]:
    return command(
        java,
        spark_home=_HOME,
        conf={"spark.driver.memory": "1g", **(conf or {})},
        options=["-XX:+UseSerialGC"],
        submit=submit,
        env=env,
    )


def confs(arguments: list[str]) -> list[str]:
    return [text for flag, text in pairwise(arguments) if flag == "--conf"]


def test_the_command_starts_the_gateway_of_pyspark() -> None:
    """As ``spark-submit pyspark-shell`` would, without the shell script before it."""
    arguments = a_command()

    assert arguments[:4] == ["/java/bin/java", "-cp", "/spark/conf:/spark/jars/*", "-Xmx1g"]
    assert arguments[-4:] == [
        "org.apache.spark.deploy.SparkSubmit",
        *("--conf", "spark.driver.memory=1g"),
        "pyspark-shell",
    ]
    assert "-XX:+UseSerialGC" in arguments


def test_no_java_is_asked_for_a_module_that_some_lack() -> None:
    assert not [argument for argument in a_command() if VECTOR_MODULE in argument]


@pytest.mark.parametrize(("version", "is_opened"), [(17, True), (21, True), (25, False)])
def test_a_package_is_opened_only_where_it_is(version: int, *, is_opened: bool) -> None:
    """Java warns of packages that it does not have, and users would see that."""
    arguments = a_command(java=Java(Path("/java"), "PATH", version))

    option = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    assert (option in arguments) == is_opened


def test_settings_for_the_start_become_arguments() -> None:
    """They mean nothing to a JVM that runs already."""
    arguments = a_command(
        {
            "spark.driver.memory": "3g",
            "spark.driver.defaultJavaOptions": "-Da=1",
            "spark.driver.extraJavaOptions": "-Db='x y' -Dc=2",
            "spark.driver.extraClassPath": "/more.jar",
        }
    )

    assert "-Xmx3g" in arguments
    assert arguments[2].startswith("/more.jar:")
    assert [part for part in arguments if part.startswith("-D")][-3:] == [
        "-Da=1",
        "-Db=x y",
        "-Dc=2",
    ]


def test_secrets_are_not_on_the_command_line() -> None:
    """Every user of the machine sees it; they go over the connection."""
    arguments = a_command(
        {
            "spark.hadoop.fs.s3a.secret.key": "hidden",
            "spark.hadoop.fs.s3a.access.key": "hidden",
            "spark.ssl.keyPassword": "hidden",
            "spark.some.Token": "hidden",
        }
    )

    assert "hidden" not in " ".join(arguments)


def test_settings_of_the_session_alone_do_not_make_another_jvm() -> None:
    """A JVM is used again if its command line would be the same."""
    assert a_command({"spark.app.name": "a", "spark.sql.x": "1", "spark.ui.y": "2"}) == a_command()
    assert a_command({"spark.jars.packages": "a:b:1"}) != a_command()


def test_settings_are_in_order() -> None:
    assert a_command({"spark.b": "1", "spark.a": "2"}) == a_command(
        {"spark.a": "2", "spark.b": "1"}
    )
    assert confs(a_command({"spark.b": "1", "spark.a": "2"}))[:2] == ["spark.a=2", "spark.b=1"]


def test_what_the_user_tells_pyspark_is_passed_on() -> None:
    arguments = a_command(submit="--packages a:b:1 pyspark-shell")

    assert arguments[-3:] == ["--packages", "a:b:1", "pyspark-shell"]


def test_folders_with_settings_are_on_the_class_path() -> None:
    """Of Hadoop and YARN, as Spark's launcher does it."""
    env = {"SPARK_CONF_DIR": "/conf", "HADOOP_CONF_DIR": "/hadoop", "YARN_CONF_DIR": "/yarn"}

    assert a_command(env=env)[2] == "/conf:/spark/jars/*:/hadoop:/yarn"


@pytest.mark.parametrize(
    ("names", "is_there"),
    [
        ((), True),
        (("spark-defaults.conf.template", "spark-defaults.conf", "workers"), False),
        (("spark-defaults.conf", "hive-site.xml"), True),
    ],
)
def test_a_folder_of_settings_that_java_does_not_read_is_left_out(
    tmp_path: Path, names: tuple[str, ...], *, is_there: bool
) -> None:
    """It would keep Java from making an archive of classes, and each full Spark has one."""
    for name in names:
        (tmp_path / name).touch()

    path = a_command(env={"SPARK_CONF_DIR": str(tmp_path)})[2]

    assert path == (f"{tmp_path}:/spark/jars/*" if is_there else "/spark/jars/*")


def test_logging_is_quiet_unless_the_user_has_a_file(tmp_path: Path) -> None:
    """Whoever configures logging wants to see it."""
    env = {"SPARK_CONF_DIR": str(tmp_path)}
    quiet = [part for part in a_command(env=env) if part.startswith("-Dlog4j2")]
    (tmp_path / "log4j2.properties").touch()

    assert len(quiet) == 1
    assert Path(quiet[0].partition("file://")[2]).is_file()
    assert not [part for part in a_command(env=env) if part.startswith("-Dlog4j2")]


@pytest.mark.parametrize(
    ("here", "given", "expected"),
    [
        (True, {}, "127.0.0.1"),
        (True, {"SPARK_LOCAL_IP": "127.0.0.2"}, "127.0.0.2"),
        (False, {}, None),
    ],
)
def test_a_driver_for_this_machine_asks_nobody_for_its_name(
    *, here: bool, given: dict[str, str], expected: str | None
) -> None:
    """Spark would look up the host's name, and bind to the address outside."""
    env = environment(
        {"HOME": "/me", **given},
        spark_home=_HOME,
        java_home=Path("/java"),
        python={"PYSPARK_PYTHON": "/python"},
        here=here,
        connection=Path("/tmp/connection"),  # noqa: S108 - nothing is written.
    )

    assert env.get("SPARK_LOCAL_IP") == expected
    assert env["HOME"] == "/me"
    assert env["JAVA_HOME"] == "/java"
    assert env["PYSPARK_PYTHON"] == "/python"


def test_a_driver_tells_its_port_and_secret() -> None:
    """In the bytes that PySpark's own launcher reads."""
    assert read_connection(struct.pack("!ii", 4321, 3) + b"abc") == (4321, "abc")


def test_the_file_with_the_secret_is_private() -> None:
    """Who reads it may run anything in the JVM."""
    file = connection_file()
    mode = file.parent.stat().st_mode
    file.parent.rmdir()

    assert mode & 0o077 == 0


def test_a_jvm_that_ends_at_once_is_reported(tmp_path: Path) -> None:
    """More memory than there is, or an option that Java does not know."""
    with pytest.raises(ConfigError, match=r"/bin/sh\) ended with status 3 before it was up"):
        launch(["/bin/sh", "-c", "exit 3"], {}, tmp_path / "connection")


def test_a_jvm_that_does_not_come_up_is_killed(tmp_path: Path) -> None:
    """Nothing waits for ever, and no process is left."""
    script = "trap '' TERM; read line; exit 5"

    with pytest.raises(ConnectionLost, match=r"was not up in 0\.05 s"):
        launch(["/bin/sh", "-c", script], {}, tmp_path / "connection", timeout_s=0.05)


def test_a_jvm_ends_when_its_input_does(tmp_path: Path) -> None:
    """So it also ends when this process is killed."""
    file = tmp_path / "connection"
    told = "\\000\\000\\000\\007\\000\\000\\000\\001s"
    script = f"printf '{told}' > {file}.new; mv {file}.new {file}; cat"

    jvm = launch(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, file)
    was_running = jvm.is_running
    jvm.end()

    assert (jvm.port, jvm.secret, was_running, jvm.is_running) == (7, "s", True, False)
