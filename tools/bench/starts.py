"""How long whole processes take: the import and the help text."""

from __future__ import annotations

import sys

from timing import interleaved, line, process, title


def starts(quick: bool) -> None:
    """Medians of whole processes, in turn."""
    repetitions = 9 if quick else 21
    title(f"6. start-up, whole processes ({repetitions} each)")
    cli = "import sys; sys.argv[0] = 'playhead'; from playhead.cli.main import main; main()"
    times = interleaved(
        {
            "pass": process("pass"),
            "import playhead": process("import playhead"),
            "record and verify": process("import playhead; playhead.record; playhead.verify"),
            "playhead --help": process(cli, "--help"),
        },
        repetitions,
    )
    bare = times["pass"]
    targets = {"import playhead": 6.0, "playhead --help": 10.0}
    for name, timing in times.items():
        ratio = timing.wall / bare.wall
        limit = targets.get(name)
        line(
            name if name != "pass" else "python -c pass",
            f"x{ratio:.2f} wall",
            f"x{timing.cpu / bare.cpu:.2f} CPU",
            f"({timing.wall * 1e3:.0f} ms)",
            target=f"<= {limit:g}x" if limit else "",
            met=ratio <= limit if limit else None,
        )
    print(f"  Python {sys.version.split()[0]}")
