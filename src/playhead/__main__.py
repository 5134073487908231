"""``python -m playhead``: the same program as ``playhead``, where the script is not on the path."""

from __future__ import annotations

from playhead.cli.main import main

if __name__ == "__main__":
    main()
