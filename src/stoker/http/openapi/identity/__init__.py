"""Descriptions of the identity API's routes."""
