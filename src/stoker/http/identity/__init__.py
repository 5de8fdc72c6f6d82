"""The part of Keystone's v3 API that clients need to log in and find the services."""
