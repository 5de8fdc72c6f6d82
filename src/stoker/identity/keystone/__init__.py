"""
The users of a real Keystone instead of Stoker's own (``identity_mode = keystone``).

Nothing here is imported in the other mode: keystoneauth1 is an extra.
"""
