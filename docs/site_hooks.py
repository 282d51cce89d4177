"""What MkDocs does beside rendering: links that lead out of docs/ are checked, and shown as paths.

In the repository such a link works as it stands; the site has no place for the file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replace links to files outside docs/; one that leads nowhere fails the build."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def shown(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[2]))
        if path.startswith("docs/"):
            return found[0]
        if not (ROOT / path).exists():
            raise PluginError(f"{page.file.src_uri}: the link to {found[2]} leads to no file")
        text = found[1].strip("`")
        return f"`{path}`" if text == path else f"{found[1]} (`{path}`)"

    return LINK.sub(shown, markdown)
