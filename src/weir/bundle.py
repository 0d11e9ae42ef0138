"""The scripts and the stylesheets that `web/` is built into, as they travel with the package."""

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from weir.model.errors import WeirError


@dataclass(frozen=True, slots=True)
class Bundle:
    """A page's script and stylesheet: inlined into a report, served beside the live page."""

    script: str
    style: str


def load_bundle(page: str = "report") -> Bundle:
    """The built bundle of a page, `report` or `live`.

    Raises:
        WeirError: it was not built.
    """
    folder = files("weir") / "_web"
    texts = []
    for name, closing in ((f"{page}.js", "</script"), (f"{page}.css", "</style")):
        try:
            text = (folder / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError) as error:
            hint = "in a checkout: make setup; else: pip install --force-reinstall weirbench"
            raise WeirError(f"{name}: not found in the installed weir, expected the built web bundle", hint=hint) from error
        if closing in text.lower():
            raise WeirError(f"{name}: found {closing!r} inside the web bundle, which would end it early in a page", hint="make setup")
        texts.append(text)
    return Bundle(*texts)


def policy_hash(text: str) -> str:
    """The Content-Security-Policy source that allows exactly this inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
