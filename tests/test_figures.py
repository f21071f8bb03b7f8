"""Plots and figures: the numbers in them, and the files."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

import psinoise as pn

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from psinoise import _style, figures, plotting
from psinoise.figures import cactus, schrodinger, stable
from psinoise.noise import DESIGNED, FAMILIES, LAWS, Family

# Computed outside this package, direction remove: Airy by contour integration with other nodes,
# Laplace by a plain Fourier transform of its losses, connecting the dots, on grids of 1e-5 to 2e-6.
AIRY = {100: 0.20587318, 500: 0.46132589, 1000: 0.65747722, 2000: 0.94027041}
LAPLACE = {100: 0.2295470, 500: 0.5283332, 1000: 0.7573992, 2000: 1.0878258}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All figures in all formats, drawn once."""
    directory = tmp_path_factory.mktemp("figures") / "made" / "on demand"
    with pytest.MonkeyPatch.context() as patch:
        # Each takes seconds.
        patch.setattr(cactus, "_DEVIATIONS", (0.24, 0.51, 1.05))
        patch.setattr(cactus, "_COUNTS", (1, 5))
        patch.setattr(cactus, "_EPOCHS", (1, 2))
        patch.setattr(stable, "_EPSILONS", (0.1, 5.4, 5.5))
        written = figures.save_figures(directory, formats=figures.FORMATS)
    assert sorted(written) == sorted(directory.iterdir())
    return directory


