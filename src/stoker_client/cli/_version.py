"""The version of this program."""


def own_version() -> str:
    """Return the installed version."""
    from importlib.metadata import PackageNotFoundError, version  # imported here because the import is slow

    try:
        return version("stoker")
    except PackageNotFoundError:
        return "(not installed)"  # a source tree without an installation
