"""Accountants as text: exact, canonical, and closed to everything else."""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import psinoise as pn
from psinoise import costs
from psinoise.noise import FAMILIES

Steps = list[tuple[type[pn.Noise], float, float, float, int]]

dumps, loads = pn.Accountant.to_json, pn.Accountant.from_json

positive = st.floats(1e-300, 1e300)
steps_of_any_kind = st.lists(
    st.tuples(
        st.sampled_from(FAMILIES),
        positive,
        positive,
        st.floats(1e-9, 1.0),
        st.integers(1, 2**40),
    ),
    max_size=4,
)


def accountant_of(steps: Steps, adjacency: str = "add-remove") -> pn.Accountant:
    accountant = pn.Accountant(adjacency)
    for law, scale, sensitivity, rate, count in steps:
        build: Any = law
        accountant.compose(pn.Mechanism(build(scale=scale), sensitivity), count, rate)
    return accountant


def some() -> pn.Accountant:
    return accountant_of([(pn.Airy, 0.1, 1.0, 0.01, 7), (pn.Gaussian, 1.0 / 3.0, 2.0, 1.0, 2**62)])


@given(steps=steps_of_any_kind)
@settings(max_examples=100, deadline=None)
def test_round_trip_is_exact(steps: Steps) -> None:
    accountant = accountant_of(steps)
    text = dumps(accountant)
    again = loads(text)
    assert dict(again._steps) == dict(accountant._steps)
    assert again.adjacency == accountant.adjacency
    assert dumps(again) == text
    # The order of the calls is not part of the state.
    assert dumps(accountant_of(steps[::-1])) == text


def test_replacement_keeps_its_rates() -> None:
    accountant = pn.Accountant("replace")
    accountant.compose(pn.Mechanism(pn.Gaussian(std=2.0)), 10)
    accountant.compose(pn.Mechanism(pn.Laplace(scale=2.0)), 3)
    again = loads(dumps(accountant))
    assert again.adjacency == "replace"
    assert dict(again._steps) == dict(accountant._steps)
    assert again.estimate.epsilon(1e-6) == accountant.estimate.epsilon(1e-6)


def test_the_text_is_what_the_documentation_says() -> None:
    found = json.loads(dumps(some()))
    digest = found.pop("sha256")
    canonical = json.dumps(found, sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(canonical.encode("ascii")).hexdigest()
    assert (found["format"], found["version"]) == ("psinoise-accountant", 1)
    airy = found["steps"][0]
    assert (airy["law"], airy["arguments"]) == ("Airy", {"mean_abs": (0.1).hex()})
    assert (float.fromhex(airy["sampling_rate"]), airy["count"]) == (0.01, 7)


def sealed(found: dict[str, Any]) -> str:
    """Text with a hash that fits, as a careful forger would write it."""
    found.pop("sha256", None)
    canonical = json.dumps(found, sort_keys=True, separators=(",", ":"))
    return json.dumps({**found, "sha256": hashlib.sha256(canonical.encode()).hexdigest()})


def forged(**changes: Any) -> str:
    return sealed({**json.loads(dumps(some())), **changes})


def forged_step(**changes: Any) -> str:
    found = json.loads(dumps(some()))
    found["steps"][0].update(changes)
    return sealed(found)


def test_every_changed_character_is_noticed() -> None:
    text = dumps(some())
    for place, character in enumerate(text):
        other = "1" if character == "0" else "0"
        changed = text[:place] + other + text[place + 1 :]
        with pytest.raises(pn.DomainError):
            loads(changed)


HEX_ONE = (1.0).hex()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text must be JSON"),
        ("{}", "must have the members"),
        ("[]", "must be a JSON object"),
        ("[" * 100_000, "text must be JSON"),
        ("1" * 10_000, "text must be JSON"),
        ("NaN", "has no NaN"),
        ('{"a": 1, "a": 1}', "member twice"),
        (forged(extra=1), "must have the members"),
        (forged(format="pickle"), "format must be"),
        (forged(version=2), "version must be 1"),
        (forged(version=True), "version must be 1"),
        (forged(version=1.0), "version must be 1"),
        (forged(adjacency="substitute"), "adjacency must be one of"),
        (forged(adjacency=3), "adjacency must be a string"),
        (forged(steps={}), "steps must be a list"),
        (forged(steps=[[]]), "a step must be a JSON object"),
        (forged(steps=2 * json.loads(dumps(some()))["steps"][:1]), "steps must be distinct"),
        (forged_step(law="Pink"), "law must be one of"),
        (forged_step(law="__import__('os')"), "law must be one of"),
        (forged_step(law=["Airy"]), "law must be one of"),
        (forged_step(arguments=[]), "arguments must be an object"),
        (forged_step(arguments={}), "exactly one of"),
        (forged_step(arguments={"mean_abs": 0.1}), "as float.hex writes it"),
        (forged_step(arguments={"mean_abs": "0.1"}), "as float.hex writes it"),
        (forged_step(arguments={"mean_abs": "nan"}), "as float.hex writes it"),
        (forged_step(arguments={"mean_abs": "inf"}), "as float.hex writes it"),
        (forged_step(arguments={"mean_abs": "0x1p99999"}), "as float.hex writes it"),
        (forged_step(arguments={"mean_abs": (-1.0).hex()}), "mean_abs must be positive"),
        (forged_step(arguments={"colour": HEX_ONE}), "unexpected keyword"),
        (forged_step(arguments={"std": HEX_ONE, "scale": HEX_ONE}), "exactly one of"),
        (forged_step(sensitivity=(0.0).hex()), "sensitivity must be positive"),
        (forged_step(sensitivity=None), "as float.hex writes it"),
        (forged_step(sampling_rate=(1.5).hex()), "sampling_rate must be in"),
        (forged_step(sampling_rate=(0.0).hex()), "sampling_rate must be positive"),
        (forged_step(count=0), "count must be a positive integer"),
        (forged_step(count=True), "count must be a positive integer"),
        (forged_step(count=1.0), "count must be a positive integer"),
        (forged_step(count=2**63), "count must be at most"),
        (forged_step(extra=1), "must have the members"),
        (dumps(some()).replace('"count": 7', '"count": 8'), "sha256 must be"),
        (dumps(some()).replace("add-remove", "replace"), "sha256 must be"),
        ("\ud800", "text must be JSON"),
    ],
)
def test_foreign_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(pn.DomainError, match=message):
        loads(text)


