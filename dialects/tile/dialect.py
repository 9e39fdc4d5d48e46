"""The `tile` dialect itself: its name, and the base class that registers each op."""

from __future__ import annotations

from typing import Any, ClassVar

from mlir import ir
from mlir.dialects._ods_common import _cext

from tilec.dialects.op import TileOp


@_cext.register_dialect
class TileDialect(ir.Dialect):
    """Says what is computed: no threads, no memory spaces, no layouts."""

    DIALECT_NAMESPACE = "tile"


class Op(TileOp):
    """Base of the `tile` ops."""

    DIALECT: ClassVar[str] = "tile"
    ALL: ClassVar[list[type[TileOp]]] = []
    KINDS: ClassVar[list[type[TileOp]]] = []
    """Classes that several ops share."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.MNEMONIC:
            _cext.register_operation(TileDialect)(cls)
            Op.ALL.append(cls)
        else:
            Op.KINDS.append(cls)
