"""A whole story in a few seconds, offline: `story.tell`."""
