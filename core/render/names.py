"""What things are called: a letter for the class, a number by order of appearance.

d arguments, g l launch indices, r loops, a registers, s shared arrays, i indices, c conditions, v other values. A variable keeps the name
its client gave it unless that means something already.
"""

from __future__ import annotations

import re

from core.render.dialect import Dialect
from core.render.text import PRIMARY, Text

PREFIX = "arg_"
_NUMBERED = re.compile(r"([a-z])(\d+)")
_OURS = re.compile(r"[dglrasicv][0-9]+")
KEYWORDS = frozenset(
    (
        "alignas", "alignof", "and", "asm", "atomic", "auto", "bool", "break", "case", "catch", "char", "class", "complex", "const",
        "constexpr", "continue", "default", "defined", "delete", "do", "double", "else", "enum", "extern", "false", "float", "for",
        "friend", "generic", "goto", "half", "i386", "if", "imaginary", "inline", "int", "linux", "long", "main", "namespace", "new",
        "noreturn", "not", "nullptr", "operator", "or", "private", "protected", "public", "register", "restrict", "return", "short",
        "signed", "sizeof", "static", "static_assert", "struct", "switch", "template", "this", "thread_local", "throw", "true", "try",
        "typedef", "typename", "typeof", "union", "unix", "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
    )
)  # fmt: skip


class Names:
    """The names of one program."""

    def __init__(self, dialect: Dialect, function: str) -> None:
        self._dialect = dialect
        self._function = function
        self._extra = re.compile(dialect.extra_reserved)
        self._count: dict[str, int] = {}

    def next(self, letter: str, *, moves: bool = False) -> Text:
        """The next name of a class. moves: of what may be assigned to later."""
        number = self._count.get(letter, 0)
        self._count[letter] = number + 1
        return Text(f"{letter}{number}", PRIMARY, 0, None, moves, (letter, number))

    def variable(self, name: str) -> Text:
        """What the argument for this variable is called; different variables are called differently."""
        words = PREFIX + name if name.startswith(PREFIX) or self._means_something(name) else name
        numbered = _NUMBERED.match(words)
        return Text(words, PRIMARY, name=(numbered[1], int(numbered[2])) if numbered else None)

    def _means_something(self, name: str) -> bool:
        if name in KEYWORDS or name in self._dialect.reserved or name in self._dialect.helpers or name == self._function:
            return True
        if name.startswith("_") or "__" in name or name.endswith("_t"):  # reserved to the language and its library
            return True
        if len(name) > 1 and name == name.upper():  # a macro, perhaps
            return True
        return _OURS.fullmatch(name) is not None or self._extra.fullmatch(name) is not None
