"""Reads the output of a short program, within limits of time and size."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import Sequence


def read_output(argv: Sequence[str], seconds: float, most: int) -> bytes:
    """
    Run a program and return its standard output. The program and its children end with this call.

    Raises OSError if the program does not start, fails, takes more than ``seconds`` or prints more than ``most`` bytes.
    """
    deadline = time.monotonic() + seconds
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        start_new_session=True,
    )
    assert process.stdout is not None
    data = b""
    try:
        while True:
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise OSError(f"no end within {seconds:g} s")
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            data += chunk
            if len(data) > most:
                raise OSError(f"more than {most} bytes of output")
        code = process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise OSError(f"no end within {seconds:g} s") from None
    finally:
        # Children of the program may still hold the pipe open.
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
    if code != 0:
        raise OSError(f"exit code {code}")
    return data
