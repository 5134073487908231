"""Recording: events of a running agent become steps of one chain."""
