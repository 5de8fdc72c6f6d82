"""Benchmarks: `python -m bench` measures Stoker; `--heat` also measures a real Heat for comparison."""

import sys
from pathlib import Path

#: What starts services for tests starts them for benchmarks.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
