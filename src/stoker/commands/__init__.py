"""
Commands of the server, found by the command line through entry points.

Importing this package raises ImportError with the remedy if the server's libraries are not installed.
"""

from importlib.util import find_spec

#: Libraries of the extra ``server`` that other programs rarely install.
_LIBRARIES = ("psycopg", "uvicorn")

if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
    raise ImportError(
        f"{missing[0]} is not installed; install the server's libraries from Stoker's source: pip install '.[server]'"
    )
