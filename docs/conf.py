"""The site: pages in Markdown, the reference from docstrings, examples and notebooks that are run.

    sphinx-build -W --keep-going -n docs build/site

Links out of this folder, such as `../SECURITY.md`, work where the repository is read as files. Here
they become links to the repository, and one to a file that is not there is a warning.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import psinoise

HERE = Path(__file__).parent
ROOT = HERE.parent
REPOSITORY = "https://github.com/psinoise/psinoise"

project = "psinoise"
author = "The psinoise developers"
release = version = psinoise.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
]
exclude_patterns = ["**.ipynb_checkpoints"]
templates_path = ["_templates"]

# -- reference -------------------------------------------------------------------------------------

default_role = "py:obj"  # docstrings write `Mechanism.epsilon`
add_module_names = False
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # numpydoc sections say what is taken and returned
autosummary_imported_members = True
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_xref_param_type = False

# -- pages -----------------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # a cell, on a busy machine
nb_output_stderr = "remove-warn"

# -- looks -----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "psinoise"
html_copy_source = False
html_theme_options = {
    "github_url": REPOSITORY,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
project_copyright = "The psinoise developers, Apache-2.0"

# -- links to files beside this folder -------------------------------------------------------------

_OUTWARDS = re.compile(r"\]\((?:\.\./)+([^)#\s]+)(#[^)\s]*)?\)")


def to_the_repository(_: Any, page: str, source: list[str]) -> None:
    """Let a link from a page to a file outside this folder lead to the repository."""

    def absolute(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(HERE / Path(page).parent / link[0][2:-1].split("#")[0]))
        if HERE in target.parents or not target.exists():
            return link[0]  # within the site, or for the check of links to find
        kind = "tree" if target.is_dir() else "blob"
        path = target.relative_to(ROOT).as_posix()
        return f"]({REPOSITORY}/{kind}/main/{path}{link[2] or ''})"

    source[0] = _OUTWARDS.sub(absolute, source[0])


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("source-read", to_the_repository)
