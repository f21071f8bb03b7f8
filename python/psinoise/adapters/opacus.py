"""A certified accountant for Opacus: what a training run of PyTorch has spent.

Opacus records each step as a noise multiplier and a sampling rate. Its own accountants answer with
Renyi divergences, or with an approximation that has an error of .01 in epsilon; this one answers
with the certified upper bound for Gaussian noise on Poisson samples::

    from psinoise.adapters import opacus as certified

    certified.register()
    engine = opacus.PrivacyEngine(accountant=certified.NAME)

That the batches are Poisson samples (``poisson_sampling=True``, the default of Opacus) is what the
numbers are about. The class has the interface of ``opacus.accountants.IAccountant`` and needs
nothing of Opacus itself, so that a history can be answered where PyTorch is not installed. Tested
with ``opacus`` 1.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

from psinoise import _validate
from psinoise._optional import required
from psinoise.accounting import Accountant
from psinoise.errors import DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise import Gaussian

__all__ = ["NAME", "CertifiedAccountant", "register"]

NAME = "psinoise"
"""The name of the accountant in the registry of Opacus, and in its checkpoints."""


class CertifiedAccountant:
    """Steps of a training run and their certified epsilon, by the interface of Opacus.

    Attributes
    ----------
    history : list of tuple
        Noise multiplier, sampling rate and number of steps, in turn.

    Examples
    --------
    >>> from psinoise.adapters.opacus import CertifiedAccountant
    >>> accountant = CertifiedAccountant()
    >>> for _ in range(1000):
    ...     accountant.step(noise_multiplier=1.1, sample_rate=0.01)
    >>> len(accountant), round(accountant.get_epsilon(delta=1e-5), 4)
    (1000, 1.5154)
    """

    history: list[tuple[float, float, int]]

    def __init__(self) -> None:
        self.history = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one step.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the clipping bound, at least 0.
        sample_rate : float
            With which each record was drawn, in [0, 1].
        """
        noise, rate, steps = _phase((noise_multiplier, sample_rate, 1))
        if self.history and self.history[-1][:2] == (noise, rate):
            steps += self.history.pop()[2]
        self.history.append((noise, rate, steps))

    def accountant(self) -> Accountant | None:
        """All steps in an accountant of psinoise; None if some step had no noise.

        Raises
        ------
        TypeError, ValueError
            If the history, which Opacus may write, is not one of such steps.
        """
        phases = [_phase(entry) for entry in self.history]
        if any(noise == 0.0 and rate > 0.0 and steps > 0 for noise, rate, steps in phases):
            return None
        found = Accountant()
        for noise, rate, steps in phases:
            if noise > 0.0:  # else nobody took part
                found.compose(Mechanism(Gaussian(std=noise)), steps, rate)
        return found

    def get_epsilon(self, delta: float, *, tolerance: float | None = None) -> float:
        """The certified upper bound on epsilon; ``inf`` if some step had no noise.

        Parameters
        ----------
        delta : float
            In [0, 1].
        tolerance : float, optional
            As in :meth:`psinoise.Accountant.epsilon`, which has the errors.
        """
        found = self.accountant()
        return float("inf") if found is None else float(found.epsilon(delta, tolerance=tolerance))

    def __len__(self) -> int:
        """How many steps there were."""
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name of the accountant."""
        return NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """What Opacus calls after each step of its optimizer.

        The hook raises a DomainError for steps that accumulate several batches: a record can be in
        some of them, is clipped in each, and moves the sum by as many bounds. No rate of a single
        use says so.
        """

        def hook(optimizer: Any) -> None:
            if optimizer.accumulated_iterations != 1:
                raise DomainError(
                    "accumulated_iterations must be 1: a record can be in several of the batches, "
                    f"and is clipped in each, got {optimizer.accumulated_iterations!r}"
                )
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate)

        return hook

    def state_dict(
        self, destination: MutableMapping[str, Any] | None = None
    ) -> MutableMapping[str, Any]:
        """The history and the name, for a checkpoint."""
        found: MutableMapping[str, Any] = {} if destination is None else destination
        found["history"] = list(self.history)
        found["mechanism"] = NAME
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the history of a checkpoint.

        Raises
        ------
        TypeError, ValueError
            If it is not one of this accountant.
        """
        if not state_dict or not {"history", "mechanism"} <= set(state_dict):
            raise ValueError(f"state_dict must have a history and a mechanism, got {state_dict!r}")
        if state_dict["mechanism"] != NAME:
            raise ValueError(
                f"state_dict must be that of the mechanism {NAME!r}, got "
                f"{state_dict['mechanism']!r}"
            )
        self.history = [_phase(entry) for entry in state_dict["history"]]


def _phase(entry: Iterable[Any]) -> tuple[float, float, int]:
    """Noise multiplier, sampling rate and number of steps, checked."""
    try:
        noise, rate, steps = entry
    except (TypeError, ValueError):
        raise TypeError(
            "history must have a noise multiplier, a sampling rate and a number of steps for each "
            f"phase, got {entry!r}"
        ) from None
    noise = _validate.real("noise_multiplier", noise)
    if noise != 0.0:
        noise = _validate.positive_below("noise_multiplier", noise)
    if isinstance(steps, float) and steps.is_integer():
        steps = int(steps)  # as other programs write whole numbers
    return noise, _validate.probability_above("sample_rate", rate), _validate.count("steps", steps)


def register() -> None:
    """Make the accountant known to Opacus, under `NAME`; calling it again changes nothing.

    Raises
    ------
    ModuleNotFoundError
        If Opacus is not installed.

    Examples
    --------
    >>> from importlib.util import find_spec
    >>> from psinoise.adapters import opacus as certified
    >>> if find_spec("opacus"):
    ...     certified.register()      # then PrivacyEngine(accountant=certified.NAME)
    """
    message = 'this adapter needs Opacus: pip install "psinoise[opacus]"'
    accountants = required("opacus.accountants", message)
    accountants.IAccountant.register(CertifiedAccountant)
    accountants.register_accountant(NAME, CertifiedAccountant, force=True)
