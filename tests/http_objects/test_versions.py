"""Replaced objects: kept in an archive (Swift's older way) or as versions."""

from __future__ import annotations

import pytest


def archive(swift, path):
    return [(each["name"], each["content_type"]) for each in swift("GET", f"{path}?format=json").body]


def versions(swift, path, query=""):
    return swift("GET", f"{path}?versions&format=json{query}").body


@pytest.fixture
def kept(swift):
    path = swift.container(X_Versions_Enabled="true")
    assert swift("HEAD", path).headers["X-Versions-Enabled"] == "True"
    return path


def test_an_archive_keeps_and_restores_replaced_objects(swift):
    old = swift.container()
    path = swift.container(X_Versions_Location=old[1:])
    assert swift("HEAD", path).headers["X-Versions-Location"] == old[1:]
    stamps = []
    for number in range(3):
        put = swift("PUT", f"{path}/obj", b"%d" % number, Content_Type="a/b")
        stamps.append(put.headers["X-Timestamp"])
    assert [name for name, _ in archive(swift, old)] == [f"003obj/{stamp}" for stamp in stamps[:2]]
    assert swift("GET", f"{old}/003obj/{stamps[1]}").raw == b"1"
    assert [swift("HEAD", each).headers["X-Container-Object-Count"] for each in (path, old)] == ["1", "2"]
    for number in (1, 0):
        assert swift("DELETE", f"{path}/obj").status == 204
        assert swift("GET", f"{path}/obj").raw == b"%d" % number
    assert swift("DELETE", f"{path}/obj").status == 204
    assert swift("DELETE", f"{path}/obj").status == 404
    assert [swift("HEAD", each).headers["X-Container-Object-Count"] for each in (path, old)] == ["0", "0"]
    assert swift("POST", path, b"", X_Remove_Versions_Location="x").status == 204
    assert "X-Versions-Location" not in swift("HEAD", path).headers


def test_objects_with_a_common_prefix_have_separate_archives(swift):
    old = swift.container()
    path = swift.container(X_Versions_Location=old[1:])
    for name in ("a", "a/b", "aa", "%C3%A9"):
        for data in (b"1", b"2"):
            swift("PUT", f"{path}/{name}", name.encode() + data)
    assert [name.rpartition("/")[0] for name, _ in archive(swift, old)] == ["001a", "002aa", "002é", "003a/b"]
    swift("DELETE", f"{path}/a")
    assert swift("GET", f"{path}/a").raw == b"a1"
    assert len(archive(swift, old)) == 3


def test_a_container_may_be_its_own_archive(swift):
    """So Heat's signals are kept."""
    path = swift.container()
    swift("POST", path, b"", X_Versions_Location=path[1:])
    for data in (b"1", b"2", b"3"):
        assert swift("PUT", f"{path}/o", data).status == 201
    names = swift("GET", path).raw.decode().split()
    assert len(names) == 3
    assert [swift("GET", f"{path}/{name}").raw for name in names] == [b"1", b"2", b"3"]


def test_the_history_mode_records_deletions(swift):
    old = swift.container()
    path = swift.container(X_History_Location=old[1:])
    assert swift("HEAD", path).headers["X-History-Location"] == old[1:]
    swift("PUT", f"{path}/o", b"1", Content_Type="a/b")
    assert swift("DELETE", f"{path}/o").status == 204
    assert swift("GET", f"{path}/o").status == 404
    marker = "application/x-deleted;swift_versions_deleted=1"
    assert [kind for _, kind in archive(swift, old)] == ["a/b", marker]
    assert swift("DELETE", f"{path}/o").status == 404


def test_a_missing_archive_container_is_an_error(swift):
    path = swift.container(X_Versions_Location="nowhere")
    assert swift("PUT", f"{path}/o", b"1").status == 201
    refused = swift("PUT", f"{path}/o", b"2")
    assert (refused.status, b"nowhere" in refused.raw) == (412, True)
    assert swift("GET", f"{path}/o").raw == b"1"
    assert swift("DELETE", f"{path}/o").status == 204


def test_versions_are_listed_read_and_deleted(swift, kept):
    ids = [swift("PUT", f"{kept}/o", b"%d" % n).headers["X-Object-Version-Id"] for n in range(3)]
    assert swift("HEAD", f"{kept}/o").headers["X-Object-Version-Id"] == ids[2]
    listed = versions(swift, kept)
    assert [(each["name"], each["version_id"], each["is_latest"]) for each in listed] == [
        ("o", ids[2], True),
        ("o", ids[1], False),
        ("o", ids[0], False),
    ]
    assert [swift("GET", f"{kept}/o?version-id={id}").raw for id in ids] == [b"0", b"1", b"2"]
    assert [each["name"] for each in swift("GET", f"{kept}?format=json").body] == ["o"]
    headers = swift("HEAD", kept).headers
    assert (headers["X-Container-Object-Count"], headers["X-Container-Bytes-Used"]) == ("1", "3")
    assert swift("DELETE", f"{kept}/o?version-id={ids[1]}").status == 204
    assert [each["version_id"] for each in versions(swift, kept)] == [ids[2], ids[0]]
    assert swift("GET", f"{kept}/o?version-id={ids[1]}").status == 404


