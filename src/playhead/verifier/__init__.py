"""Verifying: every check that a stranger with the files could make, and what it proves."""
