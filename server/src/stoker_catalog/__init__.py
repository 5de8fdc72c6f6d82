"""
The catalog that Stoker ships, as data: entries (``entries/NAME/VERSION.yaml``) and libraries (``libraries``).

Server and client read the same files. A published file never changes: a change is a new version.
"""
