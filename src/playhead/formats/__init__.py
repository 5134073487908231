"""Bytes to values and back, no files. Each module has a page under docs/reference/formats/."""
