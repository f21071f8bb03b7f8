"""Accountants as text: exact, canonical, and closed to everything else."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psinoise as pn
from psinoise.noise import FAMILIES

Steps = list[tuple[type[pn.Noise], float, float, float, int]]

dumps, loads = pn.Accountant.to_json, pn.Accountant.from_json

positive = st.floats(1e-300, 1e300)
steps_of_any_kind = st.lists(
    st.tuples(
        # Costs are functions: an accountant of them is not written.
        st.sampled_from([family for family in FAMILIES if "cost" not in family.shape]),
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
    assert again.epsilon(1e-6, method="estimate") == accountant.epsilon(1e-6, method="estimate")


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
        (forged(adjacency="add"), "adjacency must be one of"),
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


def test_a_law_that_is_not_listed_cannot_be_written() -> None:
    class Own(pn.Laplace):
        pass

    accountant = pn.Accountant().compose(pn.Mechanism(Own(scale=1.0)))
    with pytest.raises(pn.DomainError, match="LAWS"):
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


def check(text: str) -> None:
    """Either an accountant that writes itself again, or a ValueError."""
    try:
        accountant = loads(text)
    except ValueError as error:
        assert str(error)
        return
    assert dict(loads(dumps(accountant))._steps) == dict(accountant._steps)
    assert all(math.isfinite(pair.sensitivity) for pair, _ in accountant._steps)
