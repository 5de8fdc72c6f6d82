"""
The identity API: the part of Keystone's v3 API that clients need for logins, administration and the service catalog.
"""
