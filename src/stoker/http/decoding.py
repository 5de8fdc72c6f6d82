"""JSON from outside: whatever is taken in can be stored, shown and put into words again."""

from __future__ import annotations

from typing import Any

import msgspec

from stoker.model.errors import Invalid

_decoder = msgspec.json.Decoder()

#: Levels of lists and maps. Encoders end near a thousand, and what is taken in goes out wrapped into more: one signal
#: of 980 levels could be stored and made every list of deployments an error.
DEEPEST = 200


def decoded(raw: bytes, what: str) -> Any:
    """Raises Invalid for what is not JSON, however it is not, and for what is nested too deeply."""
    try:
        found = _decoder.decode(raw)
    except RecursionError:
        raise _too_deep(what) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{what} is not JSON: {error}") from None
    # Most bodies have not even as many brackets, and counting those is nearly free.
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and _deeper(found):
        raise _too_deep(what)
    return found


def _deeper(root: Any) -> bool:
    """Level by level, since recursion is what must not happen."""
    level: list[Any] = [[root]]
    for _ in range(DEEPEST + 1):
        inner = [part for each in level for part in (each.values() if type(each) is dict else each)]
        level = [part for part in inner if type(part) is dict or type(part) is list]
        if not level:
            return False
    return True


def _too_deep(what: str) -> Invalid:
    return Invalid(f"{what} is nested too deeply: more than {DEEPEST} levels")
