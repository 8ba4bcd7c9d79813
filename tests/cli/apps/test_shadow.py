"""What the command says while it compares two versions of a step."""

from gearpy.cli.apps.shadow import WaitNotice


def test_who_waits_hears_now_and_then_how_far_it_is() -> None:
    notice = WaitNotice(8, 1000)

    assert notice.lines(0, 9000) == []
    (line,) = notice.lines(3, 12_000)
    assert line.startswith("3 of 8 epochs are compared; ")
    assert notice.lines(3, 13_000) == []
