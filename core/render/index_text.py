"""Index arithmetic and conditions as text: larger coefficients first, nothing subtracted where a comparison can be turned round."""

from __future__ import annotations

from core.dtypes import DType
from core.ir.op import Op
from core.ir.parts import coefficients, integer
from core.ir.value import Value
from core.render.page import Page
from core.render.text import AND, CHOICE, EQUAL, ORDER, PLUS, PRIMARY, TIMES, UNARY, Text, deeper

Term = tuple[int, Text]
_CLASSES = {"g": 0, "l": 1, "r": 2}  # letters of names


def index(page: Page, value: Value) -> Text:
    """SUM, PRODUCT, DIV, MOD."""
    operands = [page.text(s) for s in value.src]
    return arithmetic(value, operands) if value.dtype.is_index else _wrapping(page, value, operands)


def arithmetic(value: Value, operands: list[Text]) -> Text:
    """An operation on indices, its operands written."""
    if value.op is Op.SUM:
        constant, factors = coefficients(value)
        return sum_of([*zip(factors, operands, strict=True)], constant)
    if value.op is Op.PRODUCT:
        operands.sort(key=lambda t: _standing((1, t)))
        return Text("*".join(_factors(operands)), TIMES, deeper(*operands))
    sign = "/" if value.op is Op.DIV else "%"
    return Text(f"{operands[0].at(TIMES)}{sign}{operands[1].at(UNARY)}", TIMES, deeper(*operands))


def _factors(operands: list[Text]) -> list[str]:
    return [t.at(UNARY if at or t.words[0] == "-" else TIMES) for at, t in enumerate(operands)]


def _standing(term: Term) -> tuple[bool, int, int, str]:
    """Where a term stands in its sum: launch indices before loops before the rest."""
    factor, text = term
    kind = _CLASSES.get(text.words[0], 3)
    return factor < 0, -abs(factor), kind if kind < 3 and text.is_name else 3, text.words


def sum_of(terms: list[Term], constant: int) -> Text:
    """Σ coefficient·term + constant; positive and large coefficients first."""
    if len(terms) > 1:
        terms = sorted(terms, key=_standing)
    words, rank, depth = "", PRIMARY, 0
    if constant > 0 and terms and terms[0][0] < 0:  # 8 - x, not -x + 8
        words, constant = str(constant), 0
    for factor, term in terms:
        if factor == 1:
            part, own = term.at(TIMES if words else PLUS), term.rank
        elif factor == -1:
            part, own = term.at(TIMES), term.rank
        else:
            part, own = f"{term.at(TIMES)}*{abs(factor)}", TIMES
        if words:
            words, rank = f"{words} - {part}" if factor < 0 else f"{words} + {part}", PLUS
        elif factor < 0:
            words, rank = f"-{part}", min(own, UNARY)
        else:
            words, rank = part, own
        if term.depth > depth:
            depth = term.depth
    if constant and words:
        words, rank = f"{words} - {-constant}" if constant < 0 else f"{words} + {constant}", PLUS
    elif not words:
        words, rank = str(constant), UNARY if constant < 0 else PRIMARY
    return Text(words, rank, depth + 1)


def _wrapping(page: Page, value: Value, operands: list[Text]) -> Text:
    """The same in a data type: garbage where a gate does not hold, so it is computed in unsigned arithmetic."""
    word = page.word(value.dtype)
    unsigned = unsigned_word(page, value.dtype)
    if value.op in (Op.DIV, Op.MOD):
        sign = "/" if value.op is Op.DIV else "%"
        return Text(f"{operands[0].at(TIMES)}{sign}{operands[1].at(UNARY)}", TIMES, deeper(*operands))

    def low_bits(term: Text, rank: int) -> str:
        if term.unsigned is not None:
            words, own = term.unsigned
            return words if own >= rank else f"({words})"
        return f"({unsigned}){term.at(UNARY)}"

    if value.op is Op.PRODUCT:
        words, rank = "*".join(low_bits(t, UNARY) for t in operands), TIMES
    else:
        constant, factors = coefficients(value)
        terms = sorted(zip(factors, operands, strict=True), key=_standing)
        words, rank = "", PLUS
        for factor, term in terms:
            part = low_bits(term, TIMES) + ("" if abs(factor) == 1 else f"*{abs(factor)}")
            words += f"{' - ' if factor < 0 else ' + '}{part}" if words else f"{'0 - ' if factor < 0 else ''}{part}"
        if constant or not words:
            words += f" {'-' if constant < 0 else '+'} {abs(constant)}" if words else f"({unsigned}){constant}"
    return Text(f"({word})({words})", UNARY, deeper(*operands), (words, rank))


