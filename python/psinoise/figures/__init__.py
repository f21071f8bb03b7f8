"""Figures of the papers, drawn again from this library, with the data behind them.

The figures of one paper are one module: `schrodinger`, `stable`, `cactus`, `uniform`;
`stable_concepts` has those of the second that explain. `optimality`
shows theorems of the first for costs that it does not draw, and `unimodal` what no paper has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from psinoise import _validate, plotting
from psinoise.figures import (
    cactus,
    optimality,
    schrodinger,
    stable,
    stable_concepts,
    uniform,
    unimodal,
)
from psinoise.figures._figure import FigureData, PaperFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "FORMATS", "FigureData", "PaperFigure", "save_figures"]

FORMATS = ("png", "svg", "pdf")
_PIXELS_PER_INCH = 200

#: The figures by the names that the command line uses.
FIGURES: dict[str, PaperFigure] = {
    **schrodinger.FIGURES,
    **optimality.FIGURES,
    **stable_concepts.FIGURES,
    **stable.FIGURES,
    **cactus.FIGURES,
    **uniform.FIGURES,
    **unimodal.FIGURES,
}


def save_figures(
    directory: str | Path,
    names: Iterable[str] | None = None,
    formats: Sequence[str] = ("png",),
    *,
    progress: bool = True,
) -> list[Path]:
    """Draw figures into files, each with its data as a CSV file beside it.

    Parameters
    ----------
    directory : str or Path
        Made if it does not exist.
    names : iterable of str, optional
        Keys of :data:`FIGURES`; None draws all.
    formats : sequence of str
        Of "png", "svg" and "pdf".
    progress : bool
        Show progress on standard error if it is a terminal and tqdm is installed.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    DomainError
        For a name or a format that does not exist.
    OSError
        If a file cannot be written.
    """
    chosen = [_validate.choice("figure", name, FIGURES) for name in FIGURES if names is None]
    chosen += [_validate.choice("figure", name, FIGURES) for name in dict.fromkeys(names or ())]
    endings = [_validate.choice("format", ending, FORMATS) for ending in dict.fromkeys(formats)]
    progress = _validate.flag("progress", progress)
    plotting.require_matplotlib()
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in chosen:
        data = FIGURES[name].compute(progress)
        written.append(folder / f"{name}.csv")
        data.save(written[-1])
        figure = FIGURES[name].draw(data)
        for ending in endings:
            written.append(folder / f"{name}.{ending}")
            _save(figure, written[-1])
    return written


def _save(figure: Figure, path: Path) -> None:
    import matplotlib  # optional, and slow to import

    # No dates and no random identifiers: the same data give the same file.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with matplotlib.rc_context({"svg.hashsalt": "psinoise", "pdf.fonttype": 42}):
        figure.savefig(path, dpi=_PIXELS_PER_INCH, metadata=metadata)
