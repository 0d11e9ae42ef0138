"""Environment variables that weir reads. The docstrings are the text of docs/reference/environment.md."""

from enum import StrEnum


class Variable(StrEnum):
    """An environment variable and its effect."""

    CACHE = "WEIR_CACHE"
    """Folder for built stacks, database programs and filled datasets. Default: `weir` in the user's cache directory."""
    STACKS = "WEIR_STACKS"
    """Folders with your own stacks, separated by `:`. weir finds every `stack.toml` below these folders."""
    ENGINE = "WEIR_ENGINE"
    """Path of `weir-engine`. Default: the program in the folder of weir's Python, or else on the PATH."""
    POSTGRES_URL = "WEIR_POSTGRES_URL"
    """If set, weir uses your own PostgreSQL server at this URL:
    `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`."""
    MYSQL_URL = "WEIR_MYSQL_URL"
    """If set, weir uses your own MariaDB server at this URL: `mariadb://USER:PASSWORD@HOST:PORT/DATABASE`."""
    DEBUG = "WEIR_DEBUG"
    """If set, weir shows a traceback when weir itself has a defect."""
    CACHE_HOME = "XDG_CACHE_HOME"
    """The user's cache directory. Default: `~/.cache`."""
    JAVA_HOME = "JAVA_HOME"
    """The JDK that weir tries first for a stack. If this JDK is too old, weir tries other JDKs."""
    RAY_USE_TLS = "RAY_USE_TLS"
    """A variable of Ray for encrypted connections. Set `1` if the nodes of the cluster have the value `1`."""
    NO_COLOR = "NO_COLOR"
    """If set, weir prints no colour. The text without colour has the same information."""
    TERM = "TERM"
    """With the value `dumb`, weir prints each progress message on a new line and never redraws a line."""
    PATH = "PATH"
    """Folders in which weir looks for the programs that builds, stacks and services need."""
