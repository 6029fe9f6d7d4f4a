"""Put what commands print into a page: each table stands between a marker that names its command and one that ends it.

    python benchmarks/page.py docs/benchmarks.md [WORD ...]

A marker is ``<!-- speed/threads.py --rounds 3: begin -->``: a script of this folder with its options. Commands in which
one of the words occurs are run, without words all of them, one after the other. The lines that a script prints go into
the page as they are, but for comments (#): of these, the one that names the machine stands below the table.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TABLE = re.compile(r"(?<=<!-- )(\S+\.py.*)(?:: begin -->\n)(?s:.*?)(?=<!-- end -->)")


def printed(command: str) -> str:
    """The lines of a command's output, and the machine it ran on."""
    script, *options = command.split()
    print(f"{command} ...", flush=True)
    run = [sys.executable, str(FOLDER / script), *options]
    lines = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True, cwd=FOLDER.parent).stdout.splitlines()
    machine = [line.removeprefix("# ") for line in lines if line.startswith("#") and " processors, " in line]
    table = "\n".join(line for line in lines if not line.startswith("#")).strip()
    return "\n\n".join([table, *machine])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    commands = [found[1] for found in TABLE.finditer(options.page.read_text("utf-8"))]
    asked = [x for x in commands if not options.words or any(word in x for word in options.words)]
    if not asked:
        parser.error(f"{options.page} has the commands {commands}, and none of the words is in one of them")
    for command in asked:
        text = f"{command}: begin -->\n{printed(command)}\n"
        page = TABLE.sub(lambda x, c=command, t=text: t if x[1] == c else x[0], options.page.read_text("utf-8"))
        options.page.write_text(page, "utf-8")  # after each of them: a run may be broken off


if __name__ == "__main__":
    main()
