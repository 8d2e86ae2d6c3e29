"""The workbench: what the compiler makes of a kernel, stage by stage, on a terminal.

    python -m core trace kernel.json --target opencl [--optimize none|heuristic|JSON] [--stage lower]
    python -m core show kernel.json          the kernel's canonical table
    python -m core diff kernel.json other.json --target c       where two requests part
    python -m core targets                   what can be rendered

A file holds a request of the wire, or an AST alone. The only file of `core` that reads or prints.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path

from core.compiler import compile_kernel
from core.errors import LatheError
from core.ir.text import show, show_values
from core.ir.value import Value
from core.json_text import read_json
from core.kernel.text import show_kernel
from core.limits import Limits
from core.linear.listing import Listing
from core.lower.lower import Lowered
from core.program import Program
from core.request import Request
from core.schedule.nest import Nest
from core.schedule.text import show_nest
from core.targets import TARGETS
from core.targets.describe import describe


def stages(request: Request) -> list[tuple[str, str]]:
    """Each stage's name and its value as text, in the order of the flow."""
    out = [("kernel", show_kernel(request.kernel))]

    def watch(stage: str, value: object) -> None:
        text = stage_text(value)
        if text is not None:
            out.append((stage, text))

    compile_kernel(request, watch=watch)
    return out


def stage_text(value: object) -> str | None:
    """The text form of what a stage hands on; None of what has none."""
    match value:
        case Nest():
            return show_nest(value)
        case Lowered():
            return show(value.root)
        case Value():
            return show(value)
        case Listing():
            return show_values(value.body)
        case str():
            return value
        case Program():
            return json.dumps({k: v for k, v in value.to_json().items() if k != "source"}, indent=2) + "\n"
        case _:
            return None


def read_request(path: str, target: str, optimize: str) -> Request:
    """The request in a file; of a bare AST, one for this target and schedule."""
    limits = Limits()
    body = read_json(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes(), limits)
    if isinstance(body, dict) and "ast" not in body:
        schedule = json.loads(optimize) if optimize[:1] == "[" else optimize
        body = {"ast": body, "device": {"target": target}, "optimize": schedule}
    return Request.from_json(body, limits)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m core", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, files in (("trace", 1), ("show", 1), ("diff", 2)):
        command = commands.add_parser(name)
        command.add_argument("files", nargs=files, metavar="FILE")
        command.add_argument("--target", default="opencl", choices=sorted(TARGETS))
        command.add_argument("--optimize", default="none")
        command.add_argument("--stage", help="this stage alone")
    commands.add_parser("targets")
    options = parser.parse_args()
    try:
        return _run(options)
    except LatheError as error:
        print(f"{error.category}: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    if options.command == "targets":
        print(json.dumps({name: describe(target) for name, target in sorted(TARGETS.items())}, indent=2))
        return 0
    requests = [read_request(path, options.target, options.optimize) for path in options.files]
    if options.command == "show":
        print(show_kernel(requests[0].kernel), end="")
    elif options.command == "trace":
        for stage, text in stages(requests[0]):
            if options.stage in (None, stage):
                print(f"── {stage} ──\n{text}")
    else:
        for (stage, one), (_, other) in zip(*map(stages, requests), strict=True):
            for line in difflib.unified_diff(
                one.splitlines(), other.splitlines(), f"{stage} {options.files[0]}", f"{stage} {options.files[1]}", lineterm=""
            ):
                print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
