from types import TracebackType

from typing_extensions import disjoint_base

@disjoint_base
class Reuse:
    waiting: int
    def __enter__(self) -> Reuse: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