def test_wrong_kinds() -> None:
    for text in (b"{}", None, 3, {}):
        with pytest.raises(TypeError, match="text must be a string"):
            loads(text)  # type: ignore[arg-type]


COSTS = [
    costs.Power(1.5),
    costs.Power(3.0, weight=0.1),
    costs.Log(),
    costs.Log(2.0, weight=1.0 / 3.0),
    costs.Power(1.0) + costs.Log(),
    costs.maximum(costs.Power(1.0), costs.Power(2.0)) + costs.Power(0.5),
    costs.maximum(costs.Power(2.0), costs.Power(1.0) + costs.Log()),
    costs.Stretched(costs.Log(), 0.3),
]


@pytest.mark.parametrize("cost", COSTS, ids=repr)
@pytest.mark.parametrize("bound", ["mean_cost", "theta", "std"])
def test_laws_of_costs_are_written(cost: costs.Cost, bound: str) -> None:
    law = pn.Schrodinger(cost=cost, **{bound: 2.1})
    accountant = pn.Accountant().compose(pn.Mechanism(law, 0.1), 9, 0.25)
    text = dumps(accountant)
    ((pair, count),) = loads(text)._steps
    assert (pair.noise, pair.noise.cost, count) == (law, law.cost, 9)
    assert pair.noise.mean_cost == law.mean_cost
    x = [0.0, 0.3, 2.0, 50.0]
    assert list(pair.noise.logpdf(x)) == list(law.logpdf(x))
    assert dumps(loads(text)) == text


def test_equal_laws_of_costs_have_one_text() -> None:
    """However they were asked for."""
    log = pn.Schrodinger(cost=costs.Log(), theta=2.0)
    power = pn.Schrodinger(cost=costs.Power(1.5), mean_cost=2.0)
    pairs = [
        (log, pn.Schrodinger(cost=costs.Log(), theta=2.0, scale=log.scale)),
        (power, pn.Schrodinger(cost=costs.Power(1.5), scale=power.scale)),
    ]
    for one, other in pairs:
        assert one == other
        assert repr(one) != repr(other)
        texts = {dumps(pn.Accountant().compose(pn.Mechanism(law))) for law in (one, other)}
        assert len(texts) == 1


