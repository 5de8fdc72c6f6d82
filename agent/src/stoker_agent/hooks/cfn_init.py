"""
Hook of the group ``cfn-init``: passes an ``AWS::CloudFormation::Init`` map to the program cfn-init.

``HEAT_CFN_INIT_CMD`` replaces the program, ``HEAT_CFN_INIT_LAST_METADATA_DIR`` the directory of its metadata.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from stoker_agent.hook_contract import HookRun, Result, write_file

TOOLS = ("cfn-init",)


def apply(run: HookRun) -> Result:
    """Write the metadata and run cfn-init."""
    folder = Path(os.environ.get("HEAT_CFN_INIT_LAST_METADATA_DIR", "/var/cache/heat-cfntools"))
    metadata = {"AWS::CloudFormation::Init": run.mapping() if run.config else {}}
    write_file(folder / "last_metadata", json.dumps(metadata), 0o700)
    return Result(run.call([os.environ.get("HEAT_CFN_INIT_CMD", "cfn-init")], run.environment()))
