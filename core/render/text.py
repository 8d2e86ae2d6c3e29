"""An expression as text, and how tightly it holds together."""

from __future__ import annotations

from typing import NamedTuple

# Ranks of C's operators, tightest first (ISO C11 6.5); a rank says: may stand unparenthesised where one as high is asked for.
PRIMARY, UNARY, TIMES, PLUS, SHIFT, ORDER, EQUAL, BIT_AND, BIT_XOR, BIT_OR, AND, OR, CHOICE = range(16, 3, -1)


class Text(NamedTuple):
    """words: the expression. rank: of its outermost operator. depth: of operations inside it; a name's is 0.

    unsigned: of a signed 32- or 64-bit integer the same bits as an unsigned expression, if that is what it is cast from.
    moves: what it names may be assigned to later. name: of a name, or a lane of one, its letter and number.
    """

    words: str
    rank: int
    depth: int = 0
    unsigned: tuple[str, int] | None = None
    moves: bool = False
    name: tuple[str, int] | None = None

    def at(self, rank: int) -> str:
        """As an operand where `rank` is asked for."""
        return self.words if self.rank >= rank else f"({self.words})"

    @property
    def is_name(self) -> bool:
        return self.words.isidentifier()


def deeper(*operands: Text) -> int:
    """The depth of an operation on these."""
    depth = 0
    for text in operands:
        if text.depth > depth:
            depth = text.depth
    return depth + 1
