"""One Stoker for all real clients: each test uses names of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from openstack.connection import Connection

from support import forked
from support.server import LOCAL_SERVERS, Served, served

Openstack = Callable[..., Any]


@pytest.fixture(scope="session")
def stoker(tmp_path_factory) -> Iterator[Served]:
    flags = (LOCAL_SERVERS, "--webhook-networks", "127.0.0.0/8")
    with served(tmp_path_factory.mktemp("interop"), *flags) as running:
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
def cloud(session) -> Iterator[Connection]:
    """openstacksdk, logged in."""
    with Connection(session=session, region_name="RegionOne") as connection:
        yield connection


@pytest.fixture(scope="session")
def openstack(stoker) -> Openstack:
    """The real `openstack` command; what it prints, decoded where ``-f json`` asks for that."""

    def run(*words: str, fails: bool = False) -> Any:
        done = forked.run(list(words), stoker.environment, 120, "openstack")
        if fails:
            assert done.returncode != 0, done.stdout
            return done.stderr
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return yaml.safe_load(done.stdout) if "json" in words else done.stdout

    return run
