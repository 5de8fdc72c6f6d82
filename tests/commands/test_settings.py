"""Settings: a flag, the environment, the file, the default, in this order; and what is wrong is said by its name."""

from __future__ import annotations

import socket
from pathlib import Path

import click
import pytest

from stoker import settings
from stoker.addresses import hide_password
from stoker.commands.serve import serve
from stoker.model.errors import Invalid

SECRETS = ["secret_key", "encryption_keys", "metrics_token"]


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "stoker.toml"
        path.write_text(text)
        return path

    return write


def test_flags_precede_the_environment_and_the_environment_the_file(file):
    toml = file('host = "file"\nport = 1\nlog_level = "file"\ntoken_hours = 7\ninsecure_http = true\n')
    environment = {"STOKER_HOST": "environment", "STOKER_PORT": "2", "OTHER": "x"}
    flags = {"host": "flag", "port": None, "log_level": None, "insecure_http": False}
    loaded = settings.load(flags, environment, toml)
    assert loaded.insecure_http is False
    assert (loaded.host, loaded.port, loaded.log_level, loaded.token_hours) == ("flag", 2, "file", 7)
    assert loaded.stack_action_timeout == 3600


def test_settings_have_defaults(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    loaded = settings.load({}, {}, None)
    assert (loaded.host, loaded.port, loaded.public_url) == ("127.0.0.1", 8004, "http://127.0.0.1:8004")
    assert loaded.state_dir == tmp_path / "stoker"
    assert loaded.database_url == f"sqlite:///{tmp_path / 'stoker' / 'stoker.db'}"


@pytest.mark.parametrize(
    "said,meant", [("1", True), ("true", True), ("Yes", True), ("on", True), ("0", False), ("", False)]
)
def test_boolean_settings_accept_several_words(said, meant):
    assert settings.load({}, {"STOKER_INSECURE_HTTP": said}, None).insecure_http is meant


@pytest.mark.parametrize(
    ("name", "said", "message"),
    [
        *(("PORT", said, "PORT") for said in ("http", "", "1.5", "--5", "5-", "²")),
        *(("PORT", said, "port must be from 1 to 65535") for said in ("-1", "0", "65536")),
        ("CLOUDS_YAML", "perhaps", "CLOUDS_YAML"),
        ("PUBLIC_URL", "ftp://x", "public_url"),
        ("PUBLIC_URL", "stoker.example.org", "public_url"),
        ("TOKEN_HOURS", "a day", "TOKEN_HOURS"),
        ("METRICS_TOKEN", "short", "metrics_token must have at least 32 bytes, not 5"),
        ("DEPLOYMENT_POLICY", "stack", "deployment_policy must be STACK or PROJECT, not 'stack'"),
        ("RETENTION_DAYS", "-1", "retention_days must be from 0 to 36500, not -1"),
    ],
)
def test_the_error_of_an_invalid_setting_names_it(name, said, message):
    with pytest.raises(Invalid, match=message):
        settings.load({}, {f"STOKER_{name}": said}, None)


@pytest.mark.parametrize(
    "text,word",
    [
        ("porrt = 1\n", "porrt"),
        ("port = true\n", "port"),
        ("port = 1.0\n", "port"),
        ('port = "x"\n', "port"),
        ("port = [1]\n", "port"),
        ("port = \n", "cannot read"),
        ("insecure_http = 5\n", "insecure_http"),
    ],
)
def test_the_error_of_an_invalid_setting_names_the_file(file, text, word):
    with pytest.raises(Invalid, match=word) as caught:
        settings.load({}, {}, file(text))
    assert "stoker.toml" in caught.value.message


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "stoker.toml"
    path.write_bytes(b"\xff\xfe")
    for each in (path, tmp_path, tmp_path / "absent.toml"):
        with pytest.raises(Invalid, match="cannot read the settings"):
            settings.load({}, {}, each)


@pytest.mark.parametrize(("host", "url"), [("::1", "http://[::1]:8004"), ("h", "http://h:8004")])
def test_the_public_url_must_be_usable_by_clients(host, url):
    assert settings.load({"host": host}, {}, None).public_url == url
    assert settings.load({"host": host, "public_url": "https://s.example.org/"}, {}, None).public_url == (
        "https://s.example.org"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_on_all_addresses_has_a_url_that_other_machines_reach(host):
    """But on a machine that has no way to others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
        except OSError:
            address = "127.0.0.1"
    assert settings.load({"host": host}, {}, None).public_url == f"http://{address}:8004"


def test_the_state_directory_is_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert settings.load({"state_dir": "here"}, {}, None).state_dir == tmp_path / "here"
    assert settings.load({}, {"STOKER_STATE_DIR": "~/there"}, None).state_dir == tmp_path / "home" / "there"


def test_the_default_file_is_optional_and_a_named_one_required(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert settings.config_file({}) is None
    (tmp_path / "stoker").mkdir()
    (tmp_path / "stoker" / "stoker.toml").touch()
    assert settings.config_file({}) == tmp_path / "stoker" / "stoker.toml"
    named = settings.config_file({"STOKER_CONFIG": str(tmp_path / "absent")})
    with pytest.raises(Invalid, match="absent"):
        settings.load({}, {}, named)


SECRET = "0123456789abcdef" * 2


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return path


def test_every_secret_setting_may_be_in_a_file(tmp_path, secret_file, file):
    names = [setting.name for setting in settings.describe_settings() if setting.is_secret]
    assert names == SECRETS
    files = {f"{name}_file": str(secret_file) for name in names}
    toml = file("".join(f'{name} = "{path}"\n' for name, path in files.items()))
    for loaded in (
        settings.load(files, {}, None),
        settings.load({}, {f"STOKER_{name.upper()}": path for name, path in files.items()}, None),
        settings.load({}, {}, toml),
    ):
        assert {getattr(loaded, name) for name in names} == {SECRET}
        assert SECRET not in repr(loaded)


def test_a_secrets_file_precedes_a_value_of_a_later_source(secret_file, file):
    toml = file(f'secret_key = "{"t" * 32}"\nmetrics_token_file = "{secret_file}"\n')
    loaded = settings.load({"secret_key_file": str(secret_file)}, {"STOKER_METRICS_TOKEN": "e" * 32}, toml)
    assert (loaded.secret_key, loaded.metrics_token) == (SECRET, "e" * 32)


def test_a_secret_and_its_file_from_one_source_exclude_one_another(secret_file):
    with pytest.raises(Invalid, match="STOKER_SECRET_KEY and STOKER_SECRET_KEY_FILE exclude one another"):
        settings.load({}, {"STOKER_SECRET_KEY": SECRET, "STOKER_SECRET_KEY_FILE": str(secret_file)}, None)


@pytest.mark.parametrize(
    "content,problem", [(None, "No such file"), (b"", "is empty"), (b"\n", "is empty"), (b"\xff\xfe", "no text")]
)
def test_an_empty_secrets_file_is_named(tmp_path, content, problem):
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Invalid, match=rf"--metrics-token-file: .*{path}.*{problem}"):
        settings.load({"metrics_token_file": str(path)}, {}, None)


@pytest.mark.parametrize(
    ("flags", "remedy"),
    [
        *(({name: SECRET}, f"--{name.replace('_', '-')}-file or STOKER_{name.upper()}$") for name in SECRETS),
        ({"database": "postgresql://stoker:s3cret@db/stoker"}, "use STOKER_DATABASE$"),
        ({"database_direct_url": "postgresql://stoker:s3cret@db/stoker"}, "use STOKER_DATABASE_DIRECT_URL$"),
    ],
)
def test_a_secret_on_the_command_line_is_refused(flags, remedy):
    with pytest.raises(Invalid, match=remedy) as refusal:
        settings.load(flags, {}, None)
    assert not any(value in refusal.value.message for value in flags.values())


def test_the_help_lists_every_setting_in_its_group():
    text = serve.get_help(click.Context(serve))
    assert "\nAddresses and TLS:\n  --host TEXT" in text
    assert "Port to listen on (default: 8004)." in text
    described = settings.describe_settings()
    assert len(described) > 10
    assert all(setting.help.endswith(".") for setting in described)
    groups = {setting.group for setting in described}
    assert [group for group in groups if text.count(f"\n{group}:\n") != 1] == []
    assert [name for name in SECRETS if f"--{name.replace('_', '-')} " in text] == []
    assert [name for name in SECRETS if f"--{name.replace('_', '-')}-file " not in text] == []


def test_a_misspelt_key_is_reported_with_the_likely_setting(file):
    with pytest.raises(Invalid, match=r"stoker.toml: there is no setting 'prot'; did you mean port\?$"):
        settings.load({}, {}, file("prot = 1\n"))
    with pytest.raises(Invalid, match=r"there is no setting 'banana'$"):
        settings.load({}, {}, file("banana = 1\n"))


def test_a_misspelt_variable_is_reported():
    environment = {"STOKER_PRT": "1", "STOKER_TOKEN": "x", "STOKER_PORT": "1", "STOKER_BANANA": "2", "PORT": "3"}
    assert settings.warnings(environment) == [
        "STOKER_BANANA is an unknown setting and is ignored",
        "STOKER_PRT is an unknown setting and is ignored; did you mean STOKER_PORT?",
    ]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@host:5/d", "postgresql://u:******@host:5/d"),
        ("postgresql://u:p@ss@host/d", "postgresql://u:******@host/d"),
        ("https://host:8004/x", "https://host:8004/x"),
        ("sqlite:///a.db", "sqlite:///a.db"),
    ],
)
def test_the_password_of_a_url_is_hidden(url, shown):
    assert hide_password(url) == shown
