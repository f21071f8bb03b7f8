"""What tests of bad input share: a mechanism, and the error that a call must raise."""

from __future__ import annotations

import numpy as np
import pytest

import psinoise as pn

GAUSSIAN = pn.Mechanism(pn.Gaussian(std=2.0))


def refused(error, match, call, *arguments, **keywords):
    """The error that a call must raise, of the right class and no other."""
    with pytest.raises(error, match=match or None) as caught:
        call(*arguments, **keywords)
    if error is ValueError:
        assert not isinstance(caught.value, UnicodeError | np.exceptions.AxisError)
    return str(caught.value)