def read(path: Path) -> tuple[list[str], dict[str, list[float]]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    notes = [line for line in lines if line.startswith("#")]
    header, *rows = csv.reader(lines[len(notes) :])
    columns = zip(*[[float(cell) for cell in row] for row in rows], strict=True)
    return notes, {name: list(column) for name, column in zip(header, columns, strict=True)}


@pytest.mark.deep
def test_every_figure_comes_with_its_data(folder: Path) -> None:
    names = {f"{name}.{end}" for name in figures.FIGURES for end in ("csv", *figures.FORMATS)}
    assert {path.name for path in folder.iterdir()} == names
    for name in figures.FIGURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert "<svg" in (folder / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.deep
def test_figure_2_has_the_anchors_of_the_paper(folder: Path) -> None:
    notes, data = read(folder / "schrodinger-2.csv")
    airy = dict(zip(data["compositions"], data["Airy"], strict=True))
    laplace = dict(zip(data["compositions"], data["Laplace"], strict=True))
    for count, epsilon in AIRY.items():
        assert airy[count] == pytest.approx(epsilon, abs=1e-7)
    for count, epsilon in LAPLACE.items():
        assert laplace[count] == pytest.approx(epsilon, abs=2e-6)
    assert any("both directions" in note and "larger" in note for note in notes)
    for condition in ("E|Z| = 2", "sensitivity 1", "rate 0.01", "delta 1e-08"):
        assert condition in notes[0]


def test_figure_2_covers_the_counts_of_the_paper() -> None:
    assert {*AIRY, *LAPLACE, 15, 16} <= set(schrodinger._COUNTS)
    assert list(schrodinger._COUNTS) == sorted(set(schrodinger._COUNTS))
    assert (schrodinger._COUNTS[0], schrodinger._COUNTS[-1]) == (1, 2000)


@pytest.mark.deep
def test_figure_2_rises_and_shows_where_airy_overtakes(folder: Path) -> None:
    _, data = read(folder / "schrodinger-2.csv")
    counts = np.array(data["compositions"])
    for law in ("Airy", "Laplace", "Gaussian"):
        assert np.all(np.diff(data[law]) > 0.0)
    assert counts[0] == 1
    assert counts[-1] == 2000
    ahead = np.array(data["Laplace"]) < np.array(data["Airy"])
    # One crossing, between neighboring counts, so that the title of the panel is exact.
    assert counts[ahead].max() == 15
    assert counts[~ahead].min() == 16
    # The Gaussian costs more than Airy everywhere.
    assert np.all(np.array(data["Gaussian"]) > np.array(data["Airy"]))


@pytest.mark.deep
def test_figure_1_has_densities_of_unit_mean(folder: Path) -> None:
    _, data = read(folder / "schrodinger-1.csv")
    x = np.array(data.pop("x"))
    assert set(data) == {"Laplace", "Airy", "Gaussian"}
    for law, values in data.items():
        density = np.array(values)
        # The trapezoidal rule on [-9, 9]; Laplace has a kink and exp(-9) of tail.
        assert trapezoid(density, x) == pytest.approx(1.0, abs=2e-4), law
        assert trapezoid(density * np.abs(x), x) == pytest.approx(1.0, abs=2e-3), law
    middle = len(x) // 2
    assert x[middle] == 0.0
    assert data["Airy"][middle] == pytest.approx(1.0 / 3.0, rel=1e-14)
    assert data["Laplace"][middle] == pytest.approx(0.5, rel=1e-14)


# -- the paper on the symmetric stable mechanism ---------------------------------------------------


@pytest.mark.deep
def test_stable_1_2_4_and_5_explain(folder: Path) -> None:
    _, data = read(folder / "stable-1.csv")
    one, other = (np.array(data[name]) for name in ("without", "with the record"))
    assert np.abs(np.log(other / one)).max() <= pn.Mechanism(
        pn.SymmetricStable(alpha=1.5, scale=1.0)
    ).pure_epsilon() * (1.0 + 1e-12)
    _, data = read(folder / "stable-2.csv")
    prior, upper = np.array(data["prior"]), np.array(data["epsilon=2"])
    inside = (prior > 0.0) & (prior < 1.0)
    odds = upper[inside] / (1.0 - upper[inside]) * (1.0 - prior[inside]) / prior[inside]
    np.testing.assert_allclose(odds, math.exp(2.0), rtol=1e-9)
    np.testing.assert_allclose(np.array(data["epsilon=2, lower"]), 1.0 - upper[::-1], atol=1e-12)
    _, data = read(folder / "stable-4.csv")
    t, wave = np.array(data["t"]), np.array(data["integrand"])
    density = float(trapezoid(wave, t)) / (2.0 * math.pi)
    assert density == pytest.approx(pn.SymmetricStable(alpha=1.5, scale=1.0).pdf(10.0), abs=1e-4)
    _, data = read(folder / "stable-5.csv")
    assert max(data["p1"]) == pytest.approx(max(data["p1, moved"]), rel=1e-12)


@pytest.mark.deep
def test_stable_3_has_the_closed_forms(folder: Path) -> None:
    _, data = read(folder / "stable-3.csv")
    x = np.array(data["x"])
    np.testing.assert_allclose(data["alpha=1"], 1.0 / (math.pi * (1.0 + x * x)), rtol=1e-14)
    normal = np.exp(-0.25 * x * x) / math.sqrt(4.0 * math.pi)
    np.testing.assert_allclose(data["alpha=2"], normal, rtol=1e-14)
    peak = math.gamma(1.0 + 1.0 / 1.5) / math.pi
    assert max(data["alpha=1.5"]) == pytest.approx(peak, rel=1e-14)


@pytest.mark.deep
def test_stable_6_and_7_show_bounded_losses(folder: Path) -> None:
    notes, data = read(folder / "stable-6.csv")
    x = np.array(data.pop("x"))
    np.testing.assert_allclose(data["alpha=2"], 0.5 * x, atol=1e-13)
    assert any("x / 2" in note for note in notes)
    for alpha in (1.0, 1.5, 1.9, 1.99):
        loss = np.array(data[f"alpha={alpha:g}"])
        np.testing.assert_allclose(loss, -loss[::-1], atol=1e-13)
        largest = pn.Mechanism(pn.SymmetricStable(alpha=alpha, scale=1.0)).pure_epsilon()
        # The points are 0.02 apart and the maximum is smooth.
        assert largest * (1.0 - 2e-4) < loss.max() <= largest
        # A peak, and back towards 0: what makes the loss of a sum bounded too.
        assert loss[-1] < 0.5 * loss.max()
    _, data = read(folder / "stable-7.csv")
    largest = [max(data[f"scale={scale:g}"]) for scale in (0.5, 1.0, 2.0, 4.0)]
    assert largest == sorted(largest, reverse=True)


@pytest.mark.deep
def test_stable_8_and_9_have_the_closed_form_and_its_limits(folder: Path) -> None:
    _, data = read(folder / "stable-8.csv")
    scale = np.array(data["scale"])
    assert (scale[0], scale[-1]) == (pytest.approx(0.01), pytest.approx(100.0))
    np.testing.assert_allclose(data["Laplace"], 1.0 / scale, rtol=1e-14)
    np.testing.assert_allclose(data["alpha=1"], 2.0 * np.arcsinh(0.5 / scale), rtol=1e-12)
    # "A vertical shift, as seen with alpha = 1.9": inversely proportional at large scales.
    shifted = np.array(data["alpha=1.9"]) * scale
    assert shifted[-21] == pytest.approx(shifted[-1], rel=0.001)
    notes, data = read(folder / "stable-9.csv")
    loss = np.array(data["alpha=1"])
    assert loss[0] == pytest.approx(data["small-scale limit"][0], abs=2e-4)
    assert loss[-1] == pytest.approx(data["large-scale limit"][-1], rel=1e-5)
    # Equation (95) as printed does not meet the loss; the note says so.
    gap = np.array(data["small-scale limit (95)"])[0] - loss[0]
    assert gap == pytest.approx(math.log(2.0), abs=2e-4)
    assert any("(95)" in note and "log 2 too large" in note for note in notes)


@pytest.mark.deep
def test_stable_10_and_table_1_have_the_numbers_of_the_paper(folder: Path) -> None:
    _, data = read(folder / "stable-10.csv")
    x, gamma = np.array(data["x"]), np.array(data["Gamma"])
    assert x[gamma.argmin()] == pytest.approx(1.462, abs=0.01)
    part = np.array(data["1 - 1/alpha"])
    assert part[np.isfinite(part)].min() == pytest.approx(1.7725, abs=5e-5)
    _, data = read(folder / "stable-table-1.csv")
    printed = {2: 1.1284, 1.999: 1.1289, 1.99: 1.1340, 1.95: 1.1576, 1.9: 1.1903, 1.8: 1.2687}
    distortion = dict(zip(data["alpha"], data["distortion"], strict=True))
    assert distortion.pop(1.0) == math.inf
    assert distortion == pytest.approx(printed, abs=6e-5)
    # "Differ only by 0.044 %", by the rounded entries; by these, 0.049 %.
    assert distortion[1.999] / distortion[2.0] - 1.0 == pytest.approx(4.9e-4, abs=1e-5)
    assert data["pure epsilon"][0] == math.inf
    assert data["pure epsilon"] == sorted(data["pure epsilon"], reverse=True)


@pytest.mark.deep
def test_stable_index_is_honest_beside_laplace(folder: Path) -> None:
    _, data = read(folder / "stable-index.csv")
    epsilon = np.array(data["epsilon"])
    assert np.all(np.diff(epsilon) > 0.0)
    # Stable noise overtakes Laplace once, between these.
    assert epsilon[np.array(data["stable"]) >= 1.0].max() == 5.4
    assert epsilon[np.array(data["stable"]) < 1.0].min() == 5.5
    # Nothing beats the staircase; Laplace is near it at small epsilon.
    for name in ("stable", "Laplace"):
        assert np.all(np.array(data[name]) >= np.array(data["Staircase"]))
    least = epsilon * np.exp(-0.5 * epsilon) / -np.expm1(-epsilon)
    np.testing.assert_allclose(data["Staircase"], least, rtol=1e-13)


@pytest.mark.deep
def test_schrodinger_costs_is_ordered_as_the_theorem_says(folder: Path) -> None:
    notes, data = read(folder / "schrodinger-costs.csv")
    laws = ("Gaussian", "Airy", "Laplace")
    for i, p in enumerate(data["p"]):
        information = {law: data[f"{law} information"][i] for law in laws}
        epsilon = {law: data[f"{law} epsilon"][i] for law in laws}
        optimal = {1.0: "Airy", 2.0: "Gaussian"}.get(p)
        for law in laws:
            if law == optimal:
                assert abs(information[law]) < 1e-12
                assert abs(epsilon[law]) < 1e-9
            else:
                # Next to an optimum the differences are small.
                assert information[law] > epsilon[law] > (0.0 if p % 0.5 else 1e-3)
        assert sorted(laws, key=information.__getitem__) == sorted(laws, key=epsilon.__getitem__)
    # The law of variance 1 and information 2; the maximum of the Airy law's own cost.
    assert data["Laplace information"][data["p"].index(2.0)] == pytest.approx(1.0, rel=1e-12)
    assert data["Gaussian information"][data["p"].index(1.0)] == pytest.approx(0.0159354, abs=1e-7)
    for condition in ("E|X|**p = 1", "delta 1e-06", "10000 uses", "0.01 standard deviations"):
        assert any(condition in note for note in notes)


@pytest.mark.deep
def test_same_data_same_file(folder: Path, tmp_path: Path) -> None:
    # A matter of dates and identifiers, not of numbers: the quick figure will do.
    figures.save_figures(tmp_path, ["schrodinger-1"], figures.FORMATS)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_unknown_names_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(pn.DomainError, match=r"figure must be one of schrodinger-1"):
        figures.save_figures(tmp_path / "new", ["schrodinger-3"])
    with pytest.raises(pn.DomainError, match=r"format must be one of png"):
        figures.save_figures(tmp_path / "new", ["schrodinger-1"], ["bmp"])
    assert not (tmp_path / "new").exists()


def test_plot_density_draws_the_density() -> None:
    ax = Figure().subplots()
    noise = pn.Airy(mean_abs=2.0)
    assert plotting.plot_density(noise, ax) is ax
    (line,) = ax.get_lines()
    x, y = line.get_data()
    np.testing.assert_array_equal(y, noise.pdf(x))
    assert noise.ccdf(x[-1] / 1.05) == pytest.approx(5e-5, rel=1e-6)
    assert x[0] == -x[-1]
    assert ax.get_yscale() == "linear"


MEMBERS = [*FAMILIES, *(Family(law, **law.representatives[0]) for law in DESIGNED)]


@pytest.mark.parametrize("family", MEMBERS, ids=lambda family: family.__name__)
@pytest.mark.parametrize("log", [False, True])
def test_every_law_plots_itself(family: Family, log: bool) -> None:
    law = family(scale=1.0) if family.law in LAWS else family()
    ax = Figure().subplots()
    assert law.plot(ax, log=log) is ax
    (line,) = ax.get_lines()
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    if law.for_whole_numbers:
        np.testing.assert_allclose(y, law.pmf(x), rtol=1e-9, atol=1e-16)  # type: ignore[attr-defined]
        assert (ax.get_ylabel(), line.get_drawstyle()) == ("Mass", "steps-mid")
    else:
        np.testing.assert_array_equal(y, law.pdf(x))
    # A picture of the law and not of one spike: half of its largest height is seen to be wide.
    assert np.mean(y > 0.5 * y.max()) > 0.025
    assert y.sum() * (x[1] - x[0]) > 0.9
    assert ax.get_yscale() == ("log" if log else "linear")


def test_an_atom_is_said_beside_the_name() -> None:
    law = pn.UniformAtom(delta=0.75)
    ax = law.plot(Figure().subplots())
    line, atom = ax.get_lines()
    assert line.get_label() == "UniformAtom, 0.5 at 0"
    assert list(atom.get_xdata()) == [0.0, 0.0]
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    # Uniform on [-1, 1] with half of the mass.
    np.testing.assert_allclose(y[np.abs(x) < 0.98], 0.25, rtol=1e-9)
    assert y[0] == y[-1] == 0.0


@pytest.mark.parametrize(
    "law",
    [
        pn.DiscreteLaplace(scale=1e9),
        pn.DiscreteLaplace(scale=0.01),
        pn.DiscreteStable(alpha=1.5, scale=2.0**40),
        pn.DiscreteStable(alpha=0.1, scale=2.0**-6),
        pn.UniformAtom(delta=1.0 - 1e-7),
    ],
    ids=repr,
)
def test_laws_of_any_size_are_drawn(law: pn.NoiseLaw) -> None:
    """Kills an array of all whole numbers (144 GiB), and axes of no width."""
    ax = law.plot(Figure().subplots())
    x = np.asarray(ax.get_lines()[0].get_xdata())
    assert 3 <= x.size <= 4001
    assert x[0] == -x[-1] < 0.0
    if law.for_whole_numbers:
        np.testing.assert_array_equal(x, np.rint(x))


def test_points_that_cannot_be_drawn_at() -> None:
    for x in ([], [[0.0, 1.0]], [math.nan, 1.0], [0.0, math.inf], [1.0, 0.0], [0.0, 0.0], 5.0):
        with pytest.raises(pn.DomainError, match="x must"):
            plotting.plot_density(pn.Airy(scale=1.0), x=x)
    with pytest.raises(pn.DomainError, match="x must reach a whole number"):
        plotting.plot_density(pn.DiscreteLaplace(scale=3.0), x=[0.2, 0.3])


def test_plot_density_of_several_laws_at_given_points() -> None:
    ax = Figure().subplots()
    laws = [pn.Laplace(scale=1.0), pn.Laplace(scale=2.0), pn.Laplace(scale=2.0)]
    plotting.plot_density(laws, ax, x=[0.0, 1.0], log=True)
    # One law drawn once, and told apart by its parameters.
    assert [line.get_label() for line in ax.get_lines()] == [repr(law) for law in laws[:2]]
    assert len({line.get_color() for line in ax.get_lines()}) == 2
    assert ax.get_yscale() == "log"


def test_plot_epsilon_draws_epsilons() -> None:
    ax = Figure().subplots()
    mechanisms = [pn.Mechanism(pn.Gaussian(std=5.0)), pn.Mechanism(pn.Airy(std=5.0))]
    assert plotting.plot_epsilon(mechanisms, [10, 100], 1e-6, ax=ax) is ax
    lines = ax.get_lines()
    assert [line.get_label() for line in lines] == ["Gaussian", "Airy"]
    expected = [mechanisms[0].composed(count).estimate.epsilon(1e-6) for count in (10, 100)]
    np.testing.assert_array_equal(lines[0].get_ydata(), expected)
    assert {text.get_text() for text in ax.texts} == {"Gaussian", "Airy"}


def test_new_axes_are_made_if_none_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    ax = plotting.plot_density(pn.Gaussian(std=1.0))
    assert pyplot.fignum_exists(ax.figure.number)
    pyplot.close(ax.figure)


def test_a_law_keeps_its_color() -> None:
    first, second = Figure().subplots(), Figure().subplots()
    plotting.plot_density([pn.Airy(std=1.0), pn.Laplace(std=1.0)], first)
    plotting.plot_density([pn.Laplace(std=2.0), pn.Airy(std=2.0)], second)
    colors = [
        {line.get_label(): line.get_color() for line in ax.get_lines()} for ax in (first, second)
    ]
    assert colors[0] == colors[1]


@pytest.mark.parametrize("heights", [[], [0.5], [0.5, 0.5, 0.5], [0.9, 0.1], [0.3, 0.31, 0.0]])
def test_labels_are_moved_apart_and_keep_their_order(heights: list[float]) -> None:
    moved = _style._spread(heights, 0.1)
    gaps = np.diff(sorted(moved))
    assert np.all(gaps > 0.1 - 1e-12)
    assert np.argsort(moved, kind="stable").tolist() == np.argsort(heights, kind="stable").tolist()
    assert math.fsum(moved) == pytest.approx(math.fsum(heights))


def test_labels_do_not_climb_into_the_title() -> None:
    assert _style._spread([0.98, 0.2, 0.99, 0.97], 0.1) == pytest.approx([0.9, 0.2, 1.0, 0.8])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda ax: plotting.plot_density([], ax), ValueError),
        (lambda ax: plotting.plot_density(["Airy"], ax), TypeError),
        (lambda ax: plotting.plot_epsilon([], [1], 0.1, ax=ax), ValueError),
        (lambda ax: plotting.plot_epsilon([pn.Airy(std=1.0)], [1], 0.1, ax=ax), TypeError),
        (
            lambda ax: plotting.plot_epsilon(pn.Mechanism(pn.Airy(std=1.0)), [], 0.1, ax=ax),
            ValueError,
        ),
    ],
)
def test_nothing_to_draw_is_an_error(call: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(Figure().subplots())  # type: ignore[operator]
