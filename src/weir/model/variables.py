"""The variables of the environment that weir reads; docs/reference/environment.md is made from them."""

from enum import StrEnum


class Variable(StrEnum):
    """A variable, and what weir makes of it."""

    CACHE = "WEIR_CACHE"
    """The cache folder, for all that can be made again: built stacks, programs of databases, filled datasets. Default: `weir` in the user's
    cache directory."""
    STACKS = "WEIR_STACKS"
    """Folders with stacks of your own, with `:` between: every `stack.toml` below them is known beside those that travel with weir."""
    ENGINE = "WEIR_ENGINE"
    """The program `weir-engine`. Default: the one beside weir's Python, else the first on the PATH."""
    POSTGRES_URL = "WEIR_POSTGRES_URL"
    """A PostgreSQL server of your own, in place of one that weir starts: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`."""
    MYSQL_URL = "WEIR_MYSQL_URL"
    """A MariaDB server of your own, in place of one that weir starts: `mariadb://USER:PASSWORD@HOST:PORT/DATABASE`."""
    DEBUG = "WEIR_DEBUG"
    """If it is set, a defect of weir's own is shown with its traceback."""
    CACHE_HOME = "XDG_CACHE_HOME"
    """The user's cache directory. Default: `~/.cache`."""
    JAVA_HOME = "JAVA_HOME"
    """The JDK that is looked at first where a stack needs one; others follow if it is too old."""
    RAY_USE_TLS = "RAY_USE_TLS"
    """Ray's own: `1` where the nodes of a cluster have it too."""
    NO_COLOR = "NO_COLOR"
    """If it is set, no colour at a terminal. Colour never means anything by itself."""
    TERM = "TERM"
    """`dumb`: a terminal on which nothing is drawn over, so that progress is told in lines."""
    PATH = "PATH"
    """Where the tools are looked for that builds, stacks and services need."""
