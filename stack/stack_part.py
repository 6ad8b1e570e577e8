"""The base of the stack's servers: a `with` block starts one and closes it, also when the start fails half-way."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class StackPart(ABC):
    """A server that a `with` block starts and closes."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