def test_the_text_of_a_cost_is_what_the_documentation_says() -> None:
    cost = costs.maximum(costs.Power(2.0), costs.Stretched(costs.Log(), 4.0)) + costs.Power(1.0)
    law = pn.Schrodinger(cost=cost, theta=3.0, scale=2.0)
    (step,) = json.loads(dumps(pn.Accountant().compose(pn.Mechanism(law))))["steps"]
    one, two, three, four = (float.hex(number) for number in (1.0, 2.0, 3.0, 4.0))
    log = {"cost": "Log", "power": one, "weight": one}
    largest = [{"cost": "Power", "p": two, "weight": one}]
    largest.append({"cost": "Stretched", "of": log, "factor": four})
    terms = [{"cost": "Maximum", "terms": largest}, {"cost": "Power", "p": one, "weight": one}]
    assert step["arguments"] == {
        "cost": {"cost": "Sum", "terms": terms},
        "theta": three,
        "scale": two,
    }


@pytest.mark.parametrize(
    "cost",
    [
        costs.Custom(np.abs),
        costs.Power(1.0) + costs.Custom(np.abs),
        costs.Stretched(costs.Custom(np.abs), 2.0),
    ],
    ids=repr,
)
def test_functions_are_not_written(cost: costs.Cost) -> None:
    law = pn.Schrodinger(cost=cost, theta=1.0)
    with pytest.raises(pn.DomainError, match=r"made of Power, Log, .* to be written, got costs.Cu"):
        dumps(pn.Accountant().compose(pn.Mechanism(law)))


def test_a_subclass_of_a_cost_is_not_written() -> None:
    class Power(costs.Power):
        pass

    law = pn.Schrodinger(cost=Power(1.5), scale=1.0)
    with pytest.raises(pn.DomainError, match="to be written"):
        dumps(pn.Accountant().compose(pn.Mechanism(law)))


def forged_cost(cost: Any) -> str:
    return forged_step(law="Schrodinger", arguments={"cost": cost, "scale": HEX_ONE})


POWER = {"cost": "Power", "p": HEX_ONE, "weight": HEX_ONE}


def nested(levels: int) -> dict[str, Any]:
    cost: dict[str, Any] = POWER
    for level in range(levels):
        cost = {"cost": ("Sum", "Maximum")[level % 2], "terms": [cost]}
    return cost


def test_the_forged_costs_below_fail_for_one_reason_each() -> None:
    assert loads(forged_cost(POWER))
    assert loads(forged_cost({"cost": "Sum", "terms": [POWER]}))


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ({}, "cost must be one of Power, Log, LogCosh, Huber, Hinge, Piecewise, Sum, "),
        ([POWER], "as float.hex writes it"),
        (HEX_ONE, "cost must be callable"),
        (None, "as float.hex writes it"),
        ("abs", "as float.hex writes it"),
        ({**POWER, "cost": "Custom"}, "cost must be one of"),
        ({**POWER, "cost": "Cost"}, "cost must be one of"),
        ({**POWER, "cost": "numpy.abs"}, "cost must be one of"),
        ({**POWER, "cost": ["Power"]}, "cost must be one of"),
        ({"cost": "Power", "p": HEX_ONE}, "cost Power must have the members cost, p, weight"),
        ({**POWER, "more": HEX_ONE}, "must have the members"),
        ({**POWER, "p": 1.0}, "p must be a finite float as float.hex"),
        ({**POWER, "p": "0x1p+0"}, "as float.hex writes it"),
        ({**POWER, "p": (200.0).hex()}, "p must be in"),
        ({**POWER, "weight": (0.0).hex()}, "weight must be positive"),
        ({**POWER, "weight": POWER}, "as float.hex writes it"),
        ({"cost": "Log", "p": HEX_ONE, "weight": HEX_ONE}, "cost Log must have the members"),
        ({"cost": "Sum", "terms": []}, "terms must be a list of costs"),
        ({"cost": "Sum", "terms": POWER}, "terms must be a list of costs"),
        ({"cost": "Sum", "terms": [HEX_ONE]}, "a cost must be a JSON object"),
        ({"cost": "Sum", "terms": [POWER], "factor": HEX_ONE}, "must have the members"),
        ({"cost": "Sum", "terms": [{"cost": "Sum", "terms": [POWER]}]}, "in its simplest form"),
        ({"cost": "Stretched", "of": POWER, "factor": (-1.0).hex()}, "factor must be positive"),
        ({"cost": "Stretched", "of": HEX_ONE, "factor": HEX_ONE}, "must be a JSON object"),
        (nested(40), "at most 32 levels"),
    ],
)
def test_foreign_costs_are_refused(cost: Any, message: str) -> None:
    with pytest.raises(pn.DomainError, match=message):
        loads(forged_cost(cost))


