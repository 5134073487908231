"""Replay walks the record and runs no code (decision 9): runs on disk, step by step."""
