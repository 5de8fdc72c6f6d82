"""
The object store: accounts, containers, and objects whose bytes are stored in the database.

Because the bytes are in the database, publishing a document and receiving a signal in an object are part of the
transaction they belong to. An account is a project's id, without Swift's prefix ``AUTH_``. ``as_owner``: with the
rights of the server or deployment that owns a container.
"""
