"""What mkdocs calls while it builds the site: pages that live beside the code become pages of the site, and links
between files of the repository become links between pages.

A link to a file that is no page keeps its text and loses its target: the site stands alone. A link to a file that does
not exist ends the build.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# Files beside the code: the page of the site that each becomes.
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "client/README.md": "client.md",
    "examples/birthdays/README.md": "birthdays.md",
    "bench/results/peers.png": "assets/peers.png",
}
_SOURCES = {page: source for source, page in ELSEWHERE.items()}
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_BLOCK = re.compile(r"^(?P<fence>```+).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return with_links_of_the_site(markdown, page.file.src_uri)


def with_links_of_the_site(markdown: str, page: str) -> str:
    """Return the text of a page with its links as the site needs them. Code blocks stay as they are."""
    parts, end = [], 0
    for block in _BLOCK.finditer(markdown):
        parts += [_with_links(markdown[end : block.start()], page), block[0]]
        end = block.end()
    return "".join([*parts, _with_links(markdown[end:], page)])


def _with_links(text: str, page: str) -> str:
    return _LINK.sub(lambda link: _as_link_of_the_site(link, page), text)


def _as_link_of_the_site(link: re.Match[str], page: str) -> str:
    target, _, anchor = link["target"].partition("#")
    if not target or "://" in target or target.startswith("mailto:"):
        return link[0]
    source = _SOURCES.get(page, f"docs/{page}")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if not (ROOT / wanted).exists():
        raise PluginError(f"{source} links to {wanted}, which does not exist")
    if wanted in ELSEWHERE:
        inside = ELSEWHERE[wanted]
    elif wanted.startswith("docs/") and (ROOT / wanted).is_file():
        inside = wanted.removeprefix("docs/")
    else:
        return link["text"]
    relative = posixpath.relpath(inside, posixpath.dirname(page) or ".")
    return f"{link['image']}[{link['text']}]({relative}{'#' if anchor else ''}{anchor})"


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Stop the build if the navigation does not name a page."""
    named = {page.file.src_uri for page in nav.pages}
    forgotten = sorted({file.src_uri for file in files.documentation_pages()} - named)
    if forgotten:
        raise PluginError(f"not in the navigation of mkdocs.yml: {', '.join(forgotten)}")
    return nav
