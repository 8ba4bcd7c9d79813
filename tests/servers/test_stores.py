"""The stores of tests are real servers, and fail when they are told to."""

import urllib.request
from http.client import HTTPException
from urllib.error import HTTPError

import pytest

from tests.servers.faulty_proxy import FaultyProxy
from tests.servers.hdfs import Hdfs, HdfsAddress, is_usable
from tests.servers.s3 import KEY, S3Address

#: The server asks who it is, and does not check the signature.
_SIGNED = (
    f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
)


def got(url: str, method: str = "GET", data: bytes | None = None) -> bytes:
    headers = {"Authorization": _SIGNED, "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        body: bytes = answer.read()
        return body


def test_a_name_node_and_a_data_node_are_there(hdfs: HdfsAddress) -> None:
    assert is_usable(hdfs)


@pytest.mark.long
def test_a_name_node_is_killed_and_started_again(own_hdfs: Hdfs) -> None:
    web = f"http://{own_hdfs.address.web}/webhdfs/v1"
    got(f"{web}/made?op=MKDIRS", "PUT")

    own_hdfs.names.restart()

    assert b'"made"' in got(f"{web}/?op=LISTSTATUS")


def test_an_object_store_fails_as_told(faulty_s3: tuple[FaultyProxy, S3Address]) -> None:
    proxy, store = faulty_s3
    bucket = store.make_bucket().removeprefix("s3:/")

    proxy.fail("unavailable")
    with pytest.raises(HTTPError, match="503"):
        got(f"{store.endpoint}{bucket}/a", "PUT", b"1")
    proxy.fail("cut")
    with pytest.raises((HTTPException, OSError)):
        got(f"{store.endpoint}{bucket}/a", "PUT", b"2")
    with pytest.raises(HTTPError, match="404"):
        got(f"{store.endpoint}{bucket}/a")
    proxy.fail("lost-answer")
    with pytest.raises((HTTPException, OSError)):
        got(f"{store.endpoint}{bucket}/a", "PUT", b"3")

    assert got(f"{store.endpoint}{bucket}/a") == b"3"
    assert [fault for fault, *_ in proxy.met] == ["unavailable", "cut", "lost-answer"]
