"""The error tree: whose turn it is when a kernel can't be compiled.

Every refusal names the place, what was expected and what came. `category` is the word clients see; the HTTP status is the
service's affair. An exception carries its facts as fields, so that nobody has to take a sentence apart.
"""

from __future__ import annotations

from typing import ClassVar


class Pointer(str):
    """A JSON pointer (RFC 6901) that grows with `/`: `Pointer("/ast") / "nodes" / 3` is `/ast/nodes/3`.

    A name longer than anything the format has is cut, so that no client can make a message long.
    """

    __slots__ = ()

    def __truediv__(self, part: str | int) -> Pointer:
        name = str(part).replace("~", "~0").replace("/", "~1")
        return Pointer(f"{self}/{name if len(name) <= 200 else name[:200] + '…'}")


def shown(value: object, most: int = 120) -> str:
    """A short text of what came, for messages: never longer than `most` characters, whatever a client sent."""
    if isinstance(value, str):
        text = repr(value[: most + 1])
    elif isinstance(value, (list, tuple)):
        text = "[" + ", ".join(shown(item, 24) for item in value[:8]) + (", …" if len(value) > 8 else "") + "]"
    elif isinstance(value, dict):
        names = [shown(str(name), 24) for name in list(value)[:8]]
        text = "an object with " + (", ".join(names) or "no members") + (", …" if len(value) > 8 else "")
    elif isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        text = f"an integer of {value.bit_length()} bits"
    elif value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    else:
        text = str(value)
    return text if len(text) <= most else text[:most] + "…"


class LatheError(Exception):
    """Something was not done. `facts()` is what a client is told beside the sentence `str(error)`."""

    category: ClassVar[str] = "internal"

    def __init__(self, detail: str, **facts: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self._facts = facts

    def facts(self) -> dict[str, object]:
        """JSON-ready facts, those that apply: pointer, expected, got, limit, needed, allowed, option, axes, node, target, log."""
        return {name: value for name, value in self._facts.items() if value is not None}

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.detail, self._facts))


def _rebuild(kind: type[LatheError], detail: str, facts: dict[str, object]) -> LatheError:
    error = kind.__new__(kind)
    LatheError.__init__(error, detail, **facts)
    return error


class RequestError(LatheError):
    """The client's turn: the same request fails the same way, so the answer may be kept."""


class WireError(RequestError):
    """wire: JSON, but not the format. `pointer` is the place in the request."""

    category = "wire"

    def __init__(self, pointer: str, *, expected: str, got: object) -> None:
        came = got if isinstance(got, Said) else shown(got)
        super().__init__(f"{pointer or '/'}: expected {expected}; got {came}", pointer=str(pointer), expected=expected, got=str(came))


class Said(str):
    """What came, already in words ("nothing", "rank 3"): shown as it is."""

    __slots__ = ()


class NotJson(WireError):
    """wire: the body is not one JSON text at all (HTTP 400, where other `wire` errors are 422)."""


class KernelError(RequestError):
    """ast: well formed and meaningless: shapes, dtypes, buffers, views that leave their buffer, races."""

    category = "ast"

    def __init__(self, pointer: str, *, expected: str, got: object, node: int | None = None) -> None:
        came = got if isinstance(got, Said) else shown(got)
        super().__init__(
            f"{pointer or '/'}: expected {expected}; got {came}",
            pointer=str(pointer),
            expected=expected,
            got=str(came),
            node=node,
        )


class OptionRefused(RequestError):
    """option: a schedule option (or a member of the request that this service does not offer) can't be applied."""

    category = "option"

    def __init__(
        self,
        pointer: str,
        *,
        option: object,
        reason: str,
        axes: str | None = None,
        needed: object = None,
        allowed: object = None,
    ) -> None:
        where = f"; the axes are {axes}" if axes else ""
        super().__init__(
            f"{pointer}: {reason}{where}",
            pointer=str(pointer),
            option=option,
            reason=reason,
            axes=axes,
            needed=needed,
            allowed=allowed,
        )


class TargetError(RequestError):
    """target: the target can't express what the kernel or an option asks for."""

    category = "target"

    def __init__(self, pointer: str, *, target: str, feature: str, node: int | None = None) -> None:
        super().__init__(f"{pointer or '/'}: {target} has no {feature}", pointer=str(pointer), target=target, feature=feature, node=node)


class LimitExceeded(RequestError):
    """limit: too large, whatever the options. Carries which limit, what was needed and what is allowed."""

    category = "limit"

    def __init__(self, pointer: str, *, limit: str, needed: object, allowed: object, detail: str | None = None) -> None:
        text = detail or f"{pointer or '/'}: {limit} is limited to {allowed}; this needs {needed}"
        super().__init__(text, pointer=str(pointer), limit=limit, needed=needed, allowed=allowed)


class CompilerBug(LatheError):
    """internal: a broken invariant of ours. Never kept, never the client's fault."""

    def __init__(self, stage: str, detail: str, listing: str | None = None) -> None:
        super().__init__(f"{stage}: {detail}", stage=stage, listing=listing)


class TextRejected(CompilerBug):
    """compiler: the target's own compiler refuses what we wrote; carries its log."""

    category = "compiler"

    def __init__(self, target: str, log: str) -> None:
        LatheError.__init__(self, f"the {target} compiler rejects our text", target=target, log=log)
