"""
Steps of a config: packages, files, services and commands, each of which changes a server only if that is necessary.

The agent's module ``stoker_agent.steps`` has the steps. A config that uses this library is of the group ``python``:

    def apply(steps):
        steps.package("nginx")
        changed = steps.file("/etc/nginx/conf.d/site.conf", f"server {{ listen {steps.inputs['port']}; }}\\n")
        steps.service("nginx", reload=changed)
        return {"url": f"http://{steps.hostname}/"}
"""

# What the config uses, too.
import grp
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import time
from pathlib import Path

try:
    from stoker_agent import files
    from stoker_agent.steps import Failure, fetch, read, run, run_steps, show_unit
except ImportError:
    raise SystemExit("this config needs a newer agent: `stoker server upgrade`") from None

#: The declarations of the entry's inputs, in JSON. The entry's own follow this library.
SCHEMA = "[]"


def main(inputs):
    """Call the entry's function ``apply`` with the steps, or revert its changes if the deployment ends."""
    return run_steps(globals()["apply"], inputs, json.loads(SCHEMA))


check = preview = undo = main
