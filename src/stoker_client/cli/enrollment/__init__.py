"""Enrollments: tokens with which machines become servers."""
