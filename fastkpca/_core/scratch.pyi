from types import TracebackType

class Reuse:
    waiting: int
    def __enter__(self) -> Reuse: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
