"""`stoker serve` as a process: how it starts, refuses to start, and ends."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tomllib

import pytest
import yaml
from click import ClickException

from stoker.commands import login, reported_as_click_errors
from support import forked
from support.ports import free_port
from support.server import STOKER, Served, served

pytestmark = pytest.mark.slow


@pytest.fixture
def plain(tmp_path):
    """A shell's environment that knows nothing of OpenStack, with a home of its own."""
    home = tmp_path / "plain-home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "STOKER_", "XDG_"))}
    return {**kept, "HOME": str(home)}


def refused(plain, *words, is_forked=True):
    """One line on what is wrong, and a code that is not 0."""
    if is_forked:
        done = forked.run(words, plain, timeout=60)
    else:
        done = subprocess.run([*STOKER, *words], env=plain, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    said = done.stderr.strip()
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1, said
    return said


def serve(tmp_path, *words):
    return ("serve", "--state-dir", str(tmp_path / "state"), "--no-clouds-yaml", *words)


def test_a_port_in_use_is_named(tmp_path, plain):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port}" in refused(
            plain, *serve(tmp_path, "--port", str(port)), is_forked=False
        )


def test_a_second_server_on_the_same_state_directory_is_refused(tmp_path, plain):
    with served(tmp_path) as stoker:
        said = refused(plain, "serve", "--state-dir", str(stoker.state_dir), "--port", str(free_port()))
        assert "another stoker serves from" in said
        assert stoker.heat("GET", "/stacks").status == 200


def test_the_first_start_writes_a_login_for_all_clients(tmp_path):
    with served(tmp_path, clouds_yaml=True) as stoker:
        file = tmp_path / "home" / ".config" / "openstack" / "clouds.yaml"
        stoker.until(file.exists)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        auth = yaml.safe_load(file.read_text())["clouds"]["stoker"]["auth"]
        said = {"OS_USERNAME": auth["username"], "OS_PASSWORD": auth["password"]}
        assert stoker.login(**said).status == 201
        assert stoker.login().status == 201  # the one `stoker env` prints
        assert stoker.login(OS_PASSWORD="wrong").status == 401
        assert "Only this machine can reach it" in stoker.output


