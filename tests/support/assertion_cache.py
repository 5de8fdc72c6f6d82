"""
Shares the rewriting of assertions among the test processes of one run.

pytest rewrites each module when it is imported, and stores the result beside the source. All processes import all
modules in the same order at the same time, so in a clean checkout each of them would rewrite all modules. Instead, each
rewrites a share of the modules first.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def rewrite_share(config: pytest.Config, paths: Iterable[Path]) -> None:
    """Rewrite the modules among ``paths`` that are due to this process of pytest-xdist; without it, none."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    for path in sorted(paths)[number :: worker["workercount"]]:
        folder = rewrite.get_cache_dir(path)
        compiled = folder / (path.stem + rewrite.PYC_TAIL)
        if rewrite._read_pyc(path, compiled) is None and rewrite.try_makedirs(folder):
            digest, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, compiled)
