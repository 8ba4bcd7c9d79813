"""Archives that lead out of their folder, explode or lie: refused, and nothing is left."""

import io
import stat
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gearpy.errors import ConfigError
from gearpy.storage.archives import ArtifactLimits, unpack

LIMITS: Final = ArtifactLimits(bytes_max=10**9, unpacked_bytes_max=50_000_000, files_max=20)
MIB: Final = 1024 * 1024

Add = Callable[[zipfile.ZipFile], None]


def a_zip(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unpacked(
    tmp_path: Path, data: bytes, filename: str = "app.zip", limits: ArtifactLimits = LIMITS
) -> Path:
    """Unpack an archive; nothing may be left when it is refused."""
    packed, folder = tmp_path / "packed", tmp_path / "folder"
    packed.write_bytes(data)
    try:
        unpack(packed, folder, filename, limits)
    except ConfigError:
        assert [path.name for path in tmp_path.iterdir()] == ["packed"]
        raise
    return folder


def refusal(
    tmp_path: Path, data: bytes, filename: str = "app.zip", limits: ArtifactLimits = LIMITS
) -> str:
    with pytest.raises(ConfigError) as caught:
        unpacked(tmp_path, data, filename, limits)
    return str(caught.value)


@pytest.mark.parametrize("filename", ["shop.zip", "shop-1.0-py3-none-any.whl"])
def test_an_archive_is_unpacked_for_its_owner_only(tmp_path: Path, filename: str) -> None:
    data = a_zip(("shop/", b""), ("shop/__init__.py", b""), ("shop/jobs/daily.py", b"x = 1\n"))

    folder = unpacked(tmp_path, data, filename)

    found = {
        path.relative_to(folder).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
    }
    assert found == {
        "shop": 0o700,
        "shop/__init__.py": 0o600,
        "shop/jobs": 0o700,
        "shop/jobs/daily.py": 0o600,
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "shop/jobs/daily.py").read_bytes() == b"x = 1\n"


def test_a_file_is_copied_under_its_name(tmp_path: Path) -> None:
    folder = unpacked(tmp_path, b"x = 1\n", "jobs.py")

    assert (folder / "jobs.py").read_bytes() == b"x = 1\n"
    assert stat.S_IMODE((folder / "jobs.py").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "filename",
    [
        "",
        "../app.py",
        "/app.py",
        "a\\app.py",
        "C:app.py",
        ".app.py",
        "a\napp.py",
        "x" * 200 + ".py",
    ],
)
def test_a_file_name_is_a_plain_name(tmp_path: Path, filename: str) -> None:
    assert "is no plain file name" in refusal(tmp_path, b"", filename)


@pytest.mark.parametrize("filename", ["app", "app.tar.gz", "app.exe", "app.ZIP"])
def test_only_programs_are_unpacked(tmp_path: Path, filename: str) -> None:
    """What else could be in it is not known."""
    assert "is not a program" in refusal(tmp_path, b"", filename)


@pytest.mark.parametrize(
    "name",
    [
        "../evil.py",
        "shop/../../evil.py",
        "shop/..",
        "/etc/evil.py",
        "//evil.py",
        "shop//evil.py",
        "./evil.py",
        "shop/./evil.py",
        "C:/evil.py",
        "C:evil.py",
        "shop\\..\\..\\evil.py",
        "\\\\host\\share\\evil.py",
        "evil.py\x00.txt",
        "evil\n.py",
        "x" * 300,
        "x/" * 600 + "evil.py",
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    entry = zipfile.ZipInfo("placeholder")
    entry.filename = name

    text = refusal(tmp_path, a_zip(("app.py", b""), (entry, b"")))

    assert "app.zip: entry " in text


@pytest.mark.parametrize(
    "kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK]
)
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    """A link would let a later entry out of the folder."""
    entry = zipfile.ZipInfo("shop")
    entry.external_attr = (kind | 0o777) << 16

    assert "is a link or a device" in refusal(tmp_path, a_zip((entry, b"/etc")))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("app.py", "app.py"), "'app.py' is there twice"),
        (("app", "app/x.py"), "'app' is there twice"),
        (("app/", "app"), "'app' is there twice"),
        (("app.py", "App.py"), "'app.py' and 'App.py' are one name on some systems"),
        (("shop/a.py", "Shop/b.py"), "'shop' and 'Shop' are one name on some systems"),
        (("é.py", "e\u0301.py"), "are one name on some systems"),
        (("straße.py", "STRASSE.py"), "are one name on some systems"),
    ],
)
def test_names_that_clash_are_refused(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    assert said in refusal(tmp_path, a_zip(*((name, b"") for name in names)))


def test_folders_may_be_listed_more_than_once(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = a_zip(("shop/", b""), ("shop/", b""), ("shop/app.py", b""))

    assert (unpacked(tmp_path, data) / "shop/app.py").is_file()


def test_encrypted_entries_are_refused(tmp_path: Path) -> None:
    data = bytearray(a_zip(("app.py", b"x")))
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(sign) + place] |= 1

    assert "is encrypted" in refusal(tmp_path, bytes(data))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path: Path, method: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("app.py", "x")

    assert "in another way than deflate" in refusal(tmp_path, buffer.getvalue())


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    entries = [(f"../evil{number}.py", b"") for number in range(15)]

    assert len(refusal(tmp_path, a_zip(*entries)).splitlines()) == 10


# -- limits ----------------------------------------------------------------------------------


def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    text = refusal(tmp_path, a_zip(("zeros", bytes(20 * MIB))))

    assert "unpacks to more than 100 times its size" in text


def test_many_small_bombs_are_one(tmp_path: Path) -> None:
    text = refusal(tmp_path, a_zip(*((f"zeros{n}", bytes(5 * MIB)) for n in range(5))))

    assert "100 times its size" in text


def test_what_claims_to_be_too_large_is_not_begun(tmp_path: Path) -> None:
    limits = ArtifactLimits(bytes_max=10**9, unpacked_bytes_max=1000, files_max=20)

    assert "more than 1000 bytes: see artifact.max-bytes" in refusal(
        tmp_path, a_zip(("a", bytes(501)), ("b", bytes(500))), limits=limits
    )
    assert "more than 1000 bytes" in refusal(tmp_path, bytes(1001), "app.py", limits)


@pytest.mark.parametrize("claimed", [0, 10, 1_000_000])
def test_a_size_that_is_a_lie_is_found(tmp_path: Path, claimed: int) -> None:
    data = bytearray(a_zip(("zeros", bytes(40 * MIB))))
    for sign, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(sign) + place, claimed)

    assert "is damaged" in refusal(tmp_path, bytes(data))


