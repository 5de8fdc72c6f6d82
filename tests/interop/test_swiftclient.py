"""python-swiftclient, as a library and as the `swift` command, and openstacksdk's object store."""

from __future__ import annotations

import io
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

import pytest
from openstack import exceptions
from swiftclient import client

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def swift(session):
    connection = client.Connection(session=session, retries=0)
    yield connection
    connection.close()


@pytest.fixture
def container():
    return f"c-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def command(stoker, tmp_path):
    def run(*words: str, fails: bool = False) -> str:
        program = str(Path(sys.executable).with_name("swift"))
        plain = {**stoker.environment, "ST_AUTH_VERSION": "3", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [program, *words], env=plain, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
        )
        assert bool(done.returncode) == fails, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stderr if fails else done.stdout

    return run


def fetch(url: str, method: str = "GET", data: bytes | None = None) -> bytes:
    request = urllib.request.Request(url, data, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def test_the_library_writes_and_reads_objects(swift, container):
    swift.put_container(container, headers={"X-Container-Meta-Size": "größer"})
    etag = swift.put_object(container, "a/ö?x", b"data", content_type="text/x", headers={"X-Object-Meta-U": "é"})
    headers, data = swift.get_object(container, "a/ö?x")
    assert (data, headers["etag"], headers["content-type"]) == (b"data", etag, "text/x")
    assert swift.head_object(container, "a/ö?x")["content-length"] == "4"
    swift.post_object(container, "a/ö?x", {"X-Object-Meta-New": "1"})
    assert swift.head_object(container, "a/ö?x")["x-object-meta-new"] == "1"
    swift.put_object(container, "stream", io.BytesIO(b"x" * 200_000), chunk_size=65536)
    headers, listed = swift.get_container(container, full_listing=True)
    assert [each["name"] for each in listed] == ["a/ö?x", "stream"]
    assert headers["x-container-bytes-used"] == str(4 + 200_000)
    _, listed = swift.get_container(container, delimiter="/", limit=1)
    assert listed == [{"subdir": "a/"}]
    assert container in [each["name"] for each in swift.get_account(full_listing=True)[1]]
    with pytest.raises(client.ClientException) as refused:
        swift.delete_container(container)
    assert refused.value.http_status == 409
    for name in ("a/ö?x", "stream"):
        swift.delete_object(container, name)
    swift.delete_container(container)
    with pytest.raises(client.ClientException) as refused:
        swift.head_container(container)
    assert refused.value.http_status == 404
    assert swift.get_capabilities()["tempurl"]["allowed_digests"] == ["sha256", "sha512"]


def test_the_swift_command_uploads_and_downloads(command, container, tmp_path, stoker):
    command("post", container, "-m", "Color:blue")
    assert "Color: blue" in command("stat", container)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("a")
    (tmp_path / "folder" / "b.txt").write_text("b")
    command("upload", container, "folder")
    assert command("list", container).split() == ["folder/a.txt", "folder/b.txt"]
    assert command("list", container, "--prefix", "folder/", "--delimiter", "/").split() == [
        "folder/a.txt",
        "folder/b.txt",
    ]
    assert container in command("list")
    assert command("download", container, "folder/a.txt", "-o", "-") == "a"
    assert "Content Type: text/plain" in command("stat", container, "folder/a.txt")
    # Again, and nothing needs to be sent.
    command("upload", "--changed", container, "folder")
    assert "Containers:" in command("stat")
    assert "tempurl" in command("capabilities")
    command("delete", container, "folder/a.txt")
    command("delete", container)
    command("stat", container, fails=True)


def test_temporary_urls_of_the_command_are_valid(command, container, stoker, tmp_path):
    command("post", "-m", "Temp-URL-Key:command-key")
    command("post", container)
    for path, root in (
        (f"/v1/AUTH_{stoker.project}/{container}/o", f"{stoker.url}/object-store"),
        (f"/object-store/v1/AUTH_{stoker.project}/{container}/o", stoker.url),
    ):
        for extra in ((), ("--digest", "sha512")):
            put = command("tempurl", "PUT", "60", path, "command-key", *extra).strip()
            fetch(root + put, "PUT", b"signed")
            got = command("tempurl", "GET", "60", path, "command-key", *extra).strip()
            assert fetch(root + got) == b"signed"
            with pytest.raises(urllib.error.HTTPError, match="401"):
                fetch(root + got, "PUT", b"x")


def test_openstacksdk_writes_and_reads_objects(cloud, container, tmp_path):
    store = cloud.object_store
    store.create_container(container)
    store.set_container_metadata(container, color="blue")
    assert store.get_container_metadata(container).metadata["color"] == "blue"
    store.upload_object(container, "a/b", data=b"data", content_type="text/x")
    assert store.download_object("a/b", container=container) == b"data"
    assert b"".join(store.stream_object("a/b", container=container)) == b"data"
    assert [each.name for each in store.objects(container)] == ["a/b"]
    assert container in [each.name for each in store.containers()]
    store.set_object_metadata("a/b", container=container, shape="round")
    assert store.get_object_metadata("a/b", container=container).metadata["shape"] == "round"
    file = tmp_path / "file"
    file.write_bytes(b"x" * 1000)
    store.create_object(container, "file", filename=str(file))
    assert store.is_object_stale(container, "file", str(file)) is False
    assert store.get_account_metadata().account_container_count >= 1
    assert store.get_info().swift["max_file_size"] == 16 * 1024 * 1024
    for name in ("a/b", "file"):
        store.delete_object(name, container=container)
    store.delete_container(container)
    with pytest.raises(exceptions.NotFoundException):
        store.get_container_metadata(container)


def test_the_openstack_command_manages_objects(openstack, container, tmp_path):
    openstack("container", "create", container)
    file = tmp_path / "file"
    file.write_text("text")
    openstack("object", "create", container, str(file), "--name", "o")
    assert [each["Name"] for each in openstack("object", "list", container, "-f", "json")] == ["o"]
    assert openstack("object", "show", container, "o", "-f", "json")["content-length"] == "4"
    openstack("container", "delete", "--recursive", container)
    assert container not in openstack("container", "list")
