"""The oldest versions that pyproject.toml allows, as constraints for pip: what is promised there is what is tested.

python3 .ci/floors.py pyproject.toml EXTRA... > oldest.txt
"""

import re
import sys
import tomllib


def main(path: str, *extras: str) -> None:
    with open(path, "rb") as file:
        project = tomllib.load(file)["project"]
    needed = project["dependencies"] + [line for extra in extras for line in project["optional-dependencies"][extra]]
    floors = {}
    for requirement in needed:
        name, version = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()
        if floors.setdefault(name, version) != version:
            raise SystemExit(f"{path}: {name} has two oldest versions, {floors[name]} and {version}")
    print(*(f"{name}=={version}" for name, version in floors.items()), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
