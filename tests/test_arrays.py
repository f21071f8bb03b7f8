"""Noise into arrays of other libraries: the same numbers, in their memory or as their arrays."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import psinoise as pn
from psinoise.adapters.arrays import noise_like

LAW = pn.Gaussian(std=2.0)


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def jax() -> Any:
    return pytest.importorskip("jax")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tensors_are_written_to_in_place(torch: Any, dtype: str) -> None:
    """Kills: a copy that is filled instead of the tensor."""
    tensor = torch.zeros((5, 3), dtype=getattr(torch, dtype))
    assert LAW.sample(out=tensor, rng=4) is tensor
    np.testing.assert_array_equal(tensor.numpy(), LAW.sample((5, 3), dtype=dtype, rng=4))
    with pytest.raises(ValueError, match="shape must match out"):
        LAW.sample((3, 5), out=tensor)


def test_buffers_are_written_to_in_place() -> None:
    numbers = array.array("d", [0.0] * 4)
    assert LAW.sample(out=numbers, rng=4) is numbers
    assert numbers.tolist() == LAW.sample(4, rng=4).tolist()


def test_memory_that_must_not_be_written_to_is_refused(torch: Any, jax: Any) -> None:
    """Kills: writing to the immutable array of JAX behind its back."""
    gradient = torch.zeros(3, requires_grad=True)
    immutable = jax.numpy.zeros(3, dtype="float32")
    wrong: list[tuple[Any, type[Exception], str]] = [
        (immutable, ValueError, "writable"),
        (gradient, TypeError, "require gradient"),
        (torch.zeros(3, dtype=torch.bfloat16), TypeError, "out must be an array"),
        (torch.zeros(3, device="meta"), TypeError, "out must be an array"),
        (torch.zeros(3, dtype=torch.int64), TypeError, "dtype float64 or float32"),
        (torch.zeros((4, 4)).T[:2], ValueError, "C-contiguous"),
        (b"12345678", TypeError, "dtype float64 or float32"),
        (memoryview(array.array("d", [0.0])).toreadonly(), ValueError, "writable"),
        ([0.0], TypeError, "out must be an array, got list"),
    ]
    for out, error, message in wrong:
        with pytest.raises(error, match=message):
            LAW.sample(out=out)
    assert not np.asarray(immutable).any()
    assert not gradient.detach().numpy().any()


def test_noise_like_an_array_of_jax(jax: Any) -> None:
    gradient = jax.numpy.ones((4, 3), dtype="float32")
    noise = noise_like(LAW, gradient, rng=9)
    assert isinstance(noise, jax.Array)
    assert noise.dtype == gradient.dtype
    np.testing.assert_array_equal(noise, LAW.sample((4, 3), dtype="float32", rng=9))
    assert noise_like(LAW, gradient[0, 0]).shape == ()
    tree = {"weights": gradient, "bias": gradient[0]}
    noisy = jax.tree.map(lambda g: g + noise_like(LAW, g), tree)
    assert noisy["bias"].shape == (3,)


def test_noise_is_not_drawn_while_jax_traces(jax: Any) -> None:
    """It would be the same noise in every step."""
    start = jax.numpy.ones(3)

    def noisy(x: Any) -> Any:
        return (x + noise_like(LAW, x)).sum()

    def constant(x: Any) -> Any:
        """Kills: a look at the array alone, which is none that is traced."""
        return (x + noise_like(LAW, start)).sum()

    for function in (noisy, constant):
        for transformed in (jax.jit(function), jax.grad(function), jax.vmap(function)):
            with pytest.raises(TypeError, match="while PyTorch or JAX traces"):
                transformed(start)


@pytest.mark.filterwarnings("ignore:.torch.jit.trace. is deprecated:DeprecationWarning")
def test_noise_is_not_drawn_while_pytorch_traces(torch: Any) -> None:
    """Kills: a function whose recorded form adds zeros, or the same noise in every call."""

    def in_place(x: Any) -> Any:
        noise = torch.zeros_like(x)
        LAW.sample(out=noise)
        return x + noise

    proxy = pytest.importorskip("torch.fx.experimental.proxy_tensor")
    start = torch.zeros(3)
    for function in (in_place, lambda x: x + noise_like(LAW, x)):
        for trace in (lambda f: torch.jit.trace(f, start), lambda f: proxy.make_fx(f)(start)):
            with pytest.raises(TypeError, match="while PyTorch or JAX traces"):
                trace(function)
        assert (function(start) != function(start)).all()


def test_noise_like_tensors_and_arrays(torch: Any) -> None:
    tensor = torch.zeros((2, 3), requires_grad=True)
    noise = noise_like(LAW, tensor.detach(), rng=9)
    assert isinstance(noise, torch.Tensor)
    assert noise.dtype == torch.float32
    np.testing.assert_array_equal(noise.numpy(), LAW.sample((2, 3), dtype="float32", rng=9))
    found = noise_like(LAW, np.zeros((2, 3)), rng=9)
    np.testing.assert_array_equal(found, LAW.sample((2, 3), rng=9))
    for wrong in (np.zeros(3, dtype=int), torch.zeros(3, dtype=torch.bfloat16), [0.0], 1.0):
        with pytest.raises(TypeError):
            noise_like(LAW, wrong)
