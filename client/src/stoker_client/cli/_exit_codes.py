"""The exit codes of ``stoker``."""

from stoker_client.errors import BadInput, NotFound, Refused, TimedOut, Unreachable

FAILED, USAGE, DRIFT, NOT_FOUND, REFUSED, UNREACHABLE, TIMED_OUT, INTERRUPTED = 1, 2, 3, 4, 5, 6, 124, 130
#: Statuses of a proxy in front of the service, or of a service that is temporarily unavailable.
_AWAY = (502, 503, 504)

MEANINGS = {
    0: "success",
    FAILED: "the operation failed, or another error",
    USAGE: "the command line or a file is wrong; no request was sent",
    DRIFT: "a check found drift",
    NOT_FOUND: "the object does not exist",
    REFUSED: "the service refused the request or the login",
    UNREACHABLE: "the service cannot be reached",
    TIMED_OUT: "the time to wait is over; the operation may continue",
    INTERRUPTED: "interrupted by Ctrl-C",
}


def exit_code(problem: Exception) -> int:
    """Return the exit code of a command that ends with ``problem``."""
    if isinstance(problem, Refused) and problem.status >= 500:
        return UNREACHABLE if problem.status in _AWAY else FAILED
    return next((code for kind, code in _CODES if isinstance(problem, kind)), FAILED)


_CODES = (
    (BadInput, USAGE),
    (NotFound, NOT_FOUND),
    (Refused, REFUSED),
    (Unreachable, UNREACHABLE),
    (TimedOut, TIMED_OUT),
)
