"""The benchmarks on a terminal.

    python -m bench compile [--corpus FILE …] [--sample N --seed S] [--json OUT] [--compare OLD.json]
    python -m bench compare OLD.json NEW.json
    python -m bench programs [--only NAME …] [--json OUT] [--compare OLD.json]
    python -m bench plot RUN.json -o PICTURE.svg
    python -m bench profile [--corpus FILE …] [--sample N --seed S] [--kernel ID …]
    python -m bench cache [--json OUT]
    python -m bench faults [--only FAULT …] [--seconds 30] [--json OUT]
    python -m bench start [--targets c cuda opencl] [--sample 16] [--json OUT]
    python -m bench soak [--compiles 100000] [--hits 1000000] [--seconds S] [--json OUT]

A corpus is JSON Lines, gzipped or not: objects with `id` and `ast`. Without one, the project's own kernels are measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import cache, compiling, faults, plot_programs, profiling, programs, soak, start
from bench.compare import compared
from bench.kernels import OWN, Case, read_cases
from bench.plot import svg
from bench.processes import ServerTrouble
from bench.report import summary, text
from bench.run import Run, read_run
from bench.start_client import FORMATS
from bench.workloads import WORKLOADS
from core import TARGETS


def main(words: Sequence[str] | None = None) -> int:
    """The exit status: 2 where a file holds not what it should, 1 where a server does not do what it should or keeps not to a bound."""
    given = _parser().parse_args(words)
    try:
        COMMANDS[given.command](given)
    except (OSError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except ServerTrouble as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    compiled = commands.add_parser("compile", help="CPU time of each stage")
    profiled = commands.add_parser("profile", help="the functions that take it")
    for command in (compiled, profiled):
        command.add_argument("--corpus", type=Path, nargs="+", default=[OWN], metavar="FILE", help="kernels, as JSON Lines")
        command.add_argument("--sample", type=int, metavar="N", help="draw so many of them")
        command.add_argument("--seed", type=int, default=1337, help="of the draw (1337)")
        command.add_argument("--kernel", nargs="+", default=[], metavar="ID", help="only these")
        command.add_argument("--target", choices=sorted(TARGETS), default="opencl")
        command.add_argument("--optimize", type=_schedule, default="heuristic", help="none, heuristic or a JSON list of options")
    compiled.add_argument("--repeats", type=_positive, default=3, help="passes over all kernels (3)")
    compiled.add_argument("--json", type=Path, metavar="OUT", help="store the run")
    compiled.add_argument("--compare", type=Path, metavar="OLD", help="a stored run: say what changed by more than the noise")
    profiled.add_argument("--top", type=_positive, default=25, help="functions to show (25)")
    profiled.add_argument("--passes", type=_positive, default=1, help="times over all kernels: more find more (1)")
    timed = commands.add_parser("programs", help="how quick the programs of named workloads are on this machine's OpenCL device")
    timed.add_argument("--only", nargs="+", choices=[w.name for w in WORKLOADS], default=[], metavar="NAME")
    timed.add_argument("--rounds", type=_positive, default=5, help="turns of each version (5)")
    timed.add_argument("--seconds", type=float, default=0.1, help="for each version in each round (0.1)")
    timed.add_argument("--json", type=Path, metavar="OUT", help="store the run")
    timed.add_argument("--compare", type=Path, metavar="OLD", help="a stored run: say what changed by more than the noise")
    comparison = commands.add_parser("compare", help="two stored runs")
    comparison.add_argument("old", type=Path)
    comparison.add_argument("new", type=Path)
    picture = commands.add_parser("plot", help="a stored run as SVG")
    picture.add_argument("run", type=Path)
    picture.add_argument("-o", "--output", type=Path, required=True)
    hits = commands.add_parser("cache", help="cache hits of a real service beside a bare server")
    hits.add_argument("--requests", type=_positive, default=2000, help="per turn (2000)")
    hits.add_argument("--connections", type=_positive, default=16, help="at once (16)")
    hits.add_argument("--rounds", type=_positive, default=9, help="turns of each server and call (9)")
    hits.add_argument("--json", type=Path, metavar="OUT", help="store the measurement")
    failing = commands.add_parser("faults", help="replicas under load while things go wrong around them")
    failing.add_argument("--only", nargs="+", choices=sorted(faults.FAULTS), default=list(faults.FAULTS), metavar="FAULT")
    failing.add_argument("--seconds", type=float, default=30.0, help="for each fault (30)")
    failing.add_argument("--calm", type=float, default=6.0, help="seconds of load after each (6)")
    failing.add_argument("--replicas", type=_positive, default=3)
    failing.add_argument("--rate", type=float, default=20.0, help="requests a second (20)")
    failing.add_argument("--seed", type=int, default=1337)
    failing.add_argument("--json", type=Path, metavar="OUT", help="store the measurement")
    started = commands.add_parser("start", help="a fresh process: its own compiler, or stored binaries")
    started.add_argument("--targets", nargs="+", choices=sorted(FORMATS), default=sorted(FORMATS), metavar="TARGET")
    started.add_argument("--corpus", type=Path, nargs="+", default=[OWN], metavar="FILE", help="kernels, as JSON Lines")
    started.add_argument("--sample", type=_positive, default=16, help="programs of each target (16)")
    started.add_argument("--seed", type=int, default=1337, help="of the draw (1337)")
    started.add_argument("--rounds", type=_positive, default=3, help="processes of each kind (3)")
    started.add_argument("--json", type=Path, metavar="OUT", help="store the measurement")
    soaked = commands.add_parser("soak", help="does a service grow?")
    soaked.add_argument("--compiles", type=_positive, default=100_000, help="new kernels (100000)")
    soaked.add_argument("--hits", type=_positive, default=1_000_000, help="of earlier ones (1000000)")
    soaked.add_argument("--seconds", type=float, help="end after so long, whatever has been done by then")
    soaked.add_argument("--json", type=Path, metavar="OUT", help="store the measurement")
    return parser


def _positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise ValueError
    return number


def _schedule(word: str) -> object:
    return json.loads(word) if word.startswith("[") else word


def _cases(given: argparse.Namespace) -> list[Case]:
    cases = read_cases(given.corpus, given.target, given.optimize, given.sample, given.seed, given.kernel)
    if not cases:
        raise ValueError("no kernels")
    return cases


def _compile(given: argparse.Namespace) -> None:
    old = read_run(given.compare) if given.compare else None
    run = compiling.measure(
        _cases(given),
        given.repeats,
        files=given.corpus,
        target=given.target,
        optimize=given.optimize,
        sample=given.sample,
        seed=given.seed,
        tell=_tell,
    )
    if not run.kernels:
        raise ValueError(f"every kernel was refused; the first: {run.refused[0].message}")
    found = summary(run)
    if given.json:
        given.json.write_text(json.dumps({**run.to_json(), "summary": found}, separators=(",", ":")) + "\n")
    print(text(run, found))
    if old is not None:
        print(f"\nagainst {given.compare}\n{compared(old, run)}")


def _programs(given: argparse.Namespace) -> None:
    old = _read(given.compare) if given.compare else None
    if old is not None and not isinstance(old, programs.ProgramsRun):
        raise ValueError(f"{given.compare} holds no run of `bench programs`")
    chosen = [w for w in WORKLOADS if not given.only or w.name in given.only]
    run = programs.measure(chosen, given.rounds, given.seconds, _tell)
    if given.json:
        given.json.write_text(programs.stored(run))
    print(programs.text(run))
    if old is not None:
        print(f"\nagainst {given.compare}\n{programs.compared(old, run)}")


def _read(file: Path) -> Run | programs.ProgramsRun:
    """A stored run of either kind. Raises ValueError where the file holds none."""
    value = json.loads(file.read_bytes())
    if isinstance(value, dict) and value.get("bench") == "programs":
        return programs.read_programs(value, file)
    return read_run(file)


def _compare(given: argparse.Namespace) -> None:
    old, new = _read(given.old), _read(given.new)
    if isinstance(old, Run) and isinstance(new, Run):
        print(compared(old, new))
    elif isinstance(old, programs.ProgramsRun) and isinstance(new, programs.ProgramsRun):
        print(programs.compared(old, new))
    else:
        raise ValueError("the two runs measured different things")


def _plot(given: argparse.Namespace) -> None:
    run = _read(given.run)
    picture = svg(run, summary(run)) if isinstance(run, Run) else plot_programs.svg(run)
    given.output.write_text(picture, encoding="utf-8")


def _profile(given: argparse.Namespace) -> None:
    print(profiling.profile(_cases(given), given.target, given.optimize, given.passes, given.top))


def _cache(given: argparse.Namespace) -> None:
    found = cache.measure(given.requests, given.connections, given.rounds, _tell)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    print(cache.text(found))


def _faults(given: argparse.Namespace) -> None:
    found = faults.measure(given.only, given.seconds, given.calm, given.replicas, given.rate, given.seed, _tell)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    print(faults.text(found))
    if promises := faults.broken(found):
        raise ServerTrouble(f"{len(promises)} bounds are not kept, the first: {promises[0]}")


def _start(given: argparse.Namespace) -> None:
    found = start.measure(given.targets, given.corpus, given.sample, given.seed, given.rounds, _tell)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    print(start.text(found))


def _soak(given: argparse.Namespace) -> None:
    found = soak.measure(given.compiles, given.hits, given.seconds, _tell)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    print(soak.text(found))


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


COMMANDS = {
    "compile": _compile,
    "programs": _programs,
    "compare": _compare,
    "plot": _plot,
    "profile": _profile,
    "cache": _cache,
    "faults": _faults,
    "start": _start,
    "soak": _soak,
}

if __name__ == "__main__":
    sys.exit(main())