def test_a_cost_is_no_size() -> None:
    with pytest.raises(pn.DomainError, match="mean_abs must be a"):
        loads(forged_step(arguments={"mean_abs": POWER}))


def test_a_law_that_is_not_listed_cannot_be_written() -> None:
    class Own(pn.Laplace):
        pass

    accountant = pn.Accountant().compose(pn.Mechanism(Own(scale=1.0)))
    with pytest.raises(pn.DomainError, match="to be written"):
        dumps(accountant)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(text=st.text())
@settings(deadline=None)
def test_random_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        loads(text)


@given(
    member=st.sampled_from(["format", "version", "adjacency", "steps", "sha256"]),
    value=json_values,
    seal=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_random_members(member: str, value: Any, seal: bool) -> None:
    found = json.loads(dumps(some()))
    found[member] = value
    check(sealed(found) if seal and member != "sha256" else json.dumps(found))


@given(
    member=st.sampled_from(["law", "arguments", "sensitivity", "sampling_rate", "count"]),
    value=json_values | positive.map(float.hex) | st.integers(1, 2**70),
)
@settings(max_examples=300, deadline=None)
def test_random_steps(member: str, value: Any) -> None:
    check(forged_step(**{member: value}))


numbers = st.sampled_from([0.0, 0.5, 1.0, 2.0, 12.0, 1e-300, 1e300]).map(float.hex)
almost_costs = st.recursive(
    st.fixed_dictionaries({"cost": st.just("Power"), "p": numbers, "weight": numbers})
    | st.fixed_dictionaries({"cost": st.just("Log"), "power": numbers, "weight": numbers})
    | json_values,
    lambda inner: (
        st.fixed_dictionaries(
            {"cost": st.sampled_from(["Sum", "Maximum"]), "terms": st.lists(inner, max_size=3)}
        )
        | st.fixed_dictionaries({"cost": st.just("Stretched"), "of": inner, "factor": numbers})
    ),
    max_leaves=4,
)


@example(
    cost={
        "cost": "Stretched",
        "of": {"cost": "Power", "p": (0.5).hex(), "weight": (1e-300).hex()},
        "factor": (1e-300).hex(),
    },
    strength={"theta": HEX_ONE},
)
@given(cost=almost_costs, strength=st.sampled_from([{}, {"theta": HEX_ONE}, {"mean_cost": "a"}]))
@settings(max_examples=100, deadline=None)
def test_random_costs(cost: Any, strength: dict[str, str]) -> None:
    arguments = {"cost": cost, **strength, "scale": HEX_ONE}
    check(forged_step(law="Schrodinger", arguments=arguments))


def check(text: str) -> None:
    """Either an accountant that writes itself again, or a ValueError."""
    try:
        accountant = loads(text)
    except ValueError as error:
        assert str(error)
        return
    assert dict(loads(dumps(accountant))._steps) == dict(accountant._steps)
    assert all(math.isfinite(pair.sensitivity) for pair, _ in accountant._steps)


@pytest.mark.parametrize(
    "law",
    [
        pn.UniformAtom(delta=1e-3),
        pn.Staircase(epsilon=0.7, power=2),
        pn.TruncatedLaplace(epsilon=1.0, delta=1e-4),
        pn.DiscreteLaplace(scale=2.0),
        pn.DiscreteStable(alpha=1.5, scale=4.0),
    ],
    ids=repr,
)
def test_designed_laws_and_lattices_are_written(law):
    mechanism = pn.Mechanism(law)
    for used in (mechanism, mechanism.on_lattice()):
        accountant = pn.Accountant().compose(used, 3)
        again = pn.Accountant.from_json(accountant.to_json())
        assert again.to_json() == accountant.to_json()
        assert again.delta(1.0) == accountant.delta(1.0)


def test_cactus_noise_is_written_by_itself_alone():
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=4, cells=32, tail_ratio=0.5)
    with pytest.raises(pn.DomainError, match="to be written, got Cactus"):
        pn.Accountant().compose(pn.Mechanism(law)).to_json()


def test_a_changed_integer_is_seen():
    text = pn.Accountant().compose(pn.Mechanism(pn.Laplace(scale=1.0)).on_lattice()).to_json()
    weight = re.search(r'weights\\":\\"([0-9a-f]+)', text).group(1)
    with pytest.raises(pn.DomainError):
        pn.Accountant.from_json(text.replace(weight, format(int(weight, 16) + 1, "x"), 1))
