"""Values and proofs: no I/O, no clock, no network, no randomness."""
