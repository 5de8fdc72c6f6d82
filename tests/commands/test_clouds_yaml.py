"""clouds.yaml is the user's own file: Stoker writes it where none exists."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from stoker.commands import login

LOGIN = {
    "auth_url": "http://127.0.0.1:8004/identity/v3",
    "username": "admin",
    "password": "pw",
    "project_name": "default",
}
WANTED = login.cloud_entry(LOGIN)
CHANGED = login.cloud_entry({**LOGIN, "password": "new: 'odd' #one"})
STATE = Path("/var/lib/stoker state")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "openstack" / "clouds.yaml"


def offer(path: Path, wanted=WANTED, state: Path = STATE) -> str:
    return login.offer_cloud_entry(path, wanted, state)


def test_a_new_clouds_yaml_is_readable_only_by_its_owner_and_updated(path):
    assert "OS_CLOUD=stoker" in offer(path)
    assert yaml.safe_load(path.read_text()) == {"clouds": {"stoker": WANTED}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["clouds.yaml"]
    assert "OS_CLOUD=stoker" in offer(path, CHANGED)
    assert yaml.safe_load(path.read_text()) == {"clouds": {"stoker": CHANGED}}


def test_a_current_entry_is_not_written_again(path):
    offer(path)
    before = path.stat()
    assert "has the entry" in offer(path)
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(
    ("state", "addition"),
    [("/srv/other", ""), (STATE, "  work: {}\n"), (STATE, "cache: {}\n")],
    ids=["of another installation", "with another cloud", "with another section"],
)
def test_a_file_with_anything_else_stays_unchanged(path, state, addition):
    offer(path, state=Path(state))
    text = path.read_text() + addition
    path.write_text(text)
    assert "`stoker env` prints the login" in offer(path, CHANGED)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"clouds: {work: {auth: {username: me}}}\n",
        b"clouds:\n  stoker:\n    auth: {username: me}\n",
        b"clouds: [unclosed",
        b"\xff\xfe\x00",
        b"clouds: text\n",
        b"text\n",
    ],
)
def test_a_file_of_the_user_stays_unchanged(path, data):
    path.parent.mkdir()
    path.write_bytes(data)
    said = offer(path)
    assert said.startswith("left")
    assert "`stoker env` prints the login" in said
    assert path.read_bytes() == data


def test_a_folder_of_that_name_stays_unchanged(path):
    path.mkdir(parents=True)
    assert "left" in offer(path)
