"""What stands in a script by itself: the values of numbers and escapes, and the names that a statement gives values to."""

from collections.abc import Iterator

from tree_sitter import Node

from weir.compat.k6.source import UnsaidError, excerpt, named, part, text_of


def assigned(node: Node) -> Iterator[str]:
    """The names that a statement declares or gives a value."""
    match node.type:
        case "lexical_declaration" | "variable_declaration":
            for declarator in named(node):
                pattern = part(declarator, "name")
                yield from (text_of(one) for one in ([pattern] if pattern.type == "identifier" else named(pattern)))
        case "function_declaration" | "generator_function_declaration":
            yield text_of(part(node, "name"))
        case "export_statement":
            declaration = node.child_by_field_name("declaration")
            yield from () if declaration is None else assigned(declaration)
        case "expression_statement":
            for expression in named(node):
                left = expression.child_by_field_name("left")
                if expression.type == "assignment_expression" and left is not None and left.type == "identifier":
                    yield text_of(left)


def number_of(node: Node) -> float:
    """The value of a number.

    Raises:
        UnsaidError: it is none.
    """
    text = text_of(node).replace("_", "").rstrip("n")
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected a number") from None
    return int(value) if value.is_integer() else value


def in_one_piece(text: str) -> str:
    """A text whose characters beyond the first 65,536 were written as two halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unescaped(node: Node) -> str:
    """What an escape sequence of JavaScript stands for.

    Raises:
        UnsaidError: there is no such character.
    """
    text = text_of(node)[1:]
    simple = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
    if text in simple:
        return simple[text]
    if text[0] not in "xu":
        return text
    try:
        return chr(int(text[1:].strip("{}"), 16))
    except (ValueError, OverflowError):
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected a character that there is") from None
