"""Where a Chromium is."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """The program, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)
