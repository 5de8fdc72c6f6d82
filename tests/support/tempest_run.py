"""
`make tempest`: runs heat-tempest-plugin against Stoker in Heat's place, or against a Heat, on a real OpenStack.

    STOKER_TEST_OPENSTACK=clouds.yaml make tempest                # Stoker, started for the run
    STOKER_TEST_OPENSTACK=clouds.yaml make tempest HEAT=1         # the Heat of the catalog, for comparison

The file has an entry ``admin`` or ``peer`` for an administrator, and ``demo`` or ``peer-demo`` for the project of the
tests. What the run leaves at the cloud is deleted at its end, and that of killed runs at the beginning of the next one.
Prints the result of each test, and compares the tests that a Heat passes with ``tests/data/tempest_passed.txt``.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from stoker import settings as stoker_settings
from support import tempest_cleanup
from support.installations import from_pypi, plain_environment
from support.keystone import Keystone, flags
from support.server import served
from support.tempest_cleanup import Cleaner

TEMPEST = from_pypi("heat-tempest-plugin==3.0.0", "stestr>=4")
#: The tests that a real Heat passes on the same cloud.
PASSED = Path(__file__).parents[1] / "data" / "tempest_passed.txt"
#: The type of Stoker's service in the catalog, beside that of a Heat there.
SERVICE = "stoker-orchestration"
_RESULT = re.compile(
    r"^\{\d+\} (?:heat_tempest_plugin\.tests\.)?(\S+)(?: \[[^\]]*\])? \.\.\. (ok|FAILED|SKIPPED)", re.M
)
_USER, _DOMAIN_ADMIN, _DOMAIN, _PASSWORD = "stoker-tempest", "stoker-tempest-domain", "stoker-tempest", "tempest"
_CONFIG = """\
[DEFAULT]
log_file = tempest.log
use_stderr = false
[auth]
use_dynamic_credentials = false
admin_username = {admin[username]}
admin_password = {admin[password]}
admin_project_name = {admin[project_name]}
admin_domain_name = Default
[identity]
auth_version = v3
uri_v3 = {admin[auth_url]}
region = RegionOne
[service_available]
heat_plugin = true
nova = true
neutron = true
cinder = true
glance = true
swift = false
[heat_plugin]
catalog_type = {service}
username = {member[username]}
password = {member[password]}
project_name = {member[project_name]}
admin_username = {admin[username]}
admin_password = {admin[password]}
admin_project_name = {admin[project_name]}
auth_url = {admin[auth_url]}
auth_version = 3
user_domain_name = Default
project_domain_name = Default
user_domain_id = default
project_domain_id = default
region = RegionOne
instance_type = m1.small
minimal_instance_type = m1.tiny
image_ref = tiny
minimal_image_ref = tiny
fixed_network_name = private
network_for_ssh = private
fixed_subnet_name = private
floating_network_name = public
build_interval = 1
build_timeout = 300
connectivity_timeout = 5
ssh_timeout = 5
"""


@dataclass
class CloudKeystone(Keystone):
    """The Keystone of the cloud."""

    login: Mapping[str, str] | None = None

    @property
    def url(self) -> str:
        assert self.login is not None
        return self.login["auth_url"]

    @cached_property
    def admin(self) -> Session:
        return Session(auth=v3.Password(**self.login))


def prepare(keystone: Keystone, url: str) -> None:
    """Add what Stoker needs at Keystone, and its endpoint. Repeated runs change only the endpoint."""
    if keystone.named("roles", "heat_stack_user") is None:
        keystone.request("POST", "/roles", {"role": {"name": "heat_stack_user"}})
    project = keystone.named("projects", "service")["id"]
    if keystone.named("users", _USER) is None:
        keystone.add_user(_USER, _PASSWORD, project, "admin")
    if keystone.named("domains", _DOMAIN) is None:
        keystone.add_domain(_DOMAIN, _DOMAIN_ADMIN, _PASSWORD)
    for service in keystone.request("GET", f"/services?type={SERVICE}")["services"]:
        keystone.request("DELETE", f"/services/{service['id']}")
    keystone.add_service(SERVICE, url)


def run_tests(folder: Path, config: str, pattern: str) -> Iterator[tuple[str, str]]:
    """Run the tests and yield their names and results, each as soon as its test has ended."""
    release = TEMPEST.require()
    (packages,) = release.glob("lib/python3*/site-packages")
    folder.joinpath("tempest.conf").write_text(config)
    suite = f"test_path={packages}/heat_tempest_plugin/tests\ntop_dir={packages}\ngroup_regex=([^\\.]*\\.)*\n"
    folder.joinpath(".stestr.conf").write_text(f"[DEFAULT]\n{suite}")
    environment = {**plain_environment(), "TEMPEST_CONFIG_DIR": str(folder), "TEMPEST_CONFIG": "tempest.conf"}
    stestr = str(release / "bin" / "stestr")
    subprocess.run([stestr, "init"], cwd=folder, env=environment, check=True)
    command = [stestr, "run", "--serial", pattern]
    with (
        folder.joinpath("output").open("w") as copy,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process,
        ExitStack() as cleanup,
    ):
        cleanup.callback(end_group, process)
        assert process.stdout is not None
        for line in process.stdout:
            copy.write(line)
            copy.flush()
            if match := _RESULT.match(line):
                yield match[1], match[2]


def end_group(process: subprocess.Popen[str]) -> None:
    """End the tests of an interrupted run."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def stoker_in_place_of_heat(folder: Path, admin: Mapping[str, str], member: Mapping[str, str]) -> Iterator[None]:
    """Start a Stoker that Keystone's catalog names; at the end, and at a signal, delete what it left at the cloud."""
    keystone = CloudKeystone(Path(), Path(), 0, login=admin)
    prepare(keystone, "http://127.0.0.1:1/v1/%(tenant_id)s")
    options = flags(keystone, folder, login=(_USER, _PASSWORD), domain=(_DOMAIN, _DOMAIN_ADMIN, _PASSWORD))
    loaded = stoker_settings.load({name[2:].replace("-", "_"): value for name, value in _pairs(options)}, {}, None)
    cleaner = Cleaner(keystone, {"admin": admin, "demo": member}, loaded, _DOMAIN, _DOMAIN_ADMIN)
    report("left by an earlier run", cleaner.clean(folder / "cleanup"))
    secret = folder / "site-secret"
    secret.write_text(tempest_cleanup.SITE_SECRET)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with served(folder, *options, "--secret-key-file", str(secret), is_forked=False) as stoker:
            prepare(keystone, f"{stoker.url}/v1/%(tenant_id)s")
            try:
                yield
            finally:
                cleaner.delete_stacks(stoker.url)
    finally:
        for service in keystone.request("GET", f"/services?type={SERVICE}")["services"]:
            keystone.request("DELETE", f"/services/{service['id']}")
        report("left by this run", cleaner.clean(folder / "cleanup"))


