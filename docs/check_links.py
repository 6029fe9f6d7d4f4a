"""Every link inside the built site leads somewhere: python docs/check_links.py build/html

Checks each ``href`` and ``src`` of each page that stays inside the site: the file is there, and so is the place in it
that the part behind ``#`` names. What is loaded from elsewhere (a script, a style, a font, a picture) is an error: the
site has to read the same without a network. Prints what is wrong, one line each, and how much was checked.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href"}


class Page(HTMLParser):
    """The places of a page, what it links to, and what it loads."""

    def __init__(self, text: str):
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in LOADS and values.get(LOADS[tag]) and values.get("rel") != "canonical":
            self.loads.append(values[LOADS[tag]])


def problems(root: Path) -> tuple[list[str], int]:
    """(what is wrong, number of links checked)."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}
    found, checked = [], 0
    for path, page in pages.items():
        name = path.relative_to(root)
        found += [f"{name} loads {url}" for url in page.loads if re.match(r"(https?:)?//", url)]
        for url in page.links + page.loads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file() or not target.is_relative_to(root):
                found.append(f"{name} links to {url}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name} links to {url}: no such place")
    for sheet in sorted(root.rglob("*.css")):
        remote = re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)", sheet.read_text(encoding="utf-8"))
        found += [f"{sheet.relative_to(root)} loads {url}" for url in remote]
    if not pages:
        found.append(f"{root} has no pages")
    return found, checked


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    found, checked = problems(Path(sys.argv[1]).resolve())
    print(*found, f"{checked} links inside the site, {len(found)} wrong", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
