"""A built web bundle and a browser, for tests of the page; both may be missing, and then a line says what to install."""

import shutil
from collections.abc import Iterator
from importlib.resources import files

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def bundle() -> None:
    """The web bundle is there."""
    if not (files("weir") / "_web" / "report.js").is_file():
        pytest.skip("the web bundle is not built; `make setup` builds it")


@pytest.fixture(scope="session")
def browser(bundle: None) -> Iterator[Browser]:
    """Headless Chromium."""
    path = next((found for name in CHROMIUM_NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("chromium is not installed; apt-get install chromium")
    with sync_playwright() as playwright:
        # A container's root has no user namespace for the sandbox.
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()
