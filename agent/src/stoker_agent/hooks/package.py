"""
Hook of the group ``package``: installs, upgrades or removes packages of the operating system (apt or dnf).

Settings, in the config's map or as inputs:

- ``name`` or ``packages``: a name, or a list of names; ``NAME=VERSION`` selects a version, also an older one;
- ``state``: ``present`` (default), ``latest`` or ``absent``;
- ``update_cache``: whether to refresh the package lists first (default false).

With apt, the hook waits up to ten minutes while another program installs packages. Undo removes the packages that this
deployment installed, with those of their dependencies that no other package needs. The progress is the number of
packages that the package manager has finished, of all that it changes.
"""

from __future__ import annotations

import shutil

from stoker_agent.hook_contract import HookError, HookRun, as_flag, as_list, choose_state
from stoker_agent.packages import QUIET, Apt, find_manager
from stoker_agent.steps import Steps, by_steps

TOOLS = ("apt-get", "dnf")
NEEDS_ROOT = True
_STATES = ("present", "latest", "absent")


@by_steps
def apply(run: HookRun, steps: Steps) -> None:
    """Bring the packages into the state."""
    settings = run.settings()
    names = as_list(settings.get("packages") or settings.get("name") or [], "packages")
    if not names:
        raise HookError("package needs the setting 'name' or 'packages', in its config or as an input")
    for name in names:
        if name.startswith("-"):
            raise HookError(f"{name!r} is not the name of a package")
    state = choose_state(settings, _STATES)
    if as_flag(settings.get("update_cache", False), "update_cache") and not steps.is_dry:
        code = run.call(find_manager().update, QUIET)
        if code:
            raise HookError("the package lists could not be refreshed", code)
    has_changed = steps.package(*names, state=state, refresh=False)
    if has_changed and run.mode == "preview" and shutil.which("apt-get"):
        verb = Apt.remove if state == "absent" else Apt.install
        code = run.call([verb[0], "-s", *verb[1:], *names], QUIET)
        if code:
            raise HookError("apt-get cannot change the packages", code)


check = preview = undo = apply
