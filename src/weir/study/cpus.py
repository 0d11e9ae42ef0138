"""`[cpus]` of a study file: what each role may use."""

from typing import Literal

from weir.toml_file import Table


class Cpus(Table):
    """CPUs of each role: `auto`, how many, or which."""

    load: int | list[int] | Literal["auto"] = "auto"
    stack: int | list[int] | Literal["auto"] = "auto"
    control: int | list[int] | Literal["auto"] = "auto"
