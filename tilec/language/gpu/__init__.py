"""The explicit level: `from tilec.language import gpu`. See README.md for the rules.

A kernel that calls any of these says how it runs, and the compiler adds nothing: no layout, no
barrier, no copy, no buffer that is not written here. Each file of functions lists what it exports.
"""

from tilec.language.gpu import (
    barriers,
    buffers,
    clusters,
    copies,
    layouts,
    programs,
    rings,
    tensor_cores,
)
from tilec.language.gpu.barriers import *  # noqa: F403
from tilec.language.gpu.buffers import *  # noqa: F403
from tilec.language.gpu.clusters import *  # noqa: F403
from tilec.language.gpu.copies import *  # noqa: F403
from tilec.language.gpu.layouts import *  # noqa: F403
from tilec.language.gpu.programs import *  # noqa: F403
from tilec.language.gpu.rings import *  # noqa: F403
from tilec.language.gpu.tensor_cores import *  # noqa: F403

__all__: list[str] = []
__all__ += barriers.__all__
__all__ += buffers.__all__
__all__ += clusters.__all__
__all__ += copies.__all__
__all__ += layouts.__all__
__all__ += programs.__all__
__all__ += rings.__all__
__all__ += tensor_cores.__all__
