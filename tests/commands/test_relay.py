"""`stoker relay run` and `install`: what they write, and what they refuse before they change anything."""

from __future__ import annotations

import stat

import pytest
from click.testing import CliRunner

from stoker_relay.install_command import install
from stoker_relay.run_command import run

KEY = f"{'0' * 8}-0000-0000-0000-{'0' * 12}.{'a' * 64}"


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    return path


def test_install_writes_the_key_and_the_unit(tmp_path, key_file):
    for name in ("relay.crt", "relay.key"):
        tmp_path.joinpath(name).write_text("PEM")
    tls = ["--tls-cert", str(tmp_path / "relay.crt"), "--tls-key", str(tmp_path / "relay.key")]
    words = ["--centre", "https://stoker.example:8004/a%20b", "--key-file", str(key_file), "--host", "0.0.0.0"]
    for _ in range(2):  # a repetition replaces both
        done = CliRunner().invoke(install, [*words, *tls, "--root", str(tmp_path / "root")])
        assert done.exit_code == 0, done.output
    key = tmp_path / "root/etc/stoker-relay/key"
    assert (key.read_text(), stat.S_IMODE(key.stat().st_mode)) == (f"{KEY}\n", 0o600)
    unit = tmp_path.joinpath("root/etc/systemd/system/stoker-relay.service").read_text()
    [command] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert " relay run --centre https://stoker.example:8004/a%%20b --key-file ${CREDENTIALS_DIRECTORY}/key " in command
    assert command.endswith(" --tls-cert ${CREDENTIALS_DIRECTORY}/tls-cert --tls-key ${CREDENTIALS_DIRECTORY}/tls-key")
    assert f"LoadCredential=tls-key:{tmp_path}/relay.key\n" in unit
    assert KEY not in unit


@pytest.mark.parametrize(
    "words, message",
    [
        (["--centre", "stoker.example"], "--centre 'stoker.example' is not the URL of a Stoker"),
        (["--host", "0.0.0.0"], "--insecure-http"),
        (["--tls-cert", "/nowhere"], "--tls-cert and --tls-key go together"),
        (["--ca-file", "/nowhere"], "cannot read /nowhere (named by --ca-file)"),
        (["--key-file", "/nowhere"], "cannot read /nowhere (named by --key-file)"),
        (["--key-file", "/etc/hostname"], "the key is not one that `stoker relay create` has printed"),
    ],
)
@pytest.mark.parametrize("command", [run, install], ids=["run", "install"])
def test_wrong_options_are_refused(tmp_path, key_file, command, words, message):
    target = tmp_path / "target"
    folder = ["--state-dir", str(target)] if command is run else ["--root", str(target)]
    options = ["--centre", "http://stoker.example:8004", "--key-file", str(key_file), *folder, *words]
    done = CliRunner().invoke(command, options)
    assert done.exit_code == 1
    assert message in done.output
    assert not target.exists()
