"""Opens a page in a browser, records everything that it must not do, and checks its accessibility."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

HOSTILE = '</script><script>window.owned = 1</script><img src=x onerror="window.owned = 1">\'"&{{ 7 * 7 }}<!--'
"""Text that a page would run, or read as markup or as a template, if it does not escape the text."""
_AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


@dataclass
class Watched:
    """An open page with all forbidden actions that it did."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def opened(
    browser: Browser, path: Path, *, width: int = 1180, scheme: str = "light", scripts: bool = True
) -> Iterator[Watched]:
    """Opens `path` in a browser and waits until its charts are drawn."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=scripts,
    )
    watched = Watched(context.new_page())
    watched.page.on("request", lambda request: watched.requests.append(request.url))
    watched.page.on("console", lambda message: watched.complaints.append(message.text))
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.goto(path.as_uri())
    if scripts:
        watched.page.wait_for_selector("html[data-ready=true]")
    yield watched
    context.close()


def serious_barriers(page: Page) -> list[tuple[str, str, list[str]]]:
    """Returns serious accessibility problems of `page` that axe-core finds: (rule, impact, where). Skips the test if
    axe-core is missing."""
    if not _AXE.is_file():
        pytest.skip("axe-core is not installed; npm ci in web/")
    # The call uses the debugger's protocol, which the page's content security policy does not block.
    page.evaluate(_AXE.read_text())
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run()).violations")
    told = [(one["id"], one["impact"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found]
    return [one for one in told if one[1] in ("serious", "critical")]
