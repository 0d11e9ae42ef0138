"""Loads the scripts and stylesheets that the build has made from `web/`."""

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from weir.model.errors import WeirError


@dataclass(frozen=True, slots=True)
class WebAssets:
    """The script and the stylesheet of a page. A report contains their text. The live page loads them as files."""

    script: str
    style: str


def load_web_assets(page: str = "report") -> WebAssets:
    """Loads the script and the stylesheet of a page (`report` or `live`). Raises WeirError if the build is missing."""
    folder = files("weir") / "_web"
    texts = []
    for name, closing in ((f"{page}.js", "</script"), (f"{page}.css", "</style")):
        try:
            text = (folder / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError) as error:
            problem = f"{name}: not found in the installed weir, expected the built web bundle"
            hint = "in a checkout of weir, run: make setup; otherwise: pip install --force-reinstall weirbench"
            raise WeirError(problem, hint=hint) from error
        if closing in text.lower():
            problem = f"{name}: found {closing!r} inside the web bundle, expected none: the tag ends the bundle early"
            raise WeirError(problem, hint="make setup")
        texts.append(text)
    return WebAssets(*texts)


def hash_for_policy(text: str) -> str:
    """Returns a source for the Content-Security-Policy that allows only the given inline script or stylesheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
