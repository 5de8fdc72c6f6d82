"""Signed URLs: what they open, and everything they do not."""

from __future__ import annotations

import time
from urllib.parse import quote, urlencode

import pytest

from stoker.objects import limits, tempurl
from support.accounts import create_account

KEY, SECOND = "account-key", "account-key-2"


@pytest.fixture
def place(swift):
    """A container with an object, in an account with two keys."""
    assert swift("POST", "", b"", X_Account_Meta_Temp_URL_Key=KEY, X_Account_Meta_Temp_URL_Key_2=SECOND).status == 204
    path = swift.container()
    swift("PUT", f"{path}/a/o", b"data", X_Object_Meta_Secret="s", X_Object_Meta_Public_P="p")
    yield path
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="", X_Account_Meta_Temp_URL_Key_2="")


@pytest.fixture
def signed(swift, place):
    def ask(
        verb,
        name="a/o",
        data=None,
        *,
        method=None,
        key=KEY,
        expires=None,
        root="",
        digest="sha256",
        headers=None,
    ):
        at = int(time.time()) + 60 if expires is None else expires
        inside = f"{root or '/v1'}/AUTH_{swift.stoker.project}{place}/"
        signature = tempurl.sign(key, method or verb, f"{inside}{name}", at, digest)
        said = {"temp_url_sig": signature, "temp_url_expires": at}
        return swift.raw(verb, f"{swift.root}{place}/{quote(name)}?{urlencode(said)}", data, headers, token=None)

    return ask


def refused(answer):
    assert answer.status == 401
    assert answer.raw in (b"401 Unauthorized: Temp URL invalid\n", b"")
    return True


def test_a_temporary_url_permits_its_method(swift, signed, place):
    assert signed("GET").raw == b"data"
    assert signed("PUT", "new", b"put").status == 201
    assert swift("GET", f"{place}/new").raw == b"put"
    assert signed("POST", "new", b"", headers={"X-Object-Meta-A": "1"}).status == 202
    assert swift("HEAD", f"{place}/new").headers["X-Object-Meta-A"] == "1"
    for method in ("GET", "PUT", "POST", "HEAD"):
        assert signed("HEAD", method=method).status == 200
    for method, verb in (
        ("GET", "PUT"),
        ("PUT", "GET"),
        ("HEAD", "GET"),
        ("PUT", "DELETE"),
        ("DELETE", "HEAD"),
        ("PUT", "POST"),
    ):
        assert refused(signed(verb, method=method, data=b"" if verb != "GET" else None))
    assert signed("GET", root="/object-store/v1").status == 200
    assert refused(signed("GET", root="/other/v1"))
    assert signed("DELETE", "new").status == 204
    assert swift("GET", f"{place}/new").status == 404
    assert signed("GET", "none").status == 404


@pytest.mark.parametrize("name", ["a/o", "spa ce", "ü/💥", "?x=1", "100%", "//", "x/"])
def test_any_object_name_can_be_signed(signed, name):
    assert signed("PUT", name, b"x").status == 201
    assert signed("GET", name).raw == b"x"


def test_keys_of_the_account_and_of_the_container_are_valid(swift, signed, place):
    assert refused(signed("GET", key="own"))
    assert signed("GET", key=SECOND).status == 200
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="fresh")
    swift("POST", place, b"", X_Container_Meta_Temp_URL_Key="own", X_Container_Meta_Temp_URL_Key_2="own2")
    assert refused(signed("GET"))
    for key in (SECOND, "fresh", "own", "own2"):
        assert signed("GET", key=key).status == 200
    other = swift.container()
    path = f"/v1/AUTH_{swift.stoker.project}{other}/o"
    at = int(time.time()) + 60
    query = urlencode({"temp_url_sig": tempurl.sign("own", "PUT", path, at), "temp_url_expires": at})
    assert refused(swift("PUT", f"{other}/o?{query}", b"x", token=None))
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="", X_Account_Meta_Temp_URL_Key_2="")
    swift("POST", place, b"", X_Container_Meta_Temp_URL_Key="", X_Container_Meta_Temp_URL_Key_2="")
    for key in ("fresh", "own", ""):
        assert refused(signed("GET", key=key))


