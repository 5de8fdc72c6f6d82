"""What a user of a managed machine can plant where root writes: links that lead to files of root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hooks.conftest import Hook
from stoker.catalog import shipped
from stoker_agent import files
from stoker_agent.folders import UnsafePath
from support.databases import missing

USER = pwd.getpwnam("nobody")
SECRET = "root:secret\n"
STEPS = """{library}

def apply(steps):
    steps.file({path!r}, "content\\n", owner="nobody", mode=0o644)
"""


class Place(NamedTuple):
    """A directory of the user, and a directory of root with the file that no user may read or change."""

    own: Path
    root: Path

    @property
    def victim(self) -> Path:
        return self.root / "app.json"

    def plant(self, name: str, target: Path) -> None:
        """Make a link as the user."""
        program = "import os, sys; os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[1])); os.symlink(*sys.argv[3:])"
        words = [sys.executable, "-c", program, str(USER.pw_uid), str(USER.pw_gid), str(target), str(self.own / name)]
        subprocess.run(words, check=True)

    def assert_unchanged(self) -> None:
        status = self.victim.lstat()
        assert (self.victim.read_text(), status.st_uid, status.st_mode & 0o777) == (SECRET, 0, 0o600)
        assert [path.name for path in self.root.iterdir()] == ["app.json"]


@pytest.fixture
def place():
    if os.geteuid() != 0:
        missing("only root can write where another user plants a link")
    top = Path(tempfile.mkdtemp(prefix="stoker-links-"))
    top.chmod(0o755)
    place = Place(top / "user", top / "root")
    for folder in place:
        folder.mkdir(mode=0o700)
    os.chown(place.own, USER.pw_uid, USER.pw_gid)
    place.victim.write_text(SECRET)
    place.victim.chmod(0o600)
    yield place
    shutil.rmtree(top)


def config_of(hook: Hook, path: Path) -> Any:
    """Return a config of the hook's group that writes the path."""
    hook.environment.update(
        HEAT_PUPPET_HIERA_DATADIR=str(path.parent),
        HEAT_CFN_INIT_LAST_METADATA_DIR=str(path.parent),
        HEAT_CFN_INIT_CMD="true",
    )
    library = shipped.find_library("steps/1")
    return {
        "file": {"path": str(path), "content": "content\n", "owner": "nobody"},
        "json-file": {str(path): {"a": 1}},
        "hiera": {"datafiles": {path.stem: {"a": 1}}},
        "cfn-init": {},
        "python": STEPS.format(library=library, path=str(path)),
    }[hook.group]


GROUPS = pytest.mark.parametrize("hook", ["file", "json-file", "hiera", "cfn-init", "python"], indirect=True)


@pytest.fixture
def hook(request, tmp_path):
    return Hook(request.param, tmp_path)


@GROUPS
@pytest.mark.parametrize("planted", ["{}", ".{}.stoker-new", ".{}.new"])
def test_a_link_in_a_directory_of_a_user_does_not_redirect_a_write(hook, place, planted):
    name = "last_metadata" if hook.group == "cfn-init" else "app.json"
    place.plant(planted.format(name), place.victim)
    outcome = hook.run(hook.entry(config_of(hook, place.own / name)))
    assert outcome.code == 0, outcome
    place.assert_unchanged()
    written = (place.own / name).lstat()
    assert (written.st_uid, (place.own / name).is_symlink()) == (USER.pw_uid, False)
    assert SECRET.strip() not in str(outcome), "the difference shows nothing of the file of root"


@GROUPS
def test_a_link_in_place_of_a_directory_is_refused(hook, place):
    place.plant("etc", place.root)
    outcome = hook.run(hook.entry(config_of(hook, place.own / "etc" / "app.json")))
    assert outcome.code != 0
    assert "is a link that nobody could have made: name the directory that it leads to" in str(outcome)
    place.assert_unchanged()


@pytest.mark.parametrize("hook", ["file", "python"], indirect=True)
def test_undo_restores_no_file_through_a_link(hook, place):
    entry = hook.entry(config_of(hook, place.own / "app.json"))
    for before in (None, "before\n"):
        if before is not None:
            (place.own / "app.json").write_text(before)
        assert hook.run(entry).code == 0
        (place.own / "app.json").unlink()
        place.plant("app.json", place.victim)
        assert hook.run(entry, mode="undo").changed is True
        place.assert_unchanged()
        assert not (place.own / "app.json").is_symlink()


def test_a_hard_link_to_a_file_of_root_is_not_read(place):
    own = place.own / "app.json"
    os.link(place.victim, own)  # as on a machine with fs.protected_hardlinks = 0
    with pytest.raises(UnsafePath, match="hard link that another user could have made: remove it"):
        files.read(own)
    files.write(own, b"content", 0o644, uid=USER.pw_uid, gid=USER.pw_gid)
    place.assert_unchanged()


def test_root_follows_links_that_only_root_can_make(place):
    (place.root / "data").mkdir()
    (place.root / "link").symlink_to("data")
    files.write(place.root / "link" / "a", b"x")
    assert (place.root / "data" / "a").read_bytes() == b"x"


@pytest.mark.parametrize(("mode", "gid"), [(0o777, 0), (0o775, USER.pw_gid), (0o775, 100)])
def test_root_refuses_a_directory_of_its_own_that_others_may_change(place, mode, gid):
    os.chown(place.root, 0, gid)
    place.root.chmod(mode)
    with pytest.raises(UnsafePath, match=f"others? users? may change .*chmod go-w {place.root}"):
        files.write(place.root / "b", b"x")
    place.root.chmod(0o1777)
    files.write(place.root / "b", b"x")
    assert (place.root / "b").lstat().st_uid == 0


def test_root_writes_where_only_a_group_of_the_system_may_write_too(place):
    os.chown(place.root, 0, 110)  # as /var/log on Ubuntu, whose group is syslog
    place.root.chmod(0o775)
    files.write(place.root / "b", b"x")
    assert (place.root / "b").read_bytes() == b"x"


def test_missing_directories_belong_to_the_user_of_the_first_one(place):
    files.write(place.own / "a" / "b" / "c", b"x", folder_mode=0o750)
    for path in ("a", "a/b", "a/b/c"):
        assert (place.own / path).lstat().st_uid == USER.pw_uid


def test_errors_name_the_whole_path(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"No such file or directory: '{tmp_path}/none'$"):
        files.write(tmp_path / "none" / "a", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=f"Is a directory: '{tmp_path}/folder'$"):
        files.write(tmp_path / "folder", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"], "the new file is removed"
