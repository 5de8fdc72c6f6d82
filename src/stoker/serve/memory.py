"""Makes glibc return freed memory to the system."""

from __future__ import annotations

import contextlib
import ctypes

#: From <malloc.h>: blocks of at least this size get a memory mapping of their own.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def return_large_blocks() -> None:
    """
    Have glibc unmap large blocks as soon as they are freed.

    By default, glibc raises its threshold to up to 32 MiB when a large block is freed, and then keeps such blocks in
    the arena of each thread. Without glibc, this function has no effect.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
