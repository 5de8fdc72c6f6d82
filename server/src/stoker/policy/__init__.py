"""Policies of servers: who may deploy what to a server, and when its runs may begin."""
