"""The client's exceptions. Each message states what happened and how to resolve it."""


class ClientError(Exception):
    """Base class. The text is one sentence for the user, who needs no traceback."""


class NotConfigured(ClientError):
    """No cloud is selected, or the selected cloud's configuration is unusable."""


class Unreachable(ClientError):
    """The address does not answer."""


class BadAnswer(ClientError):
    """The answer is not that of an orchestration service."""


class TimedOut(ClientError):
    """The user's time limit has passed. The awaited work may continue."""


class Broken(ClientError):
    """A stream ended early. A new request may continue it."""


class BadInput(ClientError):
    """The user's input (a file, a parameter) is unusable. No request was sent."""


class Ambiguous(BadInput):
    """The user's reference matches several objects. No request was sent to change them."""


class Refused(ClientError):
    """The service answered with an error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NotFound(Refused):
    """The project has no such object."""
