"""One Stoker for all real clients: each test uses names of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from support.server import Served, served

Openstack = Callable[..., Any]


@pytest.fixture(scope="session")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("interop"), "--local-servers", "--tempurl-sha1") as running:
        yield running


@pytest.fixture(scope="session")
def session(stoker) -> Session:
    said = stoker.environment
    auth = v3.Password(
        auth_url=said["OS_AUTH_URL"],
        username=said["OS_USERNAME"],
        password=said["OS_PASSWORD"],
        project_name=said["OS_PROJECT_NAME"],
        user_domain_name="Default",
        project_domain_name="Default",
    )
    return Session(auth=auth)


@pytest.fixture(scope="session")
def openstack(stoker) -> Openstack:
    """The real `openstack` command; what it prints, decoded where ``-f json`` asks for that."""

    def run(*words: str, fails: bool = False) -> Any:
        command = [str(Path(sys.executable).with_name("openstack")), *words]
        plain = {**stoker.environment, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(command, env=plain, capture_output=True, text=True, timeout=120, check=False)
        if fails:
            assert done.returncode != 0, done.stdout
            return done.stderr
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return yaml.safe_load(done.stdout) if "json" in words else done.stdout

    return run
