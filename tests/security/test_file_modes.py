"""Nobody but the server's own user reads its files, whatever was there before."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from stoker import settings as all_settings
from stoker.model.errors import Invalid
from stoker.serve.state_dir import lock, restrict
from support.server import served


def open_to_others(folder: Path) -> list[str]:
    entries = [folder, *folder.rglob("*")]
    return [str(each) for each in entries if stat.S_IMODE(each.lstat().st_mode) & 0o077 and not each.is_symlink()]


@pytest.fixture
def own_umask():
    """A process that locks a state directory changes its umask; this one goes on."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_permissions_of_an_open_state_directory_are_corrected(tmp_path):
    state = tmp_path / "state"
    for folder in (state, state / "keys", state / "logs"):
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
    (state / "logs" / "stoker.log").touch(mode=0o644)
    with served(tmp_path, is_forked=False) as stoker:
        assert stoker.heat("POST", "/servers", {"name": "web"}).status == 201
        assert stoker.request("GET", "/agent/v1/install").status == 200
        assert (state / "stoker.db-wal").exists()
        assert open_to_others(state) == []
        # What an older version left open is closed at the next start.
        stoker.stop()
        for name in ("stoker.db", "admin.json", "lock", "logs/stoker.log", "keys/site.key"):
            state.joinpath(name).chmod(0o666)
        stoker.start()
        assert open_to_others(state) == []


def test_permissions_of_a_database_elsewhere_are_corrected(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    database = elsewhere / "site.db"
    database.touch(mode=0o644)
    with served(tmp_path, database=f"sqlite:///{database}"):
        assert [name for name in open_to_others(elsewhere) if name != str(elsewhere)] == []
        assert elsewhere.joinpath("site.db-wal").exists()


def test_a_state_directory_of_another_user_is_refused(tmp_path, own_umask, monkeypatch):
    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 54321)
    with pytest.raises(Invalid, match=rf"{state} belongs to user .*, not to {os.getuid() + 54321}.*--state-dir"):
        lock(all_settings.load({"state_dir": str(state)}, {}, None))
    assert list(state.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another user's place")
def test_a_directory_that_only_its_owner_reads_is_named(tmp_path):
    tmp_path.chmod(0o700)
    try:
        os.seteuid(65534)
        with pytest.raises(Invalid, match=r" belongs to user root, not to nobody: .*\(sudo -u root …\)"):
            restrict([tmp_path / "stoker.db"])
    finally:
        os.seteuid(0)


def test_links_are_not_followed(tmp_path):
    target = tmp_path / "target"
    target.touch(mode=0o644)
    link = tmp_path / "link"
    link.symlink_to(target)
    restrict([link])
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
