"""Screens for a terminal: what they show comes from the verbs, as the same values."""
