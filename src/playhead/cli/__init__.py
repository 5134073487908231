"""The command line: one command a module; the verbs do the work (docs/reference/cli.md)."""
