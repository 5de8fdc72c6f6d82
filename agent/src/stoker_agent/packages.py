"""The package managers of operating systems: apt and dnf."""

from __future__ import annotations

import re
import shutil
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from stoker_agent.hook_contract import Commands, HookError

#: The environment of package managers: no questions, and no restart of services behind the back of the run.
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "NEEDRESTART_SUSPEND": "1"}
#: apt's count of the packages that it changes, before it starts, and its last line for each of them.
_APT_COUNTS = re.compile(rb"(\d+) (?:upgraded|newly installed|reinstalled|downgraded|to remove)")
_APT_DONE = re.compile(rb"(?:Setting up|Removing) (\S+)")
#: dnf's line for each package, with its number and the number of all: of dnf 4, and of dnf 5.
_DNF_DONE = re.compile(
    rb"\s+(?:Installing|Upgrading|Downgrading|Reinstalling|Erasing|Cleanup)\s*:\s(?P<name>\S+)\s+(?P<n>\d+)/(?P<all>\d+)\s*$"
)
_DNF5_DONE = re.compile(
    rb"\[ *(?P<n>\d+)/(?P<all>\d+)\] (?:Installing|Upgrading|Downgrading|Reinstalling|Removing) (?P<name>\S+)"
)


class Apt:
    """Packages of Debian and its relatives. The version of an incomplete installation ends with dpkg's status."""

    _options = ("-y", "-o", "DPkg::Lock::Timeout=600", "-o", "Dpkg::Use-Pty=0", "-o", "Dpkg::Options::=--force-confold")
    install = ("apt-get", *_options, "--no-install-recommends", "--allow-downgrades", "install")
    remove = ("apt-get", *_options, "remove")
    update = ("apt-get", "-q", "update")

    def __init__(self) -> None:
        self._done, self._all = 0, 0

    def progress(self, line: bytes) -> Optional[Tuple[int, int, str]]:
        """Return the packages done, all packages, and the name, if a line of the output tells them."""
        if b" newly installed, " in line:
            self._all = sum(int(count) for count in _APT_COUNTS.findall(line))
        match = _APT_DONE.match(line)
        if match is None:
            return None
        self._done += 1
        return self._done, self._all, match.group(1).decode("utf-8", "replace")

    def installed(self, tools: Commands) -> Dict[str, str]:
        """Return the versions of installed packages by name."""
        _, text = tools.read(["dpkg-query", "-W", "-f", "${db:Status-Status} ${binary:Package} ${Version}\\n"])
        rows = [line.split(" ") for line in text.splitlines()]
        return {
            name.partition(":")[0]: version if status == "installed" else f"{version} {status}"
            for status, name, version in rows
            if status not in ("not-installed", "config-files")
        }

    def candidate(self, tools: Commands, name: str) -> Optional[str]:
        """Return the version that an upgrade would install."""
        _, text = tools.read(["apt-cache", "policy", name], QUIET)
        versions = [line.split()[1] for line in text.splitlines() if line.strip().startswith("Candidate:")]
        return versions[0] if versions and versions[0] != "(none)" else None

    def selector(self, name: str, version: str) -> str:
        """Return the word that selects a version."""
        return f"{name}={version}"

    def matches(self, installed: str, version: str) -> bool:
        """Whether the installed version is the wanted one."""
        return installed == version

    def removable(self, tools: Commands, names: List[str], dependencies: List[str]) -> List[str]:
        """Return the names, and those dependencies that no package needs without them."""
        _, text = tools.read(["apt-get", "-s", "--auto-remove", "remove", *names], QUIET)
        unneeded = {line.split()[1] for line in text.splitlines() if line.startswith("Remv ")}
        return [*names, *(name for name in dependencies if name in unneeded)]


class Dnf:
    """Packages of Fedora and its relatives."""

    install = ("dnf", "-y", "install")
    remove = ("dnf", "-y", "remove")
    update = ("dnf", "-q", "makecache")

    def progress(self, line: bytes) -> Optional[Tuple[int, int, str]]:
        """Return the packages done, all packages, and the name, if a line of the output tells them."""
        match = _DNF_DONE.match(line) or _DNF5_DONE.match(line)
        if match is None:
            return None
        return int(match.group("n")), int(match.group("all")), match.group("name").decode("utf-8", "replace")

    def installed(self, tools: Commands) -> Dict[str, str]:
        """Return the versions of installed packages by name."""
        _, text = tools.read(["rpm", "-qa", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE}\\n"])
        return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)

    def candidate(self, tools: Commands, name: str) -> Optional[str]:
        """Return the version that an upgrade would install."""
        argv = ["dnf", "-q", "repoquery", "--latest-limit", "1", "--queryformat", "%{version}-%{release}", name]
        _, text = tools.read(argv, QUIET)
        return text.split()[0] if text.split() else None

    def selector(self, name: str, version: str) -> str:
        """Return the word that selects a version."""
        return f"{name}-{version}"

    def matches(self, installed: str, version: str) -> bool:
        """Compare the versions; the release after the hyphen may be missing."""
        return version in (installed, installed.rpartition("-")[0])

    def removable(self, tools: Commands, names: List[str], dependencies: List[str]) -> List[str]:
        """Return the names: dnf removes dependencies that no package needs by itself."""
        return names


Manager = Union[Apt, Dnf]


def find_manager() -> Manager:
    """Return the package manager of this machine. Raises HookError, with code 127, if it has none."""
    if shutil.which("apt-get"):
        return Apt()
    if shutil.which("dnf"):
        return Dnf()
    raise HookError("this server has neither apt-get nor dnf", 127)


def is_incomplete(version: str) -> bool:
    """Whether this is the version of a package whose installation did not end."""
    return " " in version


def find_pending(
    manager: Manager,
    tools: Commands,
    wanted: Sequence[Tuple[str, Optional[str]]],
    state: str,
    installed: Mapping[str, str],
) -> Dict[str, Optional[str]]:
    """Return those of the wanted packages, with their versions, that are not in the state yet."""
    if state == "absent":
        return {name: None for name, _ in wanted if name in installed}
    if state == "latest":
        wanted = [(name, version or manager.candidate(tools, name)) for name, version in wanted]
    return {
        name: version
        for name, version in wanted
        if name not in installed
        or (version is not None and not manager.matches(installed[name], version))
        or is_incomplete(installed[name])
    }
