"""Words of the code's prose that CONTRIBUTING asks to avoid, by file: comments, docstrings and the pages of docs/.

python benchmarks/prose.py [-v]: a list to read, and no check. -v prints each line."""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AVOID = re.compile(
    r"\b(rooms?|floors?|houses?|look(s|ed)?|ways?|hopes?|dear(er)?|beside|the rest|so many|so much|as many as|"
    r"given up|leaves? out|whatever|worth)\b",
    re.IGNORECASE,
)
NO_NOUN = re.compile(r"(Of|That|Those|Times|About|What|Where|Whether|As many|So many|Beyond|How)\b")


def prose(path: Path) -> list[str]:
    """Docstrings and comments of a module, or paragraphs of a page without its code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return re.sub(r"```.*?```|`[^`]*`|^\|.*$", " ", text, flags=re.DOTALL | re.MULTILINE).split("\n\n")
    bodies = [body for node in ast.walk(ast.parse(text)) if isinstance(body := getattr(node, "body", None), list)]
    values = [x.value for body in bodies for x in body if isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant)]
    found = [part for x in values if isinstance(x.value, str) for part in x.value.split("\n\n")]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return found + [x.string.lstrip("# ") for x in tokens if x.type == tokenize.COMMENT]


def main(verbose: bool) -> None:
    rows = []
    for path in sorted(x for top in ("fastkpca", "kernels_contrib/src", "docs") for x in (ROOT / top).rglob("*")):
        if path.suffix not in (".py", ".md") or "examples" in path.parts:
            continue
        pieces = [" ".join(re.sub(r"`[^`]*`", "", piece).split()) for piece in prose(path)]
        hits = [piece for piece in pieces if AVOID.search(piece) or NO_NOUN.match(piece)]
        rows.append((len(hits), str(path.relative_to(ROOT)), hits))
    print(f"{sum(n for n, _, _ in rows)} passages with words to avoid, or that begin without a noun")
    for n, name, hits in sorted(rows, key=lambda row: -row[0])[: None if verbose else 12]:
        if n:
            print(f"{n:4} {name}", *([f"       {hit[:110]}" for hit in hits] if verbose else []), sep="\n")


if __name__ == "__main__":
    main("-v" in sys.argv[1:])
