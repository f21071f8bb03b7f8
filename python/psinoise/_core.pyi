"""The contract between Python and the kernels.

Two modules satisfy it: the extension ``_core`` and the package ``reference``. Arrays are
C-contiguous and of the exact dtype; nothing is converted, copied or validated beyond that, and no
argument has a default. ``key`` is always 32 bytes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# rows of shape (1 + 2**bits exponents, 12), and two more for each part of a panel that is cut: its
# row, and (panel, position, own row, center, one over half width, ..., NaN); first exponent; bits
_Panels = tuple[NDArray[np.float64], int, int]
# entries, heights, base edge, depth of the base edge: -log(2 P(X > edge))
_Ziggurat = tuple[NDArray[Any], NDArray[np.float64], float, float]

class _PybindType(type):
    """The class of the extension's classes; of the twins' it is ``type``."""

class LawTable(metaclass=_PybindType):
    """The compiled tables of one standardized law; immutable."""

    def __init__(
        self,
        log_density: _Panels,
        log_mills: _Panels,
        tail_quantile: _Panels,
        central_quantile: _Panels,
        wide: _Ziggurat,
        narrow: _Ziggurat,
    ) -> None: ...
    def close_error(self, scale: float, shift: float, rate: float) -> float:
        """How far log ratios of neighbors may be off that are so close that these are found from
        differences on panels; 0 of others."""

def sample(
    law: LawTable, key: bytes, first: int, scale: float, out: NDArray[Any], threads: int
) -> None:
    """Elements first, first + 1, ... of the key's stream times scale, into float64 or float32."""

class CellTable(metaclass=_PybindType):
    """Cells of a piecewise constant law and the columns that choose among them; immutable.

    Cells from ``tail_first`` on repeat every ``tail_period``, each time ``exp(-tail_rate)`` times
    as likely. With a ``step`` above 0 cell k is ``[(k - 1/2) step, (k + 1/2) step]``, and starts
    and widths are not read. csrc/kernels/tables.hpp has the layout of entries and fractions.
    """

    def __init__(
        self,
        entries: NDArray[np.uint64],
        fractions: NDArray[np.uint64],
        starts: NDArray[np.float64],
        widths: NDArray[np.float64],
        step: float,
        tail_first: int,
        tail_rate: float,
        tail_period: float,
    ) -> None: ...

def sample_cells(
    table: CellTable, key: bytes, first: int, scale: float, out: NDArray[Any], threads: int
) -> None:
    """Elements first, first + 1, ... of the key's stream times scale, into float64 or float32."""

class CellLaw(metaclass=_PybindType):
    """The same law as it is evaluated: edges of the cells of ``|X|``, masses, their sums above and
    below each edge, log densities and one more beyond the support; immutable."""

    def __init__(
        self,
        edges: NDArray[np.float64],
        masses: NDArray[np.float64],
        above: NDArray[np.float64],
        below: NDArray[np.float64],
        log_densities: NDArray[np.float64],
        atom: float,
        repeated: int,
        rate: float,
        period: float,
        right_closed: bool,
    ) -> None: ...

def evaluate_cells(
    law: CellLaw,
    quantity: str,
    scale: float,
    x: NDArray[Any],
    out: NDArray[Any],
    threads: int,
) -> None:
    """What evaluate gives of a smooth density, of a law in cells."""

def inverse_survival_cells(
    law: CellLaw, scale: float, probability: NDArray[Any], out: NDArray[Any], threads: int
) -> None:
    """What inverse_survival gives of a smooth density, of a law in cells."""

