"""Foreign transcripts into runs, and the originals back out, byte for byte."""
