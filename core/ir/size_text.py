"""Sizes and estimates as the wire writes them: an index value over declared variables as text of the expression grammar."""

from __future__ import annotations

from core.ir.op import Op
from core.ir.parts import coefficients, integer
from core.ir.value import Value


def expression_text(x: Value) -> str:
    """`start_pos*64+3`: what the wire's parser reads back to the same value."""
    return _text(x, 0)


def _text(x: Value, binds: int) -> str:
    match x.op:
        case Op.CONST:
            return str(x.arg) if not (binds and integer(x) < 0) else f"({x.arg})"
        case Op.VARIABLE:
            return str(x.arg[0])  # type: ignore[index]
        case Op.SUM:
            constant_part, factors = coefficients(x)
            parts = [_term(t, c) for t, c in zip(x.src, factors, strict=True)]
            parts.sort(key=lambda p: p.startswith("-"))
            if constant_part:
                parts.append(str(constant_part))
            text = "+".join(parts).replace("+-", "-")
            return f"({text})" if binds else text
        case Op.PRODUCT:
            return "*".join(_text(t, 2) for t in x.src)
        case Op.DIV | Op.MOD:
            text = f"{_text(x.src[0], 2)}{'//' if x.op is Op.DIV else '%'}{_text(x.src[1], 2)}"
            return f"({text})" if binds else text
        case _:
            raise TypeError(f"{x!r} is no size")


def _term(t: Value, c: int) -> str:
    if c == 1:
        return _text(t, 1)
    return f"-{_text(t, 2)}" if c == -1 else f"{_text(t, 2)}*{c}" if c > 0 else f"-{_text(t, 2)}*{-c}"