def lattice_columns(weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Columns of the alias method for up to 2**20 weights that add up to a power of two, at most
    2**63: thresholds above the bits of the column, aliases in them."""

class LatticeTable(metaclass=_PybindType):
    """A law of integers, symmetric about 0, with its columns; immutable.

    weights[k] is for |K| = k. The last ``repeated`` stand for copies as well, of which each has one
    more with probability ratio / 2**64: moved by ``repeated`` ("translate"), or twice as wide
    ("dilate"); or all but the first for as many integers of that probability, a power of two, one
    after the other ("blocks"). csrc/kernels/lattice.hpp has the meaning of the bits.
    """

    def __init__(
        self, weights: NDArray[np.uint64], tail: str, repeated: int, ratio: int
    ) -> None: ...
    def with_rest(self, rest: LatticeTable) -> LatticeTable:
        """The same law, whose last integer stands for a draw from another; neither has a tail."""
    def plus(self, other: LatticeTable, shift: int) -> LatticeTable:
        """The sum with 2**shift times another law, both without tails and within 2**60. Digit j of
        a sum is drawn from the elements from j 2**48 on."""

def lattice_choices(table: LatticeTable, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The listed integers, with their signs, that words choose in a table that is no sum."""

class SecretKey(metaclass=_PybindType):
    """32 bytes from the operating system (None), or those of a replay; overwritten when it goes. An
    OSError where the system has no entropy to give."""

    def __init__(self, key: bytes | None) -> None: ...

def lattice_noise(
    table: LatticeTable, key: SecretKey | bytes, first: int, out: NDArray[np.int64], threads: int
) -> None:
    """Integers of elements first, first + 1, ... of the key's stream, by ChaCha20."""

def all_finite(x: NDArray[Any]) -> bool:
    """Whether all of float64 or float32 values are; takes as long wherever one is not."""

def lattice_cells(
    x: NDArray[Any], grid: float, low: float, high: float, out: NDArray[np.int64]
) -> None:
    """The multiples of the grid that lattice_release adds noise to, of float64 or float32."""

def lattice_release(
    table: LatticeTable,
    key: SecretKey | bytes,
    first: int,
    x: NDArray[Any],
    grid: float,
    low: float,
    high: float,
    out: NDArray[Any],
    threads: int,
) -> None:
    """Values clipped to bounds (whole numbers for int64) and rounded half up to multiples of the
    grid, plus the integers of lattice_noise; from float64, float32 or int64 into the
    same type, or from int64 into float64. NaN becomes the lower bound."""

def evaluate(
    law: LawTable,
    quantity: str,
    scale: float,
    x: NDArray[Any],
    out: NDArray[Any],
    threads: int,
) -> int:
    """pdf, logpdf, cdf, ccdf, logcdf or logccdf at x, both of float64 or float32; returns the
    number of points beyond the tables, where out is NaN."""

def inverse_survival(
    law: LawTable, scale: float, probability: NDArray[Any], out: NDArray[Any], threads: int
) -> None:
    """Points with the given upper tail probabilities; float64 or float32, as for evaluate."""

def ziggurat(log_density: _Panels, log_mills: _Panels, edge: float, layers: int) -> _Ziggurat:
    """Strips of equal area for the edge of strip 0, with 2048 layers (uint64 entries) or 1024
    (uint32); the last height is infinite if the edge is too small."""

def panel_values(
    rows: NDArray[np.float64], first_exponent: int, bits: int, t: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Values of one panel table; NaN outside it."""

def exponential(hi: NDArray[np.float64], lo: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(hi + lo), the same bits on every machine."""

def logarithm(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(x), the same bits on every machine."""

def log_one_plus(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(1 + x), the same bits on every machine."""

def stable_sums(
    alpha: float,
    above_one: float,
    below_two: float,
    log_y_hi: NDArray[np.float64],
    log_y_lo: NDArray[np.float64],
    start: NDArray[np.float64],
    step: float,
    count: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Sums of the integrands for density, survival function and slope of the symmetric stable law
    of index alpha at the nodes start + k step, k < count, for each log y; see math/stable.hpp."""

def riccati(
    half: NDArray[np.float64],
    potential_hi: NDArray[np.float64],
    potential_lo: NDArray[np.float64],
    cost: NDArray[np.float64],
    guess: NDArray[np.float64],
    start: NDArray[np.float64],
    matrix_hi: NDArray[np.float64],
    matrix_lo: NDArray[np.float64],
    refinements: int,
) -> tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]:
    """r, m and s with r' = r^2 - Q, m' = 2 r m - 1, s' = 2 r s - c as pairs at the nodes of panels,
    from the start values at the right end inward; NaN from the first panel that has no solution."""

def ground_state(
    edges: NDArray[np.float64],
    center: NDArray[np.float64],
    inverse_unit: NDArray[np.float64],
    integral_hi: NDArray[np.float64],
    integral_lo: NDArray[np.float64],
    mills: NDArray[np.float64],
    t: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The integral of r = -y'/y from 0 to t as hi and lo, r, and the Mills ratio of y^2."""

def characteristic(
    weights: NDArray[np.float64], losses: NDArray[np.float64], step: float, count: int
) -> NDArray[np.complex128]:
    """sum_j weights[j] (exp(i m step losses[j]) - 1) for m = 0, ..., count - 1; not bit-equal
    between the two back ends, but to a few ulp of the largest term."""

def wave_sums(
    terms: NDArray[np.complex128], turn: float, places: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The real part of sum_m terms[r, m] exp(i m turn places[k]) for each row r, one or two, and
    each k; to the error stated in csrc/kernels/characteristic.cpp, for angles up to 2^18."""

class Transform(metaclass=_PybindType):
    """Real Fourier transforms of one length, a power of two or three times one; roots of unity and
    room to work in."""

    def __init__(self, size: int) -> None: ...
    @property
    def size(self) -> int: ...
    def compose_into(
        self, masses: NDArray[np.float64], count: int, product: NDArray[np.complex128]
    ) -> None:
        """product *= transform(masses) ** count; to the error stated in csrc/math/fft.hpp."""
    def inverse(
        self,
        spectra: NDArray[np.complex128],
        factors: NDArray[np.complex128] | None = None,
        out: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Of spectra along the last axis, which are 0 beyond it, times factors: the sums of
        spectrum[k] e^{2 pi i j k / size} over the k of both signs. The first number of a spectrum,
        and the last one if none is left out, must be real; `out` must not overlap the others."""

def binned_products(
    loss_a: NDArray[np.float64],
    point_a: NDArray[np.float64],
    mass_a: NDArray[np.float64],
    loss_b: NDArray[np.float64],
    point_b: NDArray[np.float64],
    mass_b: NDArray[np.float64],
    edges: NDArray[np.float64],
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """For every pair of nodes whose losses, or the points near these, add up to a number in
    [edges[k], edges[k + 1]), losses, points and edges being in ascending order: the sum of the
    products of the masses, that of the products times t, at least that times t**2, t = losses -
    edges[k], and a number with t >= -number. Sums beyond the edges count in the bins at the ends;
    csrc/losses/binned_products.cpp has the error."""

def placed_sums(
    values: NDArray[np.float64],
    places: NDArray[np.int64],
    weights: NDArray[np.float64],
    count: int,
) -> NDArray[np.float64]:
    """For 0 <= j < count the sum of weights[i] * values[places[i] + j], its terms in their
    order."""

def largest_rows(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each interval of a period the first row for which the sum of two functions, at both ends,
    is largest."""

def missing_near(
    values: NDArray[np.float64], other: NDArray[np.float64], margin: float, reach: int
) -> NDArray[np.float64]:
    """How far values on a period are above others, with a margin for each bend of these: the most
    of what is near each point, up to so many points away. What is no number is passed over."""

def peaks_above(
    values: NDArray[np.float64],
    other: NDArray[np.float64],
    added: NDArray[np.float64],
    held: NDArray[np.int64],
    sign: float,
) -> NDArray[np.float64]:
    """For every row of values on a period the largest, over neighboring points, of d at either of
    them, an eighth of the larger 2 d[i] - d[i - 1] - d[i + 1] at them, if positive, and what is
    added between them, a number for so many intervals, a power of two; d = sign * (values - other).
    Of points from which a row is held to the next, unless held is empty; -inf for a row without
    any, and NaN where something is not finite."""

def suffix_sums(
    loss: NDArray[np.float64], mass: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Over the nodes from each on, in order of rising loss: the sum of the masses, and that of
    mass * (1 - exp(loss of the first - loss))."""

def excess_above(
    loss: NDArray[np.float64],
    total: NDArray[np.float64],
    excess: NDArray[np.float64],
    offset: NDArray[np.float64],
    weight: NDArray[np.float64],
    points: NDArray[np.float64],
) -> NDArray[np.float64]:
    """For each point the sum, over offsets that rise, of weight times the sum of
    mass * (1 - exp(point - offset - loss)) over the losses above point - offset: losses that rise
    and what `suffix_sums` finds for them."""

def loss_panels(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    points: NDArray[np.float64],
    last: NDArray[np.float64],
    edges: NDArray[np.float64],
    floor: float,
) -> (
    tuple[
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
    ]
    | None
):
    """Ends of panels that resolve log Q and the loss, these at the nodes of each, whether the loss
    is constant on a panel, and whether outputs do not resolve it; None beyond the table. To 1e-15,
    and panels differ where a criterion is met to rounding."""

def point_losses(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    x: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """log Q, the loss without sampling, and the loss at any points; NaN beyond the table."""

def panel_pieces(
    log_mass: NDArray[np.float64],
    loss: NDArray[np.float64],
    panels: int,
    order: int,
    c: float,
    value: float,
    frequency: float,
) -> NDArray[np.int64]:
    """Into how many pieces panels, whose nodes come first, must be cut to resolve
    exp((c + i t) loss) for |t| <= frequency where the tilted mass is not negligible."""

def loss_bins(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    x: NDArray[np.float64],
    loss: NDArray[np.float64],
    slope: NDArray[np.float64],
    levels: NDArray[np.float64],
    tilt: float,
    log_norm: float,
    tolerance: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Tilted masses and excesses of the bins between levels, of losses with samples at both ends
    and between of each panel, and the largest error of the loss at the end of a bin; to 1e-14."""

def graded_edges(
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    log_mass: NDArray[np.float64],
    step: float,
    offset: float,
    rounding: float,
    tilt: float,
    log_norm: float,
) -> NDArray[np.int64]:
    """Nodes that end bins of widths 1, 2, 4, ..., 256 steps, by the tilted mass around them. Widths
    may differ where a mass is at a limit to some ulp."""

def log_mgf(mass: NDArray[np.float64], places: NDArray[np.int64], s: float) -> float:
    """log sum_j mass[j] exp(s places[j]), masses being non-negative; to some ulp, minus infinity
    where there is no mass."""

def tilted_moments(
    log_mass: NDArray[np.float64],
    mass: NDArray[np.float64],
    loss: NDArray[np.float64],
    c: float,
    drift: float,
    lost: float,
) -> tuple[float, float, float, float]:
    """Largest exponent, excess, mean and square of a tilted loss (csrc/kernels/cumulants.cpp); to
    some ulp of sums of positive terms."""

def balanced_nodes(
    mass: NDArray[np.float64], excess: NDArray[np.float64], widths: NDArray[np.float64], tilt: float
) -> NDArray[np.float64]:
    """Balanced contraction of loss bins onto the nodes of a lattice; to a few ulp."""

def band_cholesky(band: NDArray[np.float64]) -> bool:
    """Replace a band matrix, ``band[j, d] = A[j + d, j]`` of shape ``(size, width + 1)``, by its
    Cholesky factor; False if it is not positive definite. Like the three below, equal between the
    back ends to rounding."""

def band_forward(band: NDArray[np.float64], right: NDArray[np.float64]) -> None:
    """Replace each row of ``right`` by ``L^-1`` times it."""

def band_backward(band: NDArray[np.float64], right: NDArray[np.float64]) -> None:
    """Replace each row of ``right`` by ``L'^-1`` times it."""

def gram(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of all pairs of rows."""

def stream_words(key: bytes, rounds: int, first: int, count: int) -> NDArray[np.uint64]:
    """First words of elements first, ..., first + count - 1."""

def chacha_block(key: bytes, rounds: int, counter: int, nonce: int) -> NDArray[np.uint32]:
    """One ChaCha block."""

def build_config() -> dict[str, Any]:
    """Back end, instruction-set level and compiler."""
