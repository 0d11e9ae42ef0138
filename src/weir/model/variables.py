"""Environment variables that weir reads, with the text of docs/reference/environment.md."""

from enum import StrEnum


class Variable(StrEnum):
    """An environment variable and its effect."""

    CACHE = "WEIR_CACHE"
    """Folder for built stacks, database programs and filled datasets. Default: `weir` in the user's cache directory."""
    STACKS = "WEIR_STACKS"
    """Folders with your own stacks, separated by `:`. weir finds every `stack.toml` below them."""
    ENGINE = "WEIR_ENGINE"
    """Path of `weir-engine`. Default: the program beside weir's Python, otherwise the first one on the PATH."""
    POSTGRES_URL = "WEIR_POSTGRES_URL"
    """Your own PostgreSQL server, in place of a server that weir starts:
    `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`."""
    MYSQL_URL = "WEIR_MYSQL_URL"
    """Your own MariaDB server, in place of a server that weir starts: `mariadb://USER:PASSWORD@HOST:PORT/DATABASE`."""
    DEBUG = "WEIR_DEBUG"
    """If set, weir shows the traceback of its own defects."""
    CACHE_HOME = "XDG_CACHE_HOME"
    """The user's cache directory. Default: `~/.cache`."""
    JAVA_HOME = "JAVA_HOME"
    """The JDK that weir tries first for a stack. If this JDK is too old, weir tries other JDKs."""
    RAY_USE_TLS = "RAY_USE_TLS"
    """A variable of Ray. Set the variable to `1` if the nodes of the cluster have the value `1`."""
    NO_COLOR = "NO_COLOR"
    """If set, weir prints no colour. Colour never carries meaning alone."""
    TERM = "TERM"
    """`dumb`: weir prints progress in lines and never redraws."""
    PATH = "PATH"
    """Folders in which weir looks for tools of builds, stacks and services."""
