"""Links between pages lead somewhere, every page can be reached, and what code names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
DOCS = REPO / "docs"
PAGES = [*sorted(REPO.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"(?ms)^```.*?^```$")


def links(text: str) -> Iterator[tuple[str, str]]:
    """(file, anchor) of each link to another place of the repository; "" for the page itself."""
    for target in _LINK.findall(_FENCED.sub("", text)):
        if "://" not in target and not target.startswith("mailto:"):
            name, _, anchor = target.partition("#")
            yield name, anchor


def anchors(text: str) -> set[str]:
    """The anchors that a Markdown page has: its headings, as the usual viewers spell them."""
    heads = re.findall(r"(?m)^#{1,6} (.+)$", _FENCED.sub("", text))
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(page: Path) -> Iterator[str]:
    text = page.read_text("utf-8")
    for name, anchor in links(text):
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            yield f"{page.relative_to(REPO)}: {name} is not there"
        elif anchor and anchor not in anchors(target.read_text("utf-8")):
            yield f"{page.relative_to(REPO)}: {name}#{anchor} is no heading there"


def test_links_between_pages_lead_somewhere() -> None:
    assert len(PAGES) > 25
    assert not [what for page in PAGES for what in broken(page)]


def test_a_broken_link_is_seen() -> None:
    text = "# What now?\n\n[a](x.md) [b](#what-now) ![c](y.png) [d](https://e.example/f)\n"
    assert list(links(text)) == [("x.md", ""), ("", "what-now")]
    assert anchors(text) == {"what-now"}
    assert anchors("## `input_hash` and its place\n") == {"input_hash-and-its-place"}


def test_every_page_is_reached_from_the_index() -> None:
    seen: set[Path] = set()
    todo = [DOCS / "index.md"]
    while todo:
        page = todo.pop().resolve()
        if page not in seen:
            seen.add(page)
            names = [name for name, _ in links(page.read_text("utf-8")) if name.endswith(".md")]
            todo += [page.parent / name for name in names]
    assert not [page for page in DOCS.rglob("*.md") if page.resolve() not in seen]


def test_every_page_that_code_names_is_there() -> None:
    named = {
        (name, path.name)
        for folder in ("src", "tests", "tools")
        for path in (REPO / folder).rglob("*.py")
        for name in re.findall(r"docs/[\w/-]+\.md", path.read_text("utf-8"))
    }
    assert len(named) > 10
    assert not [both for both in sorted(named) if not (REPO / both[0]).is_file()]
