"""What a program says it needs, against what is installed."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from gearpy.cluster.programs.requirements import check_requirements, missing
from gearpy.errors import ConfigError

MSGPACK = version("msgpack")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("msgpack", ""),
        (f"msgpack=={MSGPACK}", ""),
        ("msgpack>=1,<1000", ""),
        ("msgpack<0.1", f"version {MSGPACK} is installed"),
        ("MsgPack >= 1.0", ""),
        ("no-such-package", "it is not installed"),
        ("no-such-package; python_version < '3'", ""),
        ("no-such-package; extra == 'dev'", ""),
        ("no-such-package @ https://example.org/x.whl", "it is not installed"),
        ("gearpy-streaming>=0", ""),
        ("git+https://example.org/x", ""),
        ("./local/path", ""),
    ],
)
def test_a_requirement_is_met_or_it_is_told_why(text: str, reason: str) -> None:
    """Names and versions as pip reads them; what else pip takes is passed over."""
    assert missing(text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("msgpack<0.1", ""),
        ("no-such-package>=2", "it is not installed"),
        ("no-such-package; python_version < '3'", ""),
        ("./local/path", ""),
    ],
)
def test_without_packaging_only_names_are_checked(
    text: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)

    assert missing(text) == reason


def test_all_that_is_missing_is_told_with_its_line_and_the_place(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/requirements.txt").write_text(
        "# what we need\n-r other.txt\n\nmsgpack  # fine\nno-such-a>=1 \\\n  --hash=sha256:00\n",
        encoding="utf-8",
    )
    (tmp_path / "shop-1.dist-info").mkdir()
    (tmp_path / "shop-1.dist-info/METADATA").write_text(
        "Name: shop\nRequires-Dist: no-such-b (>=2)\nRequires-Dist: no-such-c; extra == 'x'\n",
        encoding="utf-8",
    )

    with pytest.raises(ConfigError) as caught:
        check_requirements(tmp_path, "shop.app")

    first, second, advice = caught.value.mistakes
    assert first.startswith(
        "the program needs no-such-a>=1 (shop/requirements.txt line 5): it is not installed in "
    )
    assert sys.executable in first
    assert "no-such-b (>=2) (Requires-Dist of the wheel)" in second
    assert "--no-requirements-check" in advice
