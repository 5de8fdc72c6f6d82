from __future__ import annotations

from pathlib import Path

import pytest

from support.tools import ANSIBLE


@pytest.fixture(scope="session")
def ansible_playbook() -> Path:
    """The program of the installed ansible-core."""
    return ANSIBLE.require() / "bin" / "ansible-playbook"
