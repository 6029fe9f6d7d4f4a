# The compiled modules carry their signatures in their docstrings; type checkers see them as Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
