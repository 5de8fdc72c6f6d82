"""The site's secret belongs to the database: no process serves it with another one, or makes a new one unasked."""

from __future__ import annotations

import shutil
import stat

import pytest

from stoker import settings as all_settings
from stoker.model.errors import Conflict, Invalid
from stoker.serve.site_keys import fingerprint, load_site_secret, secret_file
from support import query
from support.server import served

SECRET = "0123456789abcdef" * 4


@pytest.fixture
def installation(tmp_path):
    """Settings of a process with a state directory of its own."""

    def make(name: str = "state", **flags: str) -> all_settings.Settings:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        variables = {f"STOKER_{name.upper()}": value for name, value in flags.items()}
        return all_settings.load({"state_dir": str(folder)}, variables, None)

    return make


def stored(store):
    with store.read() as tx:
        return str(query.rows(tx, "SELECT * FROM site_properties"))


def test_the_first_start_creates_a_secret_and_stores_only_its_fingerprint(store, installation):
    settings = installation()
    secret = load_site_secret(settings, store)
    assert len(secret) == 64
    assert stat.S_IMODE(secret_file(settings).stat().st_mode) == 0o600
    assert load_site_secret(settings, store) == secret
    assert fingerprint(secret) in stored(store)
    assert secret.decode() not in stored(store)


def test_a_second_process_without_the_secret_is_refused_and_creates_none(store, installation):
    load_site_secret(installation(), store)
    second = installation("second")
    with pytest.raises(Conflict, match=r"--secret-key-file .*STOKER_SECRET_KEY\).*keys/site\.key"):
        load_site_secret(second, store)
    assert not secret_file(second).exists()


def test_another_secret_is_refused_from_every_source(store, installation):
    first = installation()
    load_site_secret(first, store)
    before = stored(store)
    with pytest.raises(Conflict, match="the setting secret_key is another one"):
        load_site_secret(installation("second", secret_key=SECRET), store)
    third = installation("third")
    secret_file(third).parent.mkdir()
    secret_file(third).write_text(SECRET)
    with pytest.raises(Conflict, match=rf"{secret_file(third)} is another one"):
        load_site_secret(third, store)
    assert stored(store) == before


def test_a_second_process_starts_with_the_key_file_of_the_first(store, installation):
    first = installation()
    secret = load_site_secret(first, store)
    second = installation("second", secret_key_file=str(secret_file(first)))
    assert load_site_secret(second, store) == secret
    assert not secret_file(second).exists()


def test_one_of_two_concurrent_first_starts_is_refused(store, installation, monkeypatch):
    first, second = installation(), installation("second")
    known = "stoker.serve.site_keys._stored_fingerprint"
    load_site_secret(first, store)
    monkeypatch.setattr(known, lambda _: None)  # as it was when the second one looked
    with pytest.raises(Conflict):
        load_site_secret(second, store)
    assert not secret_file(second).exists()


def test_a_lost_secret_is_replaced_only_on_demand(store, installation):
    settings = installation()
    lost = load_site_secret(settings, store)
    secret_file(settings).unlink()
    with pytest.raises(Conflict, match="is missing"):
        load_site_secret(settings, store)
    fresh = load_site_secret(settings, store, replace_fingerprint=True)
    assert fresh != lost
    assert load_site_secret(settings, store) == fresh


@pytest.mark.parametrize("weak", ["x", "a" * 31])
def test_a_weak_secret_is_refused(store, installation, weak):
    with pytest.raises(Invalid, match=r"at least 32 bytes.*openssl rand -hex 32"):
        installation(secret_key=weak)
    settings = installation("other")
    secret_file(settings).parent.mkdir()
    secret_file(settings).write_text(weak)
    with pytest.raises(Invalid, match=rf"{secret_file(settings)} must have at least 32 bytes"):
        load_site_secret(settings, store)


def test_a_restored_database_without_its_keys_is_refused_in_one_line(tmp_path):
    with served(tmp_path) as stoker:
        stoker.stop()
        shutil.rmtree(stoker.state_dir / "keys")
        with pytest.raises(AssertionError):
            stoker.start()
        last = stoker.output.strip().splitlines()[-1]
        assert last.startswith("Error: this database was set up with another site secret")
        assert "Traceback" not in stoker.output
        assert not (stoker.state_dir / "keys").exists()

        stoker.flags = (*stoker.flags, "--accept-new-secret")
        stoker.start()
        assert stoker.login().status == 201
