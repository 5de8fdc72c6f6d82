"""Settings: a flag, the environment, the file, the default, in this order; and what is wrong is said by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker import settings
from stoker.model.errors import Invalid


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "stoker.toml"
        path.write_text(text)
        return path

    return write


def test_each_source_goes_before_the_next(file):
    toml = file('host = "file"\nport = 1\nlog_level = "file"\ntoken_hours = 7\n')
    environment = {"STOKER_HOST": "environment", "STOKER_PORT": "2", "OTHER": "x"}
    loaded = settings.load({"host": "flag", "port": None, "log_level": None}, environment, toml)
    assert (loaded.host, loaded.port, loaded.log_level, loaded.token_hours) == ("flag", 2, "file", 7)
    assert loaded.stack_action_timeout == 3600


def test_without_any_source_there_are_defaults(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    loaded = settings.load({}, {}, None)
    assert (loaded.host, loaded.port, loaded.public_url) == ("127.0.0.1", 8004, "http://127.0.0.1:8004")
    assert loaded.state_dir == tmp_path / "stoker"
    assert loaded.database_url == f"sqlite:///{tmp_path / 'stoker' / 'stoker.db'}"


@pytest.mark.parametrize(
    "said,meant", [("1", True), ("true", True), ("Yes", True), ("on", True), ("0", False), ("", False)]
)
def test_words_for_yes_and_no(said, meant):
    assert settings.load({}, {"STOKER_LOCAL_SERVERS": said}, None).local_servers is meant


def test_a_flag_may_say_no_where_the_file_says_yes(file):
    assert settings.load({"local_servers": False}, {}, file("local_servers = true\n")).local_servers is False


@pytest.mark.parametrize(
    "name,said",
    [
        ("PORT", "http"),
        ("PORT", ""),
        ("PORT", "1.5"),
        ("PORT", "--5"),
        ("PORT", "5-"),
        ("PORT", "²"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("CLOUDS_YAML", "perhaps"),
        ("PUBLIC_URL", "ftp://x"),
        ("PUBLIC_URL", "stoker.example.org"),
        ("TOKEN_HOURS", "a day"),
    ],
)
def test_what_is_wrong_is_said_with_its_name(name, said):
    with pytest.raises(Invalid, match=rf"(?i){name}"):
        settings.load({}, {f"STOKER_{name}": said}, None)


def test_a_wrong_flag_is_named_as_a_flag():
    with pytest.raises(Invalid, match="--token-hours"):
        settings.load({"token_hours": "many"}, {}, None)


@pytest.mark.parametrize(
    "text,word",
    [
        ("porrt = 1\n", "porrt"),
        ("port = true\n", "port"),
        ("port = 1.0\n", "port"),
        ('port = "x"\n', "port"),
        ("port = [1]\n", "port"),
        ("port = \n", "cannot read"),
        ("local_servers = 5\n", "local_servers"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_the_files_name(file, text, word):
    with pytest.raises(Invalid, match=word) as caught:
        settings.load({}, {}, file(text))
    assert "stoker.toml" in caught.value.message


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "stoker.toml"
    path.write_bytes(b"\xff\xfe")
    for each in (path, tmp_path, tmp_path / "absent.toml"):
        with pytest.raises(Invalid, match="cannot read the settings"):
            settings.load({}, {}, each)


@pytest.mark.parametrize(
    "host,url",
    [
        ("0.0.0.0", "http://127.0.0.1:8004"),
        ("::", "http://127.0.0.1:8004"),
        ("::1", "http://[::1]:8004"),
        ("h", "http://h:8004"),
    ],
)
def test_the_public_url_is_one_that_clients_can_use(host, url):
    assert settings.load({"host": host}, {}, None).public_url == url
    assert settings.load({"host": host, "public_url": "https://s.example.org/"}, {}, None).public_url == (
        "https://s.example.org"
    )


def test_the_state_directory_is_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert settings.load({"state_dir": "here"}, {}, None).state_dir == tmp_path / "here"
    assert settings.load({}, {"STOKER_STATE_DIR": "~/there"}, None).state_dir == tmp_path / "home" / "there"


def test_the_default_file_is_read_when_it_is_there_and_a_named_one_must_be(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert settings.config_file({}) is None
    (tmp_path / "stoker").mkdir()
    (tmp_path / "stoker" / "stoker.toml").touch()
    assert settings.config_file({}) == tmp_path / "stoker" / "stoker.toml"
    named = settings.config_file({"STOKER_CONFIG": str(tmp_path / "absent")})
    with pytest.raises(Invalid, match="absent"):
        settings.load({}, {}, named)


def test_the_sites_policy_is_a_word():
    assert settings.load({"deployment_policy": "STACK"}, {}, None).deployment_policy == "STACK"
    with pytest.raises(Invalid, match="deployment_policy must be STACK or PROJECT, not 'stack'"):
        settings.load({}, {"STOKER_DEPLOYMENT_POLICY": "stack"}, None)


def test_every_setting_says_what_it_is_for():
    described = settings.described()
    assert len(described) > 10
    assert all(help.endswith(".") for _, _, _, help in described)