def unsigned_word(page: Page, dtype: DType) -> str:
    """The unsigned type of this width."""
    return page.dialect.types[f"uint{dtype.bits}"]


# ---- conditions ----------------------------------------------------------------------------------------------------------------


def less(page: Page, value: Value, *, negated: bool = False) -> Text:
    """LESS: x < t, or where negated x >= t."""
    x, limit = value.src[0], integer(value)
    if x.dtype.is_index and page.is_written_out(x, Op.SUM):
        turned = _turned(page, x, limit, negated)
        if turned is not None:
            return turned
    operand = page.text(x)
    if not x.dtype.is_index:
        if limit > int(x.dtype.greatest) or limit <= int(x.dtype.least):  # a bound beyond the type decides by itself
            holds = (limit > int(x.dtype.greatest)) is not negated
            return Text(page.dialect.constants["true" if holds else "false"], PRIMARY)
        bound = page.constant(limit, x.dtype)
    else:
        bound = Text(str(limit), PRIMARY)
    return Text(f"{operand.at(PLUS)} {'>=' if negated else '<'} {bound.words}", ORDER, deeper(operand))


def _turned(page: Page, x: Value, limit: int, negated: bool) -> Text | None:
    """A sum below a limit with what is subtracted on the other side, where both sides stay within the type."""
    constant, factors = coefficients(x)
    pairs = list(zip(factors, x.src, strict=True))
    right = [(-c, s) for c, s in pairs if c < 0]
    left = [(c, s) for c, s in pairs if c > 0]
    if not right:
        return None
    rest = limit - constant
    if not left:  # rest > -right: right > -rest
        sign, first, second = ("<=" if negated else ">"), sum_of(_texts(page, right), 0), Text(str(-rest), PRIMARY)
        if not _fits(right, 0, x.dtype) or not int(x.dtype.least) < -rest <= int(x.dtype.greatest):
            return None
    else:
        to_left, to_right = max(-rest, 0), max(rest, 0)
        if not _fits(left, to_left, x.dtype) or not _fits(right, to_right, x.dtype):
            return None
        sign, first, second = (">=" if negated else "<"), sum_of(_texts(page, left), to_left), sum_of(_texts(page, right), to_right)
    return Text(f"{first.at(PLUS)} {sign} {second.at(PLUS)}", ORDER, deeper(first, second))


def _texts(page: Page, pairs: list[tuple[int, Value]]) -> list[Term]:
    return [(c, page.text(s)) for c, s in pairs]


def _fits(pairs: list[tuple[int, Value]], constant: int, dtype: DType) -> bool:
    """Whether the sum, of positive coefficients, stays within the type in whatever order it is taken."""
    low = high = constant
    for c, s in pairs:
        if s.lo is None or s.hi is None:
            return False
        low, high = low + min(c * s.lo, 0), high + max(c * s.hi, 0)
    return low >= int(dtype.least) and high <= int(dtype.greatest)


def conjunction(page: Page, value: Value) -> Text:
    """ALL."""
    operands = [page.text(s) for s in value.src]
    return Text(" && ".join(t.at(EQUAL if t.rank != AND else AND) for t in operands), AND, deeper(*operands))


def choice(condition: Text, x: Text, y: Text) -> Text:
    """x where the scalar condition holds, else y; only one of them is evaluated."""
    return Text(f"{condition.at(PRIMARY)} ? {x.at(CHOICE + 1)} : {y.at(CHOICE + 1)}", CHOICE, deeper(condition, x, y))
