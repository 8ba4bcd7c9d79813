"""Another version of a step beside an application that runs in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.rerun.shadow import Shadow, ShadowReport
from gearpy.config.load import load
from gearpy.config.schema import Config
from gearpy.errors import ConfigError
from gearpy.messages.client import Artifact
from tests.cluster.rerun.build import SETTINGS, configured, program, wait_for_epochs


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApplication]:
    folder = tmp_path_factory.mktemp("shadow")
    config = load(env={}, overrides={"transport.secret-file": str(folder / "secret")})
    with LocalCluster(config, workers=1, slots=8) as cluster:
        running = cluster.client.submit("numbers", program(folder, "old"), config=SETTINGS)
        wait_for_epochs(running)
        yield running


def report(
    running: RunningApplication,
    new: Artifact,
    step: str = "count",
    on_round: Callable[[int], None] = lambda _: None,
    *,
    epochs: int = 3,
    is_called_off: Callable[[], bool] = lambda: False,
) -> ShadowReport:
    shadow = Shadow(running.client, running.app_id, step, new, configured=configured, examples=2)
    return shadow.run(epochs, on_round=on_round, is_called_off=is_called_off)


def beside(
    running: RunningApplication, artifact: Artifact, settings: dict[str, str]
) -> RunningApplication:
    """Run a program with settings of its own on the same cluster, until it has epochs."""
    other = running.client.submit("beside", artifact, config={**SETTINGS, **settings})
    wait_for_epochs(other)
    return other


def test_the_same_program_does_the_same(running: RunningApplication, tmp_path: Path) -> None:
    """From the state that the step has; what its sink would show is compared, too."""
    found = report(running, program(tmp_path, "same"))

    assert found.is_same
    assert (found.tasks, found.compared.epochs, found.notes) == (2, 3, [])
    assert found.records == found.compared.then == found.compared.now > 0
    assert found.then.seconds > 0 < found.now.seconds


def test_one_that_is_called_off_tells_what_is_compared_so_far(
    running: RunningApplication, tmp_path: Path
) -> None:
    seen = list[int]()
    found = report(
        running,
        program(tmp_path, "called_off", counted="-1"),
        on_round=seen.append,
        epochs=1_000,
        is_called_off=lambda: max(seen, default=0) >= 2,
    )

    assert 2 <= found.compared.epochs < 1_000
    assert found.compared.missing == found.compared.added == found.records > 0
    told = f"ended before its time: {found.compared.epochs} of 1000 epochs are compared"
    assert found.notes == [told]


def test_where_one_epoch_of_three_is_recorded_these_are_compared(
    running: RunningApplication, tmp_path: Path
) -> None:
    settings = {"application.record-input-epochs": "3"}
    sampled = beside(running, program(tmp_path, "sampled"), settings)

    seen = list[int]()
    found = report(sampled, program(tmp_path, "again"), on_round=seen.append)

    assert found.is_same
    assert found.compared.epochs == 3
    assert set(seen) >= {1, 2, 3}
    assert [each for each in found.notes if "from a newer state" in each]
    sampled.shutdown()


def test_differences_are_found_by_key(running: RunningApplication, tmp_path: Path) -> None:
    new = program(tmp_path, "new", counted="before + 1 if number % 5 != 2 else -1")
    found = report(running, new)

    compared = found.compared
    assert compared.missing == compared.added > 0
    assert compared.keys == {"2"}
    first = compared.examples[0]
    assert (first.key, first.now, first.then.startswith("(2, ")) == ("2", "(2, -1)", True)


def test_a_version_that_fails_is_told_with_its_error(
    running: RunningApplication, tmp_path: Path
) -> None:
    found = report(running, program(tmp_path, "broken", counted="1 // 0"))

    assert found.now.error is not None
    assert "ZeroDivisionError" in found.now.error.cause
    assert found.then.error is None
    assert not found.is_same


def test_records_that_a_version_puts_aside_are_told_with_the_error_of_the_first(
    running: RunningApplication, tmp_path: Path
) -> None:
    """Nothing ends it then; that it puts out less would not say why."""
    settings = {"application.on-error": "skip"}
    skips = beside(running, program(tmp_path, "skips"), settings)

    found = report(skips, program(tmp_path, "raises", counted="1 // (number % 5)"))

    assert not found.is_same
    assert (found.then.rejects, found.then.rejected) == (0, None)
    assert found.now.rejects == found.compared.then - found.compared.now > 0
    assert found.now.rejected is not None
    assert "ZeroDivisionError" in found.now.rejected.cause
    skips.shutdown()


@pytest.mark.parametrize(
    ("step", "new", "mistake"),
    [
        ("cuont", "count", "no step is called 'cuont': take one of numbers, count, show"),
        ("numbers", "count", "reads a source: take a step behind it"),
        ("count", "other", "no step 'count': .* there are numbers, other, show"),
    ],
)
def test_steps_that_cannot_be_compared_are_refused(
    running: RunningApplication, tmp_path: Path, step: str, new: str, mistake: str
) -> None:
    with pytest.raises(ConfigError, match=mistake):
        report(running, program(tmp_path, "another", step=new), step)


def test_without_recordings_it_says_which_key_turns_them_on(
    configured: Callable[..., Config], tmp_path: Path
) -> None:
    with LocalCluster(configured(), workers=1, slots=8) as cluster:
        settings = {"checkpoint.interval-ms": "100"}
        artifact = program(tmp_path, "old")
        running = cluster.client.submit("numbers", artifact, config=settings)
        wait_for_epochs(running)
        with pytest.raises(ConfigError, match=r"application\.record-input-bytes"):
            report(running, program(tmp_path, "same"))
