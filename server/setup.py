"""Builds the console into a wheel; everything else is in pyproject.toml. A source distribution has the built files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CONSOLE = Path(__file__).resolve().parent.parent / "console" / "build.py"


class Build(build_py):
    """Builds the console before its files are collected. `make` builds that of an editable installation."""

    def run(self) -> None:
        """Without Node.js or the npm registry, the wheel lacks the console."""
        if CONSOLE.exists() and not self.editable_mode:
            subprocess.run([sys.executable, str(CONSOLE)], check=False)
            self.data_files = self._get_data_files()
        super().run()


setup(cmdclass={"build_py": Build})