def test_a_login_that_cannot_be_written_is_named_and_the_old_one_stays(tmp_path, monkeypatch):
    path = tmp_path / "admin.json"
    old = login.store(path, auth_url="http://a.test", password="p")

    def fsync(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(ClickException) as caught, reported_as_click_errors():
        login.store(path, auth_url="http://b.test", password="p")
    assert caught.value.message == f"No space left on device: {path}"
    assert login.read(path) == old
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_password_for_the_administrator_ends_the_old_one(tmp_path):
    with served(tmp_path) as stoker:
        old = stoker.environment["OS_PASSWORD"]
        token = stoker.token
        stoker.stop()
        stoker.flags = (*stoker.flags, "--reset-admin-password")
        stoker.start()
        assert stoker.environment["OS_PASSWORD"] != old
        assert stoker.login(OS_PASSWORD=old).status == 401
        path = f"/v1/{'0' * 32}/stacks"
        assert stoker.request("GET", path, headers={"X-Auth-Token": token}).status == 401
        assert stoker.login().status == 201


def test_settings_from_a_file_and_the_environment(tmp_path, plain):
    file = tmp_path / "stoker.toml"
    file.write_text(f'port = {free_port()}\nhost = "127.0.0.1"\nmax_stacks_per_project = 0\n')
    port = tomllib.loads(file.read_text())["port"]
    stoker = Served(tmp_path, port)
    environment = {**plain, "STOKER_CONFIG": str(file), "STOKER_STATE_DIR": str(stoker.state_dir)}
    process = subprocess.Popen(
        [*STOKER, "serve"],
        env={**environment, "STOKER_CLOUDS_YAML": "no", "STOKER_PRT": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    stoker.process = process
    try:
        stoker._until_healthy()
        done = subprocess.run([*STOKER, "env"], env=environment, capture_output=True, text=True, check=True, timeout=60)
        words = [line.removeprefix("export ").partition("=") for line in done.stdout.splitlines()]
        stoker.environment = {name: value.strip("'") for name, _, value in words}
        said = stoker.heat("POST", "/stacks", {"stack_name": "s", "template": {"heat_template_version": "2018-08-31"}})
        assert (said.status, said.body["error"]["type"]) == (400, "RequestLimitExceeded")
    finally:
        process.terminate()
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert errors.startswith("Warning: STOKER_PRT is an unknown setting and is ignored; did you mean STOKER_PORT?\n")


@pytest.mark.parametrize(
    ("words", "variables", "sentence"),
    [
        (("--database", "sqlite:////nowhere/at/all/x.db"), {}, "cannot open the database /nowhere/at/all/x.db: unable"),
        (("--port", "x"), {}, "--port must be a whole number"),
        (("--host", "0.0.0.0"), {}, "--insecure-http"),
        (("--config", "stoker.toml"), {}, "there is no setting 'color'"),
        (("--state-dir", "stoker.toml"), {}, "stoker.toml"),
        (
            (),
            {"STOKER_DATABASE": "postgresql://a:b@127.0.0.1:1/x"},
            "cannot open the database postgresql://a:******@127.0.0.1:1/x:",
        ),
    ],
)
def test_impossible_settings_are_named(tmp_path, plain, monkeypatch, words, variables, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stoker.toml").write_text("color = 'red'\n")
    assert sentence in refused({**plain, **variables}, *serve(tmp_path, *words))
    # Only the database is tried after the state directory has been created.
    assert (tmp_path / "state").exists() == ("open the database" in sentence)


def test_a_site_is_not_created_among_other_files(tmp_path, plain):
    state = tmp_path / "state"
    state.joinpath("lost+found").mkdir(parents=True)
    state.joinpath("site.key").write_text("of the directory keys")
    assert f"{state} is neither empty nor the state directory of a site: it has site.key." in refused(
        plain, *serve(tmp_path)
    )
    assert sorted(path.name for path in state.iterdir()) == ["lost+found", "site.key"]


def test_an_incomplete_restore_creates_no_site(tmp_path, plain):
    with served(tmp_path) as stoker:
        stoker.stop()
        database = stoker.state_dir / "stoker.db"
        database.unlink()
        words = ("serve", "--state-dir", str(stoker.state_dir), "--port", str(stoker.port))
        assert f"{database} is missing, but {stoker.state_dir} has the secret of a site" in refused(plain, *words)
        assert not database.exists()
        stoker.state_dir.joinpath("keys", "site.key").unlink()
        assert f"this database is empty, but {stoker.state_dir} has the login of a site" in refused(plain, *words)


def test_db_commands_name_their_database(tmp_path, plain):
    state, status = tmp_path / "state", ("db", "status", "--state-dir", str(tmp_path / "state"))
    assert f"{state} lacks {state}/stoker.db" in refused(plain, *status).replace(", which", "")
    assert not state.exists()
    with served(tmp_path) as stoker:
        assert stoker.run(*status).stderr == f"Database: {state}/stoker.db\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
def test_a_database_of_another_user_is_not_opened(tmp_path, plain):
    with served(tmp_path) as stoker:
        stoker.stop()
        file = stoker.state_dir / "stoker.db"
        os.chown(file, 65534, -1)
        problem = refused(plain, "db", "status", "--state-dir", str(stoker.state_dir))
        assert f"{file} belongs to user nobody, not to root: run stoker as its owner (sudo -u nobody …)" in problem
        assert [path.name for path in stoker.state_dir.glob("stoker.db?*")] == []


def test_deleted_stacks_stay_until_they_are_purged(tmp_path):
    with served(tmp_path) as stoker:
        gone, _ = (stoker.create_stack(name, {"heat_template_version": "2018-08-31"}) for name in ("gone", "kept"))
        stoker.heat("DELETE", gone)

        def shown():
            found = stoker.heat("GET", "/stacks?show_deleted=true").body["stacks"]
            return {each["stack_name"]: each["stack_status"] for each in found}

        assert shown() == {"gone": "DELETE_COMPLETE", "kept": "CREATE_COMPLETE"}
        purge = ("db", "purge", "--state-dir", str(stoker.state_dir))
        assert "purged 0 records of deleted stacks" in stoker.run(*purge).stdout
        assert re.search(r"purged [1-9]\d* records of deleted stacks", stoker.run(*purge, "--older-than", "0").stdout)
        assert shown() == {"kept": "CREATE_COMPLETE"}
        assert stoker.heat("GET", gone).status == 404


_SERVE_AND_STOP = """
import os, signal, socket, sys
from stoker.http.hold import Waiters
from stoker.serve import http_server
from stoker.settings import Settings
from stoker.store.notifier import Notifier

http_server.serve(
    None, Settings(), Waiters(Notifier()), socket.socket(), lambda: os.kill(os.getpid(), int(sys.argv[1]))
)
print("stopped")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_server_that_has_just_become_ready(plain, number):
    words = [sys.executable, "-c", _SERVE_AND_STOP, str(int(number))]
    done = subprocess.run(words, env=plain, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("stopped\n", 0), done.stderr
