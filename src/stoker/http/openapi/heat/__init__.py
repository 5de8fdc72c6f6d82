"""Descriptions of the Heat API's routes."""
