"""`make peers`: installs the releases of other services before the tests that run them."""

from __future__ import annotations

import os
import sys

from support.installations import Installation, install_all
from support.keystone import KEYSTONE
from support.machine_bases import AUTOMATION, CATALOG, CLOUD, CONTAINERS, DEBIAN, RPM, SUDO
from support.service_processes import OLD_ZAQAR, REDIS, SWIFT, ZAQAR
from support.tools import ANSIBLE, CFN_TOOLS, IMAGE_BUILDER, SALT
from support.upstream import HEAT_AGENTS

#: By the name of the fixture in ``conftest.py`` that uses the installation.
INSTALLATIONS: dict[str, Installation] = {
    "ansible_playbook": ANSIBLE,
    "automation_base": AUTOMATION.top,
    "catalog_base": CATALOG.top,
    "cfn_tools": CFN_TOOLS,
    "cloud_base": CLOUD.top,
    "container_base": CONTAINERS.top,
    "heat_agents": HEAT_AGENTS,
    "image_builder": IMAGE_BUILDER,
    "machines": DEBIAN.top,
    "redis_program": REDIS,
    "rpm_base": RPM.top,
    "salt_call": SALT,
    "start_keystone": KEYSTONE,
    "start_old_zaqar": OLD_ZAQAR,
    "start_swift": SWIFT,
    "start_zaqar": ZAQAR,
    "sudo_base": SUDO.top,
}


def main() -> int:
    """Install all packages. Outside of CI, failures do not fail the command, because the tests are then skipped."""
    return int(not install_all(INSTALLATIONS.values()) and bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main())