def report(what: str, left: list[str]) -> None:
    """Print what is left at the cloud."""
    print(f"{what}: {len(left)} objects", *left, sep="\n  ", flush=True)


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    yield from zip(words[::2], words[1::2], strict=True)


def compare(results: Mapping[str, str]) -> list[str]:
    """Return the tests that a real Heat passes and this run does not."""
    passed = PASSED.read_text().split()
    return [name for name in passed if name in results and results[name] != "ok"]


def main() -> int:
    """Run the tests. Returns 1 if a test does not pass that a real Heat passes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heat", action="store_true", help="run against the Heat of the catalog, and store the list")
    parser.add_argument("--folder", type=Path, help="a folder for logs; default: a temporary one")
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression of names")
    options = parser.parse_args()
    named = os.environ.get("STOKER_TEST_OPENSTACK")
    if not named:
        print("make tempest: STOKER_TEST_OPENSTACK names no clouds.yaml of a real OpenStack", file=sys.stderr)
        return 2
    TEMPEST.install()
    entries: dict[str, Any] = yaml.safe_load(Path(named).read_text())["clouds"]
    admin, member = (
        next(entries[name]["auth"] for name in names if name in entries)
        for names in (("admin", "peer"), ("demo", "peer-demo"))
    )
    results: dict[str, str] = {}
    with ExitStack() as cleanup:
        folder = options.folder or Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        service = "orchestration"
        if not options.heat:
            service = SERVICE
            cleanup.enter_context(stoker_in_place_of_heat(folder, admin, member))
        config = _CONFIG.format(admin=admin, member=member, service=service)
        for name, result in run_tests(folder, config, options.pattern):
            print(f"{result:8} {name}", flush=True)
            results[name] = result
    if options.heat and not options.pattern:
        PASSED.write_text("".join(f"{name}\n" for name, result in sorted(results.items()) if result == "ok"))
    missing = compare(results)
    counts = {result: list(results.values()).count(result) for result in ("ok", "FAILED", "SKIPPED")}
    print(counts, f"of those that Heat passes, {len(missing)} do not pass:", *missing, sep="\n  ")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
