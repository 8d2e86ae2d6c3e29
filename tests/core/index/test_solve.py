"""What the solver says of index values: against trying every point, within its steps, the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from random import Random

import pytest

from core.dtypes import INDEX
from core.index import TRUE, add, conjuncts, floordiv, less, mod, number, scale
from core.index.decide import Decider, Outcome
from core.index.solve import MOST_VALUES, Undecided, point_where
from core.ir.op import Op
from core.ir.value import Value, make
from tests.core.index.plain import at, axis, condition, conditions, points, sample, sample_condition, value, variable

STEPS = 1 << 18
SQUARE = "i*i - 2*i*j + j*j"  # never negative, which no interval shows
FERMAT = "(i*i*i + 3*i*i + 3*i + j*j*j + 3*j*j + 3*j - k*k*k - 3*k*k - 3*k + 1)"  # (i + 1)³ + (j + 1)³ - (k + 1)³
# a convolution against a stride of 2, 447 columns as three lanes of each of 149 groups: windows in a padded image of 224 by 224
WINDOW = "50176*c + 224*((d + l + g + 1)//2 + g) + a + (a + 1)//2 - 450"
INSIDE = ("(d + l + g + 1)%2 < 1", "3*g + d + l >= 3", "3*g + d + l < 450", "(a + 1)%2 < 1", "a >= 1")
EXTENTS = {"a": 149, "c": 3, "d": 7, "g": 149, "l": 3, "i": 100_000, "j": 100_000, "k": 100_000}
AXES = {name: axis(n, extent) for n, (name, extent) in enumerate(EXTENTS.items())}


def opaque(row: int, low: int, high: int) -> Value:
    """What a node gives, the same everywhere."""
    return make(Op.OPAQUE, INDEX, (), (row, low, high), 1, (low, high))


def some_atoms(random: Random) -> list[Value]:
    """Two axes, one below an expression, its variable, one that may be negative, a loaded integer."""
    m = variable("m", 0, 3)
    low = random.randint(-6, 3)
    below = axis(1, add(m, number(random.randint(1, 2))))
    return [axis(0, random.randint(2, 7)), below, m, variable("n", low, low + random.randint(1, 4)), opaque(3, -4, 3)]


def test_answers_agree_with_trying_every_point() -> None:
    """Sums, products, floor divisions and remainders; some by what is a variable."""
    random = Random(31)
    found: Counter[bool] = Counter()
    for _ in range(200):
        atoms = some_atoms(random)
        held = [sample_condition(random, atoms, 3) for _ in range(random.randint(1, 4))]
        asked = [c for h in held for c in conjuncts(h.value)]

        point, _ = point_where(asked, STEPS)

        possible = any(all(h.plain(p) for h in held) for p in points(*atoms))
        assert possible == (point is not None), asked
        found[possible] += 1
        if point is not None:
            whole = {**{a: a.lo or 0 for a in atoms}, **point}
            assert all(at(c, whole) for c in asked)
            assert all(at(a.src[0], whole) > n for a, n in point.items() if a.src)
    assert min(found[True], found[False]) > 20


def test_what_is_divided_by_a_variable_is_divided_exactly() -> None:
    """By an extent of 1 to 5, and by one that may be 0: then there is no point."""
    n, m, x = variable("n", 1, 5), variable("m", 0, 5), variable("x", -9, 9)
    i = axis(0, m)
    for divided in (floordiv, mod):
        made = divided(x, n)
        for t in range(-10, 6):
            expected = [p for p in points(n, x) if at(made, p) == t]
            point, _ = point_where([less(made, number(t + 1)), less(number(t - 1), made)], STEPS)
            assert bool(expected) == (point is not None), (divided, t)
            assert point is None or point in expected
        beyond = [less(number(4), divided(x, m)), less(i, number(1))]
        assert (divided is floordiv) == (point_where(beyond, STEPS)[0] is not None)
        assert point_where([*beyond, less(m, number(1))], STEPS)[0] is None


def test_verdicts_without_a_point_tried_agree_with_trying_every_point() -> None:
    """As a decider asks: what it proves is never negative, what it refutes is at its point, and nothing of this size stays open."""
    random = Random(32)
    outcomes: Counter[Outcome] = Counter()
    for _ in range(150):
        atoms = some_atoms(random)
        made, held = sample(random, atoms, 3, most=9), sample_condition(random, atoms, 1)
        low, high = made.value.lo or 0, made.value.hi or 0
        shift = -random.randint(min(low, 0), max(high, 1)) // random.choice((1, 4, 20))
        x = add(made.value, number(shift))

        decision = Decider(budget=0).nonnegative(x, held.value)

        negative = [p for p in points(*atoms) if held.plain(p) and made.plain(p) + shift < 0]
        outcomes[decision.outcome] += 1
        if opaque(3, -4, 3) in x.free | held.value.free:
            assert (decision.outcome is Outcome.PROVED) == (not negative), (x, held.value)
        else:
            assert decision.outcome is (Outcome.REFUTED if negative else Outcome.PROVED), (x, held.value)
    assert min(outcomes.values()) > 10


def test_a_window_of_every_second_pixel_is_proved_inside_its_image() -> None:
    """No bounds of the parts show it: rows and columns wrap into each other. Its points cost more than a kernel has for them."""
    index, valid = value(WINDOW, **AXES), conditions(*INSIDE, **AXES)

    for x, outcome in (
        (index, Outcome.PROVED),
        (add(number(3 * 224 * 224 - 1), scale(index, -1)), Outcome.PROVED),
        (add(index, number(-1)), Outcome.REFUTED),
    ):
        assert Outcome.UNKNOWN is Decider(budget=0, steps=0).nonnegative(x, valid).outcome
        assert outcome is Decider(budget=0).nonnegative(x, valid).outcome


def test_values_of_other_nodes_are_proved_by_conditions_that_relate_them() -> None:
    i, n, v = axis(0, 1 << 20), variable("n", 1, 1 << 20), opaque(3, -(2**31), 2**31 - 1)
    related = conditions("v >= i", "v*2 < i + n", v=v, i=i, n=n)
    decider = Decider()

    assert Outcome.PROVED is decider.nonnegative(value("n - 1 - i", n=n, i=i), related).outcome
    assert Outcome.UNKNOWN is decider.nonnegative(value("n - 2 - i", n=n, i=i), related).outcome


# ---- steps -------------------------------------------------------------------------------------------------------------------


def test_a_question_ends_after_its_steps() -> None:
    """Acceptance 247."""
    asked = [condition(f"{FERMAT}*{FERMAT} < 1", **AXES)]

    for steps in (1 << 12, 1 << 16):
        with pytest.raises(Undecided) as said:
            point_where(asked, steps)
        assert steps <= said.value.steps < steps + 1_000


def test_questions_about_a_kernel_share_their_steps() -> None:
    square = value(SQUARE, **AXES)
    decider = Decider(budget=0, steps=100_000)

    assert Outcome.PROVED is decider.nonnegative(square, TRUE).outcome
    decision = decider.nonnegative(value(f"{FERMAT}*{FERMAT} - 1", **AXES), TRUE)
    assert Outcome.UNKNOWN is decision.outcome
    assert "a solver did not decide" in decision.why
    assert Outcome.UNKNOWN is decider.nonnegative(square, TRUE).outcome
    assert decider.steps <= 0


def test_a_question_of_too_many_values_is_not_asked() -> None:
    x: Value = number(0)
    for n in range(MOST_VALUES):
        x = add(x, value(f"i//{n + 2}", **AXES))

    with pytest.raises(Undecided) as said:
        point_where([less(x, AXES["i"])], STEPS)
    assert 0 == said.value.steps


# ---- processes ---------------------------------------------------------------------------------------------------------------

_ASKING = """
import sys
from core.index import conjuncts
from core.index.solve import Undecided, point_where
from tests.core.index.plain import condition
from tests.core.index.test_solve import AXES, FERMAT, INSIDE, SQUARE, WINDOW