def test_entries_that_share_their_bytes_are_counted_each(tmp_path: Path) -> None:
    entries = [(f"{number:02}", bytes(3 * MIB)) for number in range(15)]
    one, many = a_zip(entries[0]), a_zip(*entries)
    listing = bytearray(many[many.index(b"PK\x01\x02") :])
    for number in range(15):
        place = [i for i in range(len(listing)) if listing.startswith(b"PK\x01\x02", i)][number]
        struct.pack_into("<I", listing, place + 42, 0)
    body = one[: one.index(b"PK\x01\x02")]
    struct.pack_into("<I", listing, listing.index(b"PK\x05\x06") + 16, len(body))

    refusal(tmp_path, body + bytes(listing))


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    """Every one costs an entry of the file system; folders count."""
    data = a_zip(*((f"x{number}/", b"") for number in range(21)))

    assert "more than 20 files: see artifact.max-bytes" in refusal(tmp_path, data)


def test_a_long_listing_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A hundred million names would fill the memory first."""
    data = a_zip(*((f"{'x' * 200}{number}", b"") for number in range(60)))

    assert "more than 20 files" in refusal(tmp_path, data)


def test_an_archive_of_the_64_bit_form_is_refused(tmp_path: Path) -> None:
    data = a_zip(("app.py", b""))
    end = data.index(b"PK\x05\x06")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)

    assert "64-bit form" in refusal(tmp_path, data[:end] + locator + data[end:])


def test_every_changed_byte_of_an_archive_is_refused_or_harmless(tmp_path: Path) -> None:
    whole = a_zip(("shop/__init__.py", b"x = 1"), ("app.py", b""))

    for at in range(len(whole)):
        for value in {0, 1, 0x7F, 0x80, 0xFF} - {whole[at]}:
            folder = tmp_path / f"{at}-{value}"
            folder.mkdir()
            with suppress(ConfigError):
                unpacked(folder, bytes([*whole[:at], value, *whole[at + 1 :]]))
            assert {path.name for path in folder.iterdir()} <= {"packed", "folder"}


def test_an_archive_inside_stays_packed(tmp_path: Path) -> None:
    inner = a_zip(("zeros", bytes(40 * MIB)))

    folder = unpacked(tmp_path, a_zip(("inner.zip", inner)))

    assert (folder / "inner.zip").read_bytes() == inner


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_harmless(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Invariant: whatever the bytes, all that is written is in the folder, within the limits."""
    whole = bytearray(a_zip(("shop/__init__.py", b"x = 1\n" * 50), ("app.py", b"import shop\n")))
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("one")

    try:
        unpacked(folder, bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    except ConfigError:
        return

    assert {path.name for path in folder.iterdir()} == {"packed", "folder"}
    assert sum(path.stat().st_size for path in (folder / "folder").rglob("*")) < 100_000
