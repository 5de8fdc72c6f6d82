"""
Releases of other services for tests, installed once into a cache by release and Python version.

`make peers` installs all of them. A test run installs the missing ones after collection, outside of the tests' time
limits. Fixtures only use existing installations.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.databases import missing

#: The variable for another cache folder.
VARIABLE = "STOKER_TEST_CACHE"


def cache_folder() -> Path:
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stoker-tests"


#: Computed on import, because some tests change HOME.
_CACHE = cache_folder()


class InstallationError(Exception):
    """The release cannot be downloaded or built."""


@dataclass(frozen=True)
class Installation:
    """An installed release. ``build`` fills a folder, which counts as installed after ``build`` has returned."""

    release: str
    build: Callable[[Path], None]
    is_needed: Callable[[], bool] = field(default=lambda: True)

    @property
    def folder(self) -> Path:
        version = f"py{sys.version_info.major}.{sys.version_info.minor}"
        return _CACHE / f"{self.release.replace('==', '-')}-{version}"

    @property
    def is_installed(self) -> bool:
        return self.folder.joinpath("complete").exists()

    def install(self) -> None:
        """Install the release. Raises InstallationError. One process builds while the others wait."""
        if self.is_installed:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.folder.joinpath("lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.is_installed:
                return
            print(f"installing {self.release} into {self.folder}", file=sys.stderr, flush=True)
            content = self.folder / "content"
            shutil.rmtree(content, ignore_errors=True)  # remains of an interrupted build
            content.mkdir()
            self.build(content)
            self.folder.joinpath("complete").touch()

    def require(self) -> Path:
        """Return the folder that ``build`` filled. If the release is not installed, skip the test, or fail it in CI."""
        if not self.is_installed:
            missing(f"{self.release} is not installed: run `make peers`")
        return self.folder / "content"


def from_pypi(*packages: str, is_needed: Callable[[], bool] = lambda: True) -> Installation:
    """Return an installation of a virtual environment with these packages. The first one names the release."""
    return Installation(packages[0], lambda folder: make_environment(folder, packages), is_needed)


def make_environment(folder: Path, packages: Sequence[str]) -> None:
    run(sys.executable, "-m", "venv", str(folder))
    run(str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)


def run(*command: str) -> None:
    """Run a command. Raises InstallationError with the end of its output."""
    done = subprocess.run(command, env=plain_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallationError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-1000:]}")


def plain_environment() -> dict[str, str]:
    """Return the environment without variables of the developer's cloud and of this interpreter."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON", "STOKER_"))}


def install_all(installations: Iterable[Installation]) -> bool:
    """Install the releases; return whether all are there. After a printed failure, ``require`` skips or fails tests."""
    succeeded = True
    for installation in installations:
        try:
            if installation.is_needed():
                installation.install()
        except InstallationError as error:
            succeeded = False
            print(f"cannot install {installation.release}: {error}", file=sys.stderr, flush=True)
    return succeeded
