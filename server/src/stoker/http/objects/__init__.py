"""The object store API, compatible with Swift."""
