"""Bytes to disk and back: journals, blobs, heads, keys. Only `durable` syncs, locks or renames."""
