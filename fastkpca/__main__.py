"""``python -m fastkpca``: the command line, where its script is not on the path."""

import sys

from .cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
