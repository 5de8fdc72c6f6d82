"""docs/operations.md, literally: the installation as a service, a backup, and its restore on a new machine."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from support.certificates import Authority

pytestmark = pytest.mark.slow
_PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
_HOST = "stoker.example.org"
#: For the machine's Debian, which has Python's module only.
_SQLITE3 = """#!/usr/bin/python3
import sqlite3, sys
assert sys.argv[2].startswith(".backup ")
sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2].split()[1]))
"""


def blocks(heading: str) -> list[str]:
    """The indented blocks of a section."""
    section = _PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [
        textwrap.dedent(block).strip()
        for block in re.findall(r"(?:^(?: {4}.*)?\n)+", section, re.MULTILINE)
        if block.strip()
    ]


@pytest.fixture
def install(machines, image, tmp_path):
    """Makes a machine and follows the steps 2 to 4 of the installation."""
    authority = Authority(tmp_path / "ca")
    authority.issue(_HOST, with_root=True)
    _, add_user, settings, unit, *_ = blocks("Install as a service")

    def make(name: str):
        machine = machines.make(name, booted=True, image=image)
        machine.run(["sh", "-c", f"echo 127.0.0.1 {_HOST} >> /etc/hosts"])
        machine.put("/usr/local/bin/sqlite3", _SQLITE3, 0o755)
        machine.put("/etc/stoker/chain.pem", authority.chain.read_bytes())
        machine.put("/etc/stoker/key.pem", authority.key.read_bytes())
        machine.run(["sh", "-ec", add_user])
        machine.put("/etc/stoker/stoker.toml", settings)
        machine.put("/etc/systemd/system/stoker.service", unit)
        return machine

    return make


def stoker(machine, command: str) -> str:
    """Run a command with the login of ``stoker env`` once the service answers."""
    read = "import ssl, urllib.request as u; c = ssl.create_default_context(cafile='/etc/stoker/chain.pem')"
    machine.until("python3", "-c", f"{read}; u.urlopen('https://{_HOST}:8004/healthz', context=c)")
    login = "su -s /bin/sh stoker -c 'STOKER_CONFIG=/etc/stoker/stoker.toml /opt/stoker/bin/stoker env'"
    return machine.run(["sh", "-ec", f'login=$({login}); eval "$login"; {command}']).stdout


def test_a_backup_is_restored_on_a_new_machine(install):
    start = "\n".join(line for line in blocks("Install as a service")[4].splitlines() if line.startswith("systemctl"))
    back_up, _, restore = blocks("Back up and restore")
    with install("first") as machine:
        machine.run(["sh", "-ec", start])
        stoker(machine, "stoker project create blue")
        machine.run(["sh", "-ec", back_up])
        backup = {name: machine.run(["base64", f"/backup/{name}"]).stdout for name in _files(machine)}
        machine.run(["sh", "-ec", restore])  # on the same machine
        assert "blue" in stoker(machine, "stoker project list")
    assert set(backup) == {"admin.json", "keys/site.key", "stoker.db"}
    with install("second") as machine:
        for name, content in backup.items():
            machine.run(["sh", "-ec", f"mkdir -p /backup/keys; base64 -d > /backup/{name}"], input=content)
        machine.run(["sh", "-ec", restore])
        assert "blue" in stoker(machine, "stoker project list")
        assert machine.run(["stat", "-c", "%U %a", "/var/lib/stoker/keys/site.key"]).stdout == "stoker 600\n"


def _files(machine) -> list[str]:
    return machine.run(["sh", "-c", "cd /backup && find * -type f"]).stdout.split()