def test_a_deletion_is_a_version(swift, kept):
    first = swift("PUT", f"{kept}/o", b"1").headers["X-Object-Version-Id"]
    gone = swift("DELETE", f"{kept}/o")
    assert gone.status == 204
    assert swift("GET", f"{kept}/o").status == 404
    assert swift("GET", kept).status == 204
    marker = gone.headers["X-Object-Version-Id"]
    listed = versions(swift, kept)
    assert [(each["version_id"], each["is_latest"]) for each in listed] == [(marker, True), (first, False)]
    assert listed[0]["content_type"] == "application/x-deleted;swift_versions_deleted=1"
    assert swift("GET", f"{kept}/o?version-id={marker}").status == 404
    assert swift("GET", f"{kept}/o?version-id={first}").raw == b"1"
    assert swift("DELETE", kept).status == 409
    assert swift("PUT", f"{kept}/o?version-id={first}", b"").status == 201
    assert swift("GET", f"{kept}/o").raw == b"1"
    assert [each["version_id"] for each in versions(swift, kept) if each["is_latest"]] == [first]
    for id in (marker, first):
        assert swift("DELETE", f"{kept}/o?version-id={id}").status == 204
    assert versions(swift, kept) == []
    assert swift("DELETE", kept).status == 204


def test_deleting_a_missing_object_is_recorded(swift, kept):
    answer = swift("DELETE", f"{kept}/none")
    assert answer.status == 404
    assert [each["version_id"] for each in versions(swift, kept)] == [answer.headers["X-Object-Version-Id"]]


def test_objects_from_before_versioning_are_the_null_version(swift):
    path = swift.container()
    swift("PUT", f"{path}/o", b"before")
    swift("POST", path, b"", X_Versions_Enabled="true")
    swift("PUT", f"{path}/o", b"after")
    assert swift("GET", f"{path}/o?version-id=null").raw == b"before"
    assert [each["version_id"] == "null" for each in versions(swift, path)] == [False, True]


def test_while_versioning_is_suspended_the_null_version_is_overwritten(swift, kept):
    first = swift("PUT", f"{kept}/o", b"1").headers["X-Object-Version-Id"]
    assert swift("POST", kept, b"", X_Versions_Enabled="false").status == 204
    for data in (b"2", b"3"):
        assert "X-Object-Version-Id" not in swift("PUT", f"{kept}/o", data).headers
    assert [each["version_id"] for each in versions(swift, kept)] == ["null", first]
    assert swift("GET", f"{kept}/o").raw == b"3"
    assert swift("DELETE", f"{kept}/o").status == 204
    assert [each["version_id"] for each in versions(swift, kept)] == [first]
    headers = swift("HEAD", kept).headers
    assert (headers["X-Container-Object-Count"], headers["X-Container-Bytes-Used"]) == ("0", "1")


def test_versions_are_listed_in_pages(swift, kept):
    for name in ("a", "b", "b", "c"):
        swift("PUT", f"{kept}/{name}", b"x")
    whole = [(each["name"], each["version_id"]) for each in versions(swift, kept)]
    found, query = [], ""
    while page := versions(swift, kept, f"&limit=1{query}"):
        [each] = page
        found.append((each["name"], each["version_id"]))
        query = f"&marker={each['name']}&version_marker={each['version_id']}"
    assert found == whole
    assert [each["name"] for each in versions(swift, kept, "&prefix=b")] == ["b", "b"]
    assert [each["name"] for each in versions(swift, kept, "&reverse=true")] == ["c", "b", "b", "a"]
    assert swift("GET", f"{kept}?versions&delimiter=/").status == 400


def test_deleting_a_restored_version_leaves_the_object_deleted(swift, kept):
    first = swift("PUT", f"{kept}/o", b"1").headers["X-Object-Version-Id"]
    marker = swift("DELETE", f"{kept}/o").headers["X-Object-Version-Id"]
    swift("PUT", f"{kept}/o?version-id={first}", b"")
    assert swift("DELETE", f"{kept}/o?version-id={first}").status == 204
    assert [(each["version_id"], each["is_latest"]) for each in versions(swift, kept)] == [(marker, True)]
    assert swift("GET", f"{kept}/o").status == 404
    assert swift("PUT", f"{kept}/o", b"2").status == 201
    assert len(versions(swift, kept)) == 2
