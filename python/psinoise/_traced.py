"""Whether PyTorch or JAX records what is done now, to do it again without asking Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator

__all__ = ["refuse_while_traced"]


def refuse_while_traced() -> None:
    """Refuse to draw where a tracer would keep one draw, and repeat it in every later call.

    What is asked of a library is not all of its public interface: what it does not have says
    nothing.

    Raises
    ------
    TypeError
        Inside ``jax.jit``, ``jax.vmap`` and the like, ``torch.jit.trace``, ``torch.export``, and
        wherever operations of PyTorch are dispatched to a mode, such as one that records them.
    """
    if any(_recorders()):
        raise TypeError(
            "noise must not be drawn while PyTorch or JAX traces: it would be drawn once, and be "
            "the same in every later call"
        )


def _recorders() -> Iterator[bool]:
    if (torch := sys.modules.get("torch")) is not None:
        yield torch.jit.is_tracing()
        dispatch = sys.modules.get("torch.utils._python_dispatch")
        mode = getattr(dispatch, "_get_current_dispatch_mode", None)
        yield mode is not None and mode() is not None
    core = sys.modules.get("jax._src.core")
    clean = getattr(core, "trace_state_clean", None)
    yield clean is not None and not clean()
