"""Projects, users, passwords and credentials on the command line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def command(site, stoker, use_admin):
    """The line of a ``stoker`` command that sets a password of the user ann, as a process of its own."""
    use_admin()
    stoker("user", "create", "ann", "--project", "default", "--password", "horse staple")
    yield [sys.executable, "-m", "stoker_client.cli.main", "user", "password", "ann"]
    stoker("user", "delete", "--yes", "ann")


def can_log_in(site, password):
    return site.stoker.login(OS_USERNAME="ann", OS_PASSWORD=password).status == 201


def test_a_password_is_read_from_a_pipe_or_a_file(site, stoker, command, nowhere):
    def set_password(text: str, *words: str) -> tuple[int, str]:
        done = subprocess.run([*command, *words], input=text, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    new, newer = "pass word of a pipe", "password of a file"
    (nowhere / "password").write_text(f"{newer}\n")
    for text, words, password in ((f"{new}\n", (), new), ("", ("--password-file", "password"), newer)):
        assert set_password(text, *words) == (0, "")
        assert can_log_in(site, password)
    message = "stoker: the password is empty: write it to standard input, or use --password-file\n"
    assert set_password("") == (2, message)
    both = stoker(*command[3:], "--password", "x", "--password-file", "y")
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_a_password_is_read_twice_from_a_terminal(site, command):
    master, slave = os.openpty()
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True) as process:
        os.close(slave)
        screen = b""
        for prompt in (b"Password: ", b"Repeat for confirmation: "):
            while prompt not in screen:
                screen += os.read(master, 4096)
            os.write(master, b"password of a terminal\n")
        assert process.wait(60) == 0
    screen += os.read(master, 4096)
    os.close(master)
    assert b"Warning" not in screen
    assert b"password of a" not in screen
    assert can_log_in(site, "password of a terminal")


def test_projects_users_and_credentials_are_managed(site, stoker, use_admin):
    use_admin()
    stoker("project", "create", "team", "--description", "of a test")
    stoker("user", "create", "ann", "--project", "team", "--password", "horse staple")

    def has_only(role: str) -> bool:
        expected = [{"project": "team", "system": None, "role": role}]
        return stoker("user", "roles", "ann", "-o", "json").data == expected

    login = {"OS_USERNAME": "ann", "OS_PASSWORD": "horse staple", "OS_PROJECT_NAME": "team"}
    assert has_only("member")
    assert site.stoker.login(**login).status == 201
    stoker("user", "grant", "ann", "--project", "team", "--role", "reader")
    stoker("user", "revoke", "ann", "--project", "team", "--role", "member")
    assert has_only("reader")
    stoker("user", "password", "ann", "--password", "another horse staple")
    assert site.stoker.login(**login).status == 401
    assert stoker("credential", "create", "program", "--role", "reader", "-o", "json").data["secret"]
    assert stoker("credential", "list", "-o", "name").out == "program\n"
    assert stoker("credential", "delete", "--yes", "program").code == 0
    absent = stoker("user", "delete", "--yes", "nobody")
    assert (absent.code, absent.err) == (4, "stoker: there is no user 'nobody'; `stoker user list` lists them\n")
    assert stoker("user", "delete", "--yes", "ann").code == 0
    assert stoker("project", "delete", "--yes", "team").code == 0
    assert "team" not in stoker("project", "list", "-o", "name").out.split()
