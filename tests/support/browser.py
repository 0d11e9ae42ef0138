"""Finds Chromium."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """Returns the path of Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)
