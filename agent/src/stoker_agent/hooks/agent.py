"""
Hook of the group ``agent``: replaces the program of this server's agent by the one that Stoker serves.

The run downloads the program and verifies its SHA-256, lets it test itself, keeps the old file, and replaces it. The
agent then executes the new program, which starts the run again; there, the run succeeds. If the new program has no
contact with Stoker within ``contact_seconds`` (a setting or an input, default 120), a process of the old program
restores the old file, and the run fails in the old program, with the reason.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Optional

from stoker_agent import __version__, proxy
from stoker_agent.backoff import Backoff
from stoker_agent.config import Config, Paths, Unusable, read
from stoker_agent.files import write
from stoker_agent.hook_contract import RESTART, Change, HookError, HookRun, Result, as_seconds
from stoker_agent.self_update import (
    RESTARTING,
    ROLLED_BACK,
    UpdateRecord,
    digest,
    find_program,
    read_record,
    root_words,
    store_record,
)
from stoker_agent.web import Channel, Limit, Unreachable

#: The agent starts an interrupted run of this hook again, and runs nothing beside it.
RESUMES = ALONE = True
_PATH = "/agent/v1/stoker-agent.pyz"
_PROGRAM = Limit("the program", 16 * 1024 * 1024)
_CONTACT_SECONDS, _LONGEST_SECONDS = 120.0, 3600.0
_TRIES = 5
_RETRY_SECONDS = 5.0


def apply(run: HookRun) -> Result:
    """Replace the program and let the agent execute it; in the new program, report success."""
    paths = Paths.of_state(run.state.parents[1])
    seconds = as_seconds(run.settings().get("contact_seconds", _CONTACT_SECONDS), "contact_seconds", _LONGEST_SECONDS)
    program, config = _check_program(), _read_enrollment(paths)
    record, present = read_record(paths.state), digest(program.read_bytes())
    if record is not None and record.id == run.id:
        if present == record.sha256:
            return Result(changed=True, changes=[Change("stoker-agent", diff=f"version {__version__}")])
        if record.state == ROLLED_BACK:
            raise HookError(record.reason)
    run.report_progress(None, "downloads the program")
    content = _download(config, present)
    if content is None:
        return Result(changed=False)
    fresh, previous = program.with_name(program.name + ".new"), program.with_name(program.name + ".old")
    write(fresh, content, 0o755)
    run.report_progress(None, "tests the program")
    if run.call([sys.executable, str(fresh), "self-test", "--online", *root_words(paths)]):
        raise HookError("the new program fails its self-test")
    previous.unlink(missing_ok=True)
    os.link(str(program), str(previous))
    started_at = time.time()
    record = UpdateRecord(run.id, RESTARTING, digest(content), str(program), str(previous), seconds, started_at)
    store_record(paths.state, record)
    fresh.replace(program)
    return Result(values={RESTART: True})


def check(run: HookRun) -> Result:
    """Return whether Stoker serves another program than this one."""
    config = _read_enrollment(Paths.of_state(run.state.parents[1]))
    is_outdated = _download(config, digest(_check_program().read_bytes())) is not None
    return Result.of([Change("stoker-agent", diff="Stoker serves another program")] if is_outdated else [])


preview = check


def _check_program() -> Path:
    """Return the program's file. Raises HookError if this agent cannot replace it."""
    program = find_program()
    if program is None:
        raise HookError("this agent does not run from a program file, so it cannot replace itself")
    if not os.access(str(program.parent), os.W_OK):
        raise HookError(
            f"this agent runs as user {os.geteuid()} and may not replace {program}:"
            " on the machine, run the install line of a new enrollment, or `stoker-agent install`, as root"
        )
    return program


def _read_enrollment(paths: Paths) -> Config:
    try:
        config = read(paths.config)
        proxy.configure(config.proxy, config.no_proxy)
    except Unusable as error:
        raise HookError(str(error)) from None
    return config


def _download(config: Config, present: str) -> Optional[bytes]:
    """
    Return the program that Stoker serves, None if it is the present one, whose SHA-256 is ``present``.

    Raises HookError if the program does not come, or is not what its ETag, the SHA-256, says.
    """
    reason, backoff, channel = "", Backoff(), Channel(config)
    for _ in range(_TRIES):
        pause = _RETRY_SECONDS
        try:
            answer = channel.call("GET", _PATH, headers={"If-None-Match": f'"{present}"'}, seconds=60.0, limit=_PROGRAM)
            if answer.status == 304:
                return None
            # A proxy that compresses answers makes the ETag a weak one, W/"…".
            if answer.status == 200 and (answer.etag or "").rpartition("W/")[2] == f'"{digest(answer.body)}"':
                return answer.body
            reason = "its SHA-256 is not its ETag" if answer.status == 200 else answer.summary()
        except Unreachable as error:
            reason = str(error)
            pause = max(pause, backoff.next(error.retry_after))
        time.sleep(pause)
    raise HookError(f"cannot download the program: {reason}")
