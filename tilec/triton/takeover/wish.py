"""Who compiles a `@triton.jit` kernel: what the process, or one kernel, asked for.

A wish is looked up wherever Triton asks its backend or its driver for something. It is a kernel's
own inside that kernel's launch, else the process's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tilec.records import dataclass

ERROR = "error"
TRITON = "triton"
OTHERWISE = (ERROR, TRITON)
"""What becomes of a kernel that tilec does not import."""


@dataclass(frozen=True)
class Wish:
    """tilec compiles. `otherwise`: of `OTHERWISE`. `device`: a name for `tilec.device`, None for
    the GPU that Triton has."""

    otherwise: str = ERROR
    device: str | None = None

    def __post_init__(self) -> None:
        if self.otherwise not in OTHERWISE:
            known = " or ".join(map(repr, OTHERWISE))
            raise ValueError(f"otherwise={self.otherwise!r}: expected {known}")
        if self.device is not None and self.otherwise == TRITON:
            raise ValueError(f"otherwise={TRITON!r} needs a GPU, and {self.device} is none")


class FallbackWarning(UserWarning):
    """Triton compiles a kernel, since tilec does not import it; the message says why."""


_for_all: Wish | None = None
_here: ContextVar[tuple[Wish | None] | None] = ContextVar("_here", default=None)
"""In a tuple, where one holds here alone, be it that Triton compiles."""


def wish() -> Wish | None:
    """The wish that holds here; None where Triton compiles."""
    here = _here.get()
    return _for_all if here is None else here[0]


def wish_of_all(new: Wish | None) -> None:
    """Makes `new` what holds for every kernel without a wish of its own."""
    global _for_all
    _for_all = new


@contextmanager
def wished(new: Wish | None) -> Iterator[None]:
    """Inside, on this thread, `new` holds."""
    token = _here.set((new,))
    try:
        yield
    finally:
        _here.reset(token)


class DeviceNumber(int):
    """The number of a GPU, as Triton's functions keep their compiled kernels by it.

    Those made by another compiler, or for the emulator, are others: a dict has the number of one
    wish beside those of others and the plain one, since the hashes differ. Compared, it is the
    number.
    """

    wish: Wish | None

    def __new__(cls, number: int, made_for: Wish) -> DeviceNumber:
        """The number `number` of a wish."""
        found = super().__new__(cls, number)
        found.wish = made_for
        return found

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceNumber):
            return (int(self), self.wish) == (int(other), other.wish)
        return int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((int(self), self.wish))
