"""The messaging API, compatible with Zaqar's API v2."""
