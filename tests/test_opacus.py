"""The accountant for Opacus: by itself, and in its place in the real package."""

from __future__ import annotations

import inspect
import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import psinoise as pn
from psinoise import DomainError
from psinoise.adapters.opacus import NAME, CertifiedAccountant, register
from refusals import for_rows


def test_epsilon_is_that_of_the_same_steps() -> None:
    """Kills: steps that replace each other, a rate that is lost when it changes."""
    accountant = CertifiedAccountant()
    assert accountant.get_epsilon(1e-5) == 0.0
    for multiplier, rate, steps in (
        (1.1, 0.01, 30),
        (1.1, 0.02, 20),
        (0.9, 0.02, 5),
        (1.1, 0.01, 7),
    ):
        for _ in range(steps):
            accountant.step(noise_multiplier=multiplier, sample_rate=rate)
    assert accountant.history[0] == (1.1, 0.01, 30)
    assert len(accountant) == 62
    ours = pn.Accountant()
    for multiplier, rate, steps in ((1.1, 0.01, 37), (1.1, 0.02, 20), (0.9, 0.02, 5)):
        ours.compose(pn.Mechanism(pn.Gaussian(std=multiplier)), steps, rate)
    found = accountant.get_epsilon(delta=1e-5)
    assert type(found) is float
    assert found == pytest.approx(ours.epsilon(1e-5).upper, rel=1e-12)
    assert accountant.get_epsilon(1e-5, tolerance=1e-2) >= ours.epsilon(1e-5).lower


def test_a_step_without_noise_spends_everything() -> None:
    accountant = CertifiedAccountant()
    accountant.step(noise_multiplier=0.0, sample_rate=0.0)
    assert accountant.get_epsilon(1e-5) == 0.0
    accountant.step(noise_multiplier=0.0, sample_rate=0.01)
    assert accountant.get_epsilon(1e-5) == math.inf
    for words in ({"noise_multiplier": -1.0}, {"noise_multiplier": math.nan}, {"sample_rate": 1.5}):
        with pytest.raises(pn.DomainError):
            accountant.step(**{"noise_multiplier": 1.0, "sample_rate": 0.1, **words})
    assert len(accountant) == 2


@for_rows(
    [
        ((math.nan, 0.1, 1000), pn.DomainError),
        ((-1.0, 0.1, 1000), pn.DomainError),
        ((math.inf, 0.1, 1000), pn.DomainError),
        ((0.0, math.nan, 1000), pn.DomainError),
        ((0.0, 0.5, -3), pn.DomainError),
        ((1.1, 0.1, 10.5), TypeError),
        (("a", 0.1, 1), TypeError),
        ((1.0, 0.1), TypeError),
        (3.0, TypeError),
    ]
)
def test_a_history_of_others_is_checked(entry: Any, error: type[Exception]) -> None:
    """Opacus writes it. Kills: a phase that is no noise and counts as no loss."""
    accountant = CertifiedAccountant()
    accountant.history = [(1.1, 0.01, 1000), entry]
    with pytest.raises(error):
        accountant.get_epsilon(1e-5)
    with pytest.raises(error):
        CertifiedAccountant().load_state_dict({"history": [entry], "mechanism": NAME})


def test_the_hook_of_the_optimizer() -> None:
    accountant = CertifiedAccountant()
    hook = accountant.get_optimizer_hook_fn(0.01)
    for _ in range(3):
        hook(SimpleNamespace(noise_multiplier=1.3, accumulated_iterations=1))
    assert accountant.history == [(1.3, 0.01, 3)]


def test_batches_that_are_accumulated_are_refused() -> None:
    """Two batches at .1 with sigma 1: a record moves the sum by 2 with probability .01, so that
    epsilon is 3.618 at 1e-5. Kills: a single use at twice the rate, 2.447."""
    accountant = CertifiedAccountant()
    hook = accountant.get_optimizer_hook_fn(0.1)
    with pytest.raises(DomainError, match="accumulated_iterations must be 1"):
        hook(SimpleNamespace(noise_multiplier=1.0, accumulated_iterations=2))
    assert len(accountant) == 0


def test_checkpoints() -> None:
    accountant = CertifiedAccountant()
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    kept = accountant.state_dict()
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    other = CertifiedAccountant()
    other.load_state_dict(kept)
    assert other.history == [(1.0, 0.1, 1)]
    assert accountant.state_dict({"more": 1})["more"] == 1
    for wrong in ({}, {"history": []}, {"history": [], "mechanism": "rdp"}):
        with pytest.raises(ValueError, match="state_dict must"):
            other.load_state_dict(wrong)
    assert len(other) == 1


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "psinoise\[opacus\]"'):
        register()


@pytest.fixture(scope="module")
def opacus() -> Any:
    return pytest.importorskip("opacus")


@pytest.mark.filterwarnings("ignore")
def test_it_has_the_interface(opacus: Any) -> None:
    register()
    register()
    interface = opacus.accountants.IAccountant
    assert issubclass(CertifiedAccountant, interface)
    assert isinstance(opacus.accountants.create_accountant(NAME), CertifiedAccountant)
    for name, method in inspect.getmembers(interface, inspect.isroutine):
        if name.startswith("_") and name != "__len__":
            continue
        theirs = list(inspect.signature(method).parameters)
        ours = list(inspect.signature(getattr(CertifiedAccountant, name)).parameters)
        assert [word for word in theirs if word not in {"args", "kwargs"}] == [
            word for word in ours if word != "tolerance"
        ], name


@pytest.mark.filterwarnings("ignore")
def test_training_with_it(opacus: Any) -> None:
    """A private engine that asks it for a noise multiplier, trains, and asks for epsilon."""
    torch = pytest.importorskip("torch")
    register()
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    data = torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randint(0, 2, (64,)))
    engine = opacus.PrivacyEngine(accountant=NAME)
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=16),
        target_epsilon=3.0,
        target_delta=1e-3,
        epochs=2,
        max_grad_norm=1.0,
    )
    for _ in range(2):
        for features, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
    steps, multiplier = len(engine.accountant), optimizer.noise_multiplier
    assert steps == 8
    spent = engine.get_epsilon(1e-3)
    ours = pn.Mechanism(pn.Gaussian(std=multiplier)).epsilon(1e-3, steps, 0.25)
    assert spent == pytest.approx(ours.upper, rel=1e-12)
    assert 2.9 < spent <= 3.0
    # Theirs on the same history: Renyi divergences bound from above.
    theirs = opacus.accountants.RDPAccountant()
    theirs.history = engine.accountant.history
    assert spent < theirs.get_epsilon(1e-3)
