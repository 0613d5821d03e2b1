"""The documentation site: `sphinx-build -c docs . site` builds it, with README.md as its first page.

The sources are the Markdown pages as they are in the repository, so that the links that GitHub follows are those of the
site. Sphinx finds the links and anchors that lead nowhere; `-W` makes them errors.
"""

import shutil
from pathlib import Path

from sphinx.application import Sphinx

from emu import __version__

project = "Emu"
author = project_copyright = "The Emu authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**"]
exclude_patterns = ["docs/img"]

myst_heading_anchors = 4  # as GitHub makes them
suppress_warnings = ["myst.header"]  # a page may leave out a level of headings
default_role = "py:obj"  # `emu.run` in a docstring is a link
autodoc_typehints = "none"  # docstrings give the types
# Names that share a description stay together, and attributes are a list.
napoleon_use_param = napoleon_use_rtype = False
napoleon_use_ivar = True

highlight_language = "none"  # of indented blocks, which are commands

html_theme = "furo"  # without files from other servers
html_title = f"Emu {__version__}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
toc_object_entries_show_parents = "hide"

CONTENTS = {
    "Start": "docs/tour docs/tutorials/own-scheduler docs/tutorials/size-a-cluster"
    " docs/tutorials/probes-behind-long-work docs/tutorials/judge-a-claim",
    "What is emulated": "docs/schedulers docs/workloads docs/own-logs docs/clusters docs/resources docs/dags"
    " docs/dag-network docs/coflows docs/dynamics",
    "Runs": "docs/clocks docs/sweeps docs/live docs/checkpoints docs/run-directories docs/trust",
    "Results": "docs/explain docs/plots docs/results docs/results/fidelity docs/results/phoenix docs/results/coflows"
    " docs/results/deadlines docs/results/dags",
    "Reference": "docs/reference/python docs/reference/configuration docs/reference/results docs/reference/events"
    " docs/environment",
    "Emu's code": "docs/architecture CONTRIBUTING CHANGELOG",
}


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add the contents of the site to README, which GitHub shows too and which therefore does not have them."""
    if docname == root_doc:
        for caption, pages in CONTENTS.items():
            lines = "\n".join(pages.split())
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"


def add_index(app: Sphinx, error: Exception | None) -> None:
    """Make README the page that a server shows for the folder."""
    if error is None and app.builder.format == "html":
        shutil.copy(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    """Connect the two functions above to what Sphinx does."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_index)
