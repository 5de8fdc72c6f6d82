"""
Hook of the group ``python``: calls the function ``main`` of a Python module with the inputs.

The config is the module's source. ``main`` receives the inputs as a dict and returns the outputs as a dict, or None.
An exception fails the run. The module runs with the Python of the agent, in a process of its own. Example:

    def main(inputs):
        return {"url": f"http://{inputs['host']}:{inputs['port']}/"}

The module can import the agent's ``stoker_agent.files``, whose writes no other user of the machine can redirect.

The module may also define ``check``, ``preview`` and ``undo``, which are called in place of ``main`` in these modes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import stoker_agent
from stoker_agent.hook_contract import HookError, HookRun, Result

#: Runs the module in a fresh interpreter, so that its imports and threads do not meet the hook's.
_CALL = """
import json, runpy, sys
sys.path.append(sys.argv[5])
module, name = runpy.run_path(sys.argv[1], run_name="stoker_config"), sys.argv[4]
if name not in module:
    if name == "main":
        sys.exit("the config of group python must define the function main(inputs)")
    print(f"the config does not define the function {name}(inputs)", file=sys.stderr)
    sys.exit(95)
with open(sys.argv[2]) as file:
    inputs = json.load(file)
outputs = module[name](inputs)
with open(sys.argv[3], "w") as file:
    json.dump({} if outputs is None else outputs, file)
"""


def apply(run: HookRun) -> Result:
    """Call ``main`` and return its dict as outputs. The key ``deploy_changed`` tells whether the machine changed."""
    return _call(run, "main")


def check(run: HookRun) -> Result:
    """Call the module's function for the mode: ``check``, ``preview`` or ``undo``."""
    return _call(run, run.mode)


preview = undo = check


def _call(run: HookRun, function: str) -> Result:
    source = run.write("config.py", run.text())
    target = run.write("outputs.json", "{}")
    with run.temporary("inputs.json", json.dumps(run.inputs)) as inputs:
        files = (str(source), str(inputs), str(target))
        argv = [sys.executable, "-u", "-c", _CALL, *files, function, str(Path(stoker_agent.__file__).parents[1])]
        code = run.call(argv, {**run.environment(), **run.memory.to_environment()})
    if code:
        return Result(code)
    outputs = json.loads(target.read_text())
    if not isinstance(outputs, dict):
        raise HookError(f"main must return a dict of outputs, not {type(outputs).__name__}")
    changed = outputs.pop("deploy_changed", None)
    return Result(0, outputs, changed=None if changed is None else bool(changed))