def test_digests_are_sha256_and_sha512_in_hexadecimal(swift, signed, place):
    assert signed("GET", digest="sha512").status == 200
    assert refused(signed("GET", digest="sha1"))
    at = int(time.time()) + 60
    upper = tempurl.sign(KEY, "GET", f"/v1/AUTH_{swift.stoker.project}{place}/a/o", at).upper()
    assert swift("GET", f"{place}/a/o?temp_url_sig={upper}&temp_url_expires={at}", token=None).status == 200


def test_expiry_times_are_unix_seconds(swift, signed, place):
    now = int(time.time())
    assert refused(signed("GET", expires=now - 1))
    assert signed("GET", expires=2**31 - 61).status == 200
    signature = tempurl.sign(KEY, "GET", f"/v1/AUTH_{swift.stoker.project}{place}/a/o", now + 3600)
    for bad in ("", "0", "-5", "soon", "9" * 40, "2126-01-31T00:00:00Z", "1e9", "²"):
        query = urlencode({"temp_url_sig": signature, "temp_url_expires": bad})
        assert refused(swift("GET", f"{place}/a/o?{query}", token=None))


def test_headers_of_a_signed_download(swift, signed, place):
    shown = signed("GET").headers
    assert "X-Object-Meta-Secret" not in shown
    assert shown["X-Object-Meta-Public-P"] == "p"
    assert shown["Content-Disposition"] == "attachment"
    swift("POST", f"{place}/a/o", b"", Content_Disposition="own")
    assert signed("GET").headers["Content-Disposition"] == "own"


def test_a_temporary_url_cannot_refer_to_other_objects(swift, signed, place):
    for header in ("X-Object-Manifest", "X-Symlink-Target", "X-Copy-From"):
        answer = signed("PUT", "p", b"", headers={header: f"{place[1:]}/a/o"})
        assert (answer.status, header.lower().encode() in answer.raw) == (400, True)
    assert swift("GET", f"{place}/p").status == 404
    # A token beside a bad signature does not help: what is asked for is to act by the signature.
    assert swift("GET", f"{place}/a/o?temp_url_sig={'0' * 64}&temp_url_expires=2000000000").status == 401


def test_incomplete_and_altered_signatures_are_refused(swift, place):
    at = int(time.time()) + 60
    path = f"/v1/AUTH_{swift.stoker.project}{place}/a/o"
    right = tempurl.sign(KEY, "GET", path, at)
    assert swift("GET", f"{place}/a/o?temp_url_sig={right}&temp_url_expires={at}", token=None).status == 200
    for query in (
        f"temp_url_sig={right}",
        f"temp_url_expires={at}",
        f"temp_url_sig=&temp_url_expires={at}",
        f"temp_url_sig={right}&temp_url_expires={at + 1}",
        f"temp_url_sig={right[:-1]}&temp_url_expires={at}",
        f"temp_url_sig={right[:-1]}{'0' if right[-1] != '0' else '1'}&temp_url_expires={at}",
        f"temp_url_sig=sha256:%25&temp_url_expires={at}",
        f"temp_url_sig=md5:{right}&temp_url_expires={at}",
        f"temp_url_sig=%C3%BC&temp_url_expires={at}",
    ):
        assert refused(swift("GET", f"{place}/a/o?{query}", token=None)), query
    assert refused(swift("GET", f"{place}/a/b?temp_url_sig={right}&temp_url_expires={at}", token=None))
    other = f"/object-store/v1/AUTH_other{place}/a/o?temp_url_sig={right}&temp_url_expires={at}"
    assert refused(swift.raw("GET", other, token=None))


def test_the_size_limit_applies_to_a_signed_put(signed):
    assert signed("PUT", "big", b"x" * (limits.OBJECT_SIZE + 1)).status == 413


def test_keys_are_shown_only_to_writers(stoker, swift):
    reader = create_account(stoker, "reader").token
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="hidden")
    path = swift.container(X_Container_Meta_Temp_URL_Key="hidden", X_Container_Meta_Shown="yes")
    for below, kind in (("", "Account"), (path, "Container")):
        for verb in ("HEAD", "GET"):
            assert swift(verb, below).headers[f"X-{kind}-Meta-Temp-URL-Key"] == "hidden"
            assert f"X-{kind}-Meta-Temp-URL-Key" not in swift(verb, below, token=reader).headers
    assert swift("HEAD", path, token=reader).headers["X-Container-Meta-Shown"] == "yes"
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="")
