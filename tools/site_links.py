"""Whether every link of the built site to itself leads to a file, and to a place in it.

    python -m sphinx docs build/site && python tools/site_links.py build/site

Sphinx checks references while it reads; this looks at what it has written. Links to elsewhere are
not followed: ``python -m sphinx -b linkcheck docs build/links`` does that, and needs the network.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path

_ELSEWHERE = re.compile(r"[a-z]+:|//|\{\{")


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """Places of a page."""
    return frozenset(re.findall(r'(?:id|name)="([^"]+)"', page.read_text(encoding="utf-8")))


def broken(page: Path) -> list[str]:
    """Links of a page that lead nowhere."""
    found = []
    for link in set(re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8"))):
        name, _, anchor = link.partition("#")
        name = name.partition("?")[0]
        there = Path(os.path.normpath(page.parent / name)) if name else page
        if _ELSEWHERE.match(link):
            continue
        if not there.exists() or (
            anchor and there.suffix == ".html" and anchor not in anchors(there)
        ):
            found.append(f"{page}: {link}")
    return sorted(found)


def main() -> int:
    """Print what is broken; status 1 if anything is."""
    pages = sorted(Path(sys.argv[1]).rglob("*.html"))
    found = [link for page in pages for link in broken(page)]
    print(*found, f"{len(pages)} pages, {len(found)} broken links", sep="\n")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
