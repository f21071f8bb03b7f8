"""A hundred thousand releases of anything: an answer that is sound, or an error that tells nothing.

Sound is: of the shape and kind that is promised, finite, multiples of the grid, in ``out`` if there
is one. An error is one of the three that are promised, with a message that shows no data. Warnings
and floating-point exceptions are neither. All data are made of one number that is easy to find.
"""

from __future__ import annotations

import faulthandler
import itertools
import warnings

import numpy as np
import pytest

import psinoise as pn

CALLS = 100_000
SECRET = 8675309
# What would show it: as a number of any kind, or in a hexadecimal float.
TRACES = ("8675309", "8.675309", "8675e", "1.08bf9d", "845fed")

SPECIAL = np.array(
    [0.0, -0.0, 0.5, -0.5, 1e300, -1e300, 5e-324, -1e-310, 2.0**53 + 2.0, -(2.0**62), 2.0**1023]
)
NONE = np.array([np.nan, np.inf, -np.inf])
KINDS = (
    ["f8"] * 6
    + ["f4", "f4", "i8", "i8", "u8", "i4", "u2", "i1", "f2", ">f8", ">f4", ">i8", ">u4"]
    + ["c16", "O", "U9", "S9", "M8[s]", "m8[s]", "?", "g", "V8"]
)
GOOD = frozenset("fiu")
SHAPES = [(), (), (1,), (2,), (3,), (5,), (17,), (0,), (3, 0), (2, 3), (4, 1, 3), (64,), (1, 1)]


def mechanisms():
    """Laws of every tail, fine and coarse grids."""
    made = [
        pn.Mechanism(pn.Gaussian(std=2.0)),
        pn.Mechanism(pn.Laplace(scale=0.01), 0.02),
        pn.Mechanism(pn.Cauchy(scale=3.0)),
        pn.Mechanism(pn.Airy(mean_abs=1e4), 3.0),
        pn.Mechanism(pn.DiscreteLaplace(scale=2.5)),
        pn.Mechanism(pn.Staircase(epsilon=1.0)),
        pn.Mechanism(pn.Gaussian(std=2.0), dimension=3),
    ]
    return [mechanism.on_lattice() for mechanism in made]


class Generator:
    """Random calls from one seed, drawn a thousand numbers at a time."""

    def __init__(self, seed):
        self._bits = np.random.default_rng(seed)
        self._choices = iter(())

    def below(self, count):
        """A whole number below ``count``."""
        for number in self._choices:
            return number % count
        self._choices = iter(self._bits.integers(2**40, size=4096).tolist())
        return self.below(count)

    def of(self, items):
        """One of some items."""
        return items[self.below(len(items))]

    def data(self):
        """Anything that could be passed as data, and whether it is data."""
        kind, shape = np.dtype(self.of(KINDS)), self.of(SHAPES)
        values = np.full(shape, float(SECRET)) * self.of([1.0, -1.0, 2.0**-40, 1e6])
        if kind.kind in "fc" and values.size:
            flat = values.reshape(-1)
            flat[self.below(flat.size)] = self.of(SPECIAL if self.below(3) else NONE)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind.kind in "iu":
                values = np.clip(values, np.iinfo(kind).min / 2, np.iinfo(kind).max / 2)
            array = np.zeros(shape, kind)
            if kind.kind not in "MmV":
                array[...] = values.astype(kind)
        return self._laid_out(array), kind

    def _laid_out(self, array):
        layout = self.below(8)
        if layout == 0:
            return array.tolist() if array.dtype.kind != "V" else array
        if layout == 1:
            return np.asfortranarray(array)
        if layout == 2 and array.ndim:
            return np.repeat(array, 2, axis=0)[::2]
        if layout == 3 and array.ndim:
            return array[::-1]
        if layout == 4:
            return np.ma.array(array, mask=bool(self.below(2)))
        if layout == 5 and array.ndim:
            array.flags.writeable = False
        return array

    def output(self, x):
        """Mostly none; else one that fits, or does not."""
        shape, choice = np.shape(x), self.below(24)
        if choice > 6:
            return None
        if choice > 3:
            return np.full(shape, 7.0, dtype=self.of(["f8", "f4", "i8"]))
        return [np.full((*shape, 2), 7.0), [7.0], np.full(8, 7.0)[::2], x][choice]

    def bounds(self):
        """Mostly none or good ones."""
        choice = self.below(12)
        if choice < 6:
            return None
        good = [(0.0, 1.0), (-5, 5), (2.0**40, 2.0**41), (0.1, 0.1)]
        bad = [(1.0, 0.0), (np.nan, 1.0), (0.0, np.inf), (0.0,), "ab", 3.0, (None, 1.0)]
        return self.of(good if choice < 11 else bad)


def check(mechanism, x, kind, out, bounds):
    """Release, and look at what comes; whether there was an answer."""
    before = np.array(out, copy=True) if isinstance(out, np.ndarray) and out is not x else None
    try:
        with np.errstate(all="raise"):
            found = mechanism.release(x, out=out, bounds=bounds)
    except (TypeError, ValueError, OverflowError) as error:
        message = str(error)
        assert message
        assert not any(trace in message for trace in TRACES), "an error that shows data"
        if before is not None:
            np.testing.assert_array_equal(out, before)
        return False
    assert np.asarray(x).dtype.kind in GOOD
    assert np.shape(found) == np.shape(x)
    assert out is None or found is out
    assert np.isfinite(found).all()
    cells = np.rint(np.asarray(found, dtype=np.float64) / mechanism.grid)
    multiples = (cells * mechanism.grid).astype(np.asarray(found).dtype)
    # Beyond 2^50 cells (2^22 in float32) a quotient does not tell which multiple it was.
    known = 2.0**22 if multiples.dtype == np.float32 else 2.0**50
    assert ((found == multiples) | (np.abs(cells) > known)).all()
    return True


@pytest.mark.deep
def test_anything():
    generator = Generator(20260)
    lattices = mechanisms()
    faulthandler.dump_traceback_later(300, exit=True)  # a call that hangs
    try:
        answered = 0
        for lattice in itertools.islice(itertools.cycle(lattices), CALLS):
            x, kind = generator.data()
            answered += check(lattice, x, kind, generator.output(x), generator.bounds())
    finally:
        faulthandler.cancel_dump_traceback_later()
    # Neither all refused nor all accepted: the test of the test.
    assert 0.2 * CALLS < answered < 0.8 * CALLS


def test_a_message_with_data_would_be_seen():
    class Leaky:
        grid = 1.0

        @staticmethod
        def release(x, *, out, bounds):
            raise ValueError(f"x must be small, got {x!r}")

    generator = Generator(1)
    with pytest.raises(AssertionError, match="shows data"):
        for _ in range(100):
            check(Leaky, *generator.data(), None, None)
