"""The agent as one file."""

from __future__ import annotations

import shutil
import tempfile
import zipapp
from pathlib import Path


def build(target: Path) -> None:
    """A compressed zipapp of this package, for any Python from 3.8 on."""
    package = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / package.name
        # With times of now: an archive knows none before 1980, which reproducible builds give to files.
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(str(package), str(copy), ignore=ignored, copy_function=shutil.copy)
        zipapp.create_archive(
            folder,
            str(target),
            interpreter="/usr/bin/env python3",
            main="stoker_agent.__main__:exit_with",
            compressed=True,
        )
