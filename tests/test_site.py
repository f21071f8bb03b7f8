"""The sources of the site: a page and an example for every public name, and links that lead on.

Sphinx itself runs in CI, with warnings as errors; this needs nothing that it needs.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
from pathlib import Path

import psinoise

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Modules beside those in ``psinoise.__all__`` all of whose names are public. (Rooms such as
#: ``noise`` have names for the rooms above them; what is public of those stands on the pages.)
SUBMODULES = (
    *("psinoise.accounting.hypotheses", "psinoise.plotting", "psinoise.testing"),
    *(f"psinoise.adapters.{name}" for name in ("arrays", "dask", "dp_accounting", "opacus")),
)


def public_names():
    """Modules by name, with their public names."""
    inner = [name for name in psinoise.__all__ if inspect.ismodule(getattr(psinoise, name))]
    found = {"psinoise": [name for name in psinoise.__all__ if name not in inner]}
    modules = [getattr(psinoise, name) for name in inner]
    modules += [importlib.import_module(name) for name in SUBMODULES]
    found.update({module.__name__: module.__all__ for module in modules})
    return found


def pages():
    """Full names that the reference pages make a page of, and modules that they show."""
    names, modules = set(), set()
    for path in (DOCS / "reference").glob("*.md"):
        module = None
        for line in path.read_text(encoding="utf-8").splitlines():
            if heading := re.match(r"\.\. (currentmodule|automodule):: (\S+)", line):
                module = heading[2]
                modules |= {module} if heading[1] == "automodule" else set()
            elif entry := re.match(r"   (\w+)$", line):
                names.add(f"{module}.{entry[1]}")
            assert not line.startswith("   ~"), f"{line} would be looked for in {module}"
    return names, modules


def without_example(module, names):
    """Names without an example of their own; a constant may be in an example of its module."""
    texts = [module.__doc__ or ""]
    texts += [inspect.getdoc(found) or "" for _, found in inspect.getmembers(module)]
    examples = "\n".join(re.findall(r"^\s*(?:>>>|\.\.\.) (.*)", "\n".join(texts), re.MULTILINE))
    missing = []
    for name in names:
        found = getattr(module, name)
        if inspect.isclass(found) or inspect.isroutine(found):
            good = ">>> " in (inspect.getdoc(found) or "")
        else:
            good = re.search(rf"\b{name}\b", examples)
        missing += [] if good else [f"{module.__name__}.{name}"]
    return missing


def test_every_public_name_has_a_page_with_an_example():
    """Examples run in test_docs, which finds them in every module."""
    entries, shown = pages()
    public = public_names()
    missing = []
    for name, names in public.items():
        missing += [
            f"{name}.{inner}: no page" for inner in names if f"{name}.{inner}" not in entries
        ]
        lacking = without_example(importlib.import_module(name), names)
        missing += [f"{inner}: no example" for inner in lacking]
    missing += [f"{name}: its text is on no page" for name in set(public) - {"psinoise"} - shown]
    assert missing == []


def test_a_name_without_a_page_or_an_example_would_be_seen():
    entries, shown = pages()
    assert len(entries) > 80
    assert "psinoise.Airy" in entries
    assert "psinoise.Airy2" not in entries
    assert "psinoise.sampling" in shown
    module = type(re)("made_up")
    module.plain = lambda: None
    module.CONSTANT = 3
    assert without_example(module, ["plain", "CONSTANT"]) == [
        "made_up.plain",
        "made_up.CONSTANT",
    ]
    module.__doc__ = "Text.\n\n>>> CONSTANT\n3\n"
    assert without_example(module, ["CONSTANT"]) == []


def headings(path):
    """Anchors of a page, as GitHub and MyST make them."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(path):
    """Links of a page to files and headings that are not there."""
    text = re.sub(r"```(?!\{).*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        there = Path(os.path.normpath(path.parent / name)) if name else path
        if not there.exists() or (anchor and anchor not in headings(there)):
            found.append(f"{path.relative_to(ROOT)}: {target}")
    return found


def test_links_between_files_lead_somewhere(tmp_path):
    texts = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    assert [
        link for path in texts if "generated" not in path.parts for link in broken_links(path)
    ] == []
    page = ROOT / "CONTRIBUTING.md"
    assert "set-up" in headings(page)
    assert "set-down" not in headings(page)


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for path in DOCS.rglob("*.md"):
        for block in re.findall(r"```\{toctree\}(.*?)```", path.read_text("utf-8"), re.DOTALL):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {os.path.normpath(path.parent / line) for line in lines}
    written = {str(p.with_suffix("")) for p in [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]}
    assert {os.path.relpath(page, DOCS) for page in written - listed} == {"index"}


def test_notebooks_are_stored_without_what_they_print():
    books = sorted((DOCS / "notebooks").glob("*.ipynb"))
    assert len(books) >= 2
    for book in books:
        for cell in json.loads(book.read_text("utf-8"))["cells"]:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None


def test_the_readme_works_on_the_package_index():
    """The links that the workflow of the wheels writes: absolute, and to files that there are."""
    workflow = (ROOT / ".github/workflows/wheels.yml").read_text("utf-8")
    script = re.search(r"README_LINKS: >-\n((?: {4,}.*\n)+)", workflow)
    text = (ROOT / "README.md").read_text("utf-8")
    for pattern, result in re.findall(r"s#(.*?)#(.*?)#g?", script[1]):
        text = re.sub(pattern, result, text)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 10
    for link in links:
        place = re.match(r"https://[\w.]+/REPOSITORY/(?:blob/)?REF/([^#]+)", link)
        assert place, link
        assert (ROOT / place[1]).exists(), link
    assert re.search(r"!\[[^\]]*\]\(https://raw", text), "the picture"
