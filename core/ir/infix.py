"""An index value or condition as one line of ordinary notation: `g0*64 + r1 - 1`, `g0 < 7 and r1 >= 2`."""

from __future__ import annotations

from collections.abc import Mapping

from core.ir.op import Op
from core.ir.parts import coefficients, integer
from core.ir.value import Value, make


def infix(x: Value, names: Mapping[Value, str]) -> str:
    """The text; atoms without a name are shown by what they are."""
    return _text(x, names, 0)


def _text(x: Value, names: Mapping[Value, str], binds: int) -> str:
    named = names.get(x)
    if named is not None:
        return named
    match x.op:
        case Op.CONST:
            return str(x.arg)
        case Op.SUM:
            part, factors = coefficients(x)
            terms = sorted(zip(factors, x.src, strict=True), key=lambda p: (p[0] < 0, -abs(p[0])))
            text = " + ".join(
                f"{_text(t, names, 2)}*{c}" if abs(c) != 1 else f"{'-' if c < 0 else ''}{_text(t, names, 2)}" for c, t in terms
            )
            text = (text + (f" + {part}" if part else "")).replace("+ -", "- ")
            return f"({text})" if binds else text
        case Op.PRODUCT:
            return "*".join(_text(t, names, 2) for t in x.src)
        case Op.DIV | Op.MOD:
            text = f"{_text(x.src[0], names, 2)}{'//' if x.op is Op.DIV else '%'}{_text(x.src[1], names, 2)}"
            return f"({text})" if binds > 1 else text
        case Op.LESS:
            return _comparison(x, names)
        case Op.ALL:
            return " and ".join(_text(c, names, 0) for c in x.src)
        case Op.VARIABLE:
            return str(x.arg[0])  # type: ignore[index]
        case Op.OPAQUE:
            return f"node{x.arg[0]}({', '.join(_text(s, names, 0) for s in x.src)})"  # type: ignore[index]
        case _:
            arg = x.arg if isinstance(x.arg, tuple) else (x.arg,)
            return f"{x.op.name.lower()}{'.'.join(str(a) for a in arg if a is not None)}"


def _comparison(x: Value, names: Mapping[Value, str]) -> str:
    inner, limit = x.src[0], integer(x)
    if inner.op is Op.SUM and all(c < 0 for c in coefficients(inner)[1]):
        turned = make(Op.SUM, inner.dtype, inner.src, (0, tuple(-c for c in coefficients(inner)[1])))
        return f"{_text(turned, names, 0)} >= {1 - limit}"
    return f"{_text(inner, names, 0)} < {limit}"
