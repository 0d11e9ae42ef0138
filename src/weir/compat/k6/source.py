"""A k6 script as a tree of syntax. Knows JavaScript's shape and nothing of its meaning."""

from pathlib import Path

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from weir.model.errors import UsageError

_LARGEST = 4 << 20
"""Bytes of a script: one that is larger was made by a program, and is no plan that anybody reads."""
_DEEPEST = 150
"""Levels of a tree: what is read is read recursively, and nobody nests so deep."""


class UnsaidError(Exception):
    """Something in a script that weir cannot say.

    Args:
        node: where it stands.
        what: what stands there, and what there is instead.
        told: whether it follows from something that was told already.
    """

    def __init__(self, node: Node, what: str, *, told: bool = False) -> None:
        super().__init__(what)
        self.node = node
        self.what = what
        self.told = told


def parse_script(path: Path) -> Node:
    """The program in a file.

    Raises:
        UsageError: the file cannot be read, is no JavaScript, is too large, or nests too deep.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a k6 script") from None
    if len(text) > _LARGEST:
        raise UsageError(f"{path}: found {len(text):,} bytes, expected a k6 script of at most {_LARGEST:,}")
    root = Parser(Language(tree_sitter_javascript.language())).parse(text).root_node
    _check(root, path)
    return root


def line_of(node: Node) -> int:
    """The line on which something begins, the first being 1."""
    return int(node.start_point[0]) + 1


def text_of(node: Node) -> str:
    """What stands there."""
    return (node.text or b"").decode("utf-8", "replace")


def excerpt(node: Node) -> str:
    """The beginning of what stands there, in one line."""
    text = " ".join(text_of(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


def part(node: Node, field: str) -> Node:
    """A part that the grammar always has."""
    found = node.child_by_field_name(field)
    if found is None:
        raise UnsaidError(node, f"found {excerpt(node)!r} without its {field}")
    return found


def named(node: Node) -> list[Node]:
    """The parts of a node, comments left out."""
    return [child for child in node.named_children if child.type != "comment"]


def _check(root: Node, path: Path) -> None:
    """Walks all of the tree without recursion: it may be as deep as a file is long."""
    cursor = root.walk()
    depth = 0
    while True:
        node = cursor.node
        if node is not None and (node.is_error or node.is_missing):
            found = f"{node.type!r} missing" if node.is_missing else f"found {excerpt(node)!r}"
            raise UsageError(f"{path}:{line_of(node)}: {found}, expected JavaScript", hint="k6 inspect says what is wrong with a script")
        if depth > _DEEPEST and node is not None:
            raise UsageError(f"{path}:{line_of(node)}: nested more than {_DEEPEST} levels deep, expected a script that people read")
        if cursor.goto_first_child():
            depth += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            depth -= 1