asked = [
    [*INSIDE, f"{WINDOW} < 0"],
    [*INSIDE, f"{WINDOW} < 1"],
    [f"{SQUARE} < 1", "i > 5"],
    [f"{FERMAT}*{FERMAT} < 1"],
    ["(i*403 + j*79)%655 < 9", "(j*403 + k*79)%655 < 9", "(k*403 + i*79)%655 < 9", "i > 0"],
]
for texts in asked if sys.argv[1] == "forth" else [*reversed(asked), *asked]:
    try:
        point, steps = point_where([c for text in texts for c in conjuncts(condition(text, **AXES))], 1 << 16)
        print(point and [(v.arg, n) for v, n in point.items()], steps)
    except Undecided as error:
        print("undecided", error.steps)
"""


def child(text: str, *arguments: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, env=environment, check=False)


def test_every_process_gives_the_same_answers_in_as_many_steps() -> None:
    """Acceptance 1, 247: whatever its hash seed and what it was asked before."""
    first = child(_ASKING, "forth")
    lines = first.stdout.splitlines()

    assert 5 == len(lines), first.stderr
    assert any("undecided" in line for line in lines)
    assert lines == child(_ASKING, "forth", seed="77").stdout.splitlines()
    assert [*reversed(lines), *lines] == child(_ASKING, "back and forth", seed="5").stdout.splitlines()


def test_a_process_without_room_for_the_solver_says_so() -> None:
    """What a worker makes of it is a refusal with its limit, not a lost process."""
    text = _ASKING.replace(
        "for texts in asked", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (250 << 20,) * 2)\nfor texts in asked", 1
    )
    done = child(text, "forth")

    assert 1 == done.returncode
    assert "MemoryError" in done.stderr.splitlines()[-1]


def test_what_intervals_prove_is_proved_without_the_solver() -> None:
    """It is not even loaded."""
    done = child(
        "import sys\nfrom core import Request, compile_kernel\nfrom tests.kernels import every_form, request\n"
        "print(compile_kernel(Request.from_json(request(every_form()))).proofs['bounds'], 'z3' in sys.modules)"
    )

    assert "proved False\n" == done.stdout, done.stderr


def test_the_solver_is_the_one_that_answers_belong_to() -> None:
    """Another version may decide more or less within as many steps, and proofs are part of a program."""
    needed = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["dependencies"]

    assert f"z3-solver=={version('z3-solver')}" in needed
