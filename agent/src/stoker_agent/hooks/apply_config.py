"""
Hook of the group ``apply-config``: runs os-apply-config, which renders its templates with the machine's metadata.

``HEAT_APPLY_CONFIG_CMD`` replaces the program. The config is not used.
"""

from __future__ import annotations

import os

from stoker_agent.hook_contract import HookRun, Result

TOOLS = ("os-apply-config",)


def apply(run: HookRun) -> Result:
    """Run os-apply-config."""
    return Result(run.call([os.environ.get("HEAT_APPLY_CONFIG_CMD", "os-apply-config")]))
