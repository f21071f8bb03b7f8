"""Elements of a stream by their numbers, in one process and in many."""

from __future__ import annotations

import numpy as np
import pytest

import psinoise as pn
from refusals import for_each

LAWS = {
    "Airy": pn.Airy(mean_abs=2.0),
    "Cauchy": pn.Cauchy(scale=1.0),
    "Staircase": pn.Staircase(epsilon=1.0),
    "UniformAtom": pn.UniformAtom(delta=0.3),
    "TruncatedLaplace": pn.TruncatedLaplace(epsilon=1.0, delta=1e-3),
    "DiscreteLaplace": pn.DiscreteLaplace(scale=2.5),
    "DiscreteStable": pn.DiscreteStable(alpha=1.5, scale=4.0),
}
# Ends within a group of the stream, at its edges and beyond one block of the kernel.
CUTS = ((0, 1), (1, 7), (63, 130), (128, 4000), (4999, 1), (5000, 0), (777, 1234))


@for_each(LAWS, ["float64", "float32"])
def test_a_stream_is_the_same_however_it_is_cut(name, dtype):
    """Mutants: an offset that is not passed on; one random number less for an element."""
    law = LAWS[name]
    whole = law.sample(5000, rng=3, dtype=dtype)
    for first, count in CUTS:
        part = law.sample(count, rng=3, dtype=dtype, offset=first, threads=2)
        assert part.tobytes() == whole[first : first + count].tobytes()


def test_far_elements_are_the_law_too():
    far = pn.Gaussian(std=1.0).sample(10**5, rng=1, offset=2**61)
    assert abs(float(far.std()) - 1.0) < 0.02
    assert len(np.unique(far)) == far.size


@for_each([-1, 2**62 - 2, 1.0, 0.0, True, "1", None])
def test_bad_offsets(offset):
    with pytest.raises((TypeError, ValueError), match="offset must"):
        pn.Airy(mean_abs=1.0).sample(3, rng=1, offset=offset)


@pytest.mark.deep
def test_dask_arrays_are_the_bytes_of_one_process():
    """Any blocks, those that cut rows among them. Mutant: strides in the order of the axes."""
    pytest.importorskip("dask.array")
    from psinoise.adapters.dask import samples

    law, shape = pn.Airy(mean_abs=2.0), (7, 30, 11)
    whole = law.sample(shape, rng=5)
    for chunks in (-1, (2, 30, 11), (7, 4, 11), (3, 8, 5), (1, 1, 1)):
        found = samples(law, shape, rng=5, chunks=chunks)
        assert found.shape == shape
        assert found.compute(scheduler="threads").tobytes() == whole.tobytes()
    line = samples(law, 1000, rng=[1, 2], chunks=99, dtype="float32").compute()
    assert line.tobytes() == law.sample(1000, rng=[1, 2], dtype="float32").tobytes()
    fresh = samples(law, (50,), chunks=7)
    assert (fresh.compute() == fresh.compute()).all()
    assert (fresh.compute() != samples(law, (50,), chunks=7).compute()).any()


def test_dask_workers_draw_the_same_bytes():
    distributed = pytest.importorskip("distributed")
    from psinoise.adapters.dask import samples

    law = pn.Laplace(scale=3.0)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=False
        ) as cluster,
        distributed.Client(cluster),
    ):
        found = samples(law, (100, 1000), rng=11, chunks=(7, 1000)).compute()
    assert found.tobytes() == law.sample((100, 1000), rng=11).tobytes()


@for_each([np.random.default_rng(1), np.random.PCG64(1), "seed", 1.5])
def test_dask_refuses_what_names_no_stream(rng):
    pytest.importorskip("dask.array")
    from psinoise.adapters.dask import samples

    with pytest.raises(TypeError, match="rng must be"):
        samples(pn.Airy(mean_abs=1.0), 3, rng=rng)
