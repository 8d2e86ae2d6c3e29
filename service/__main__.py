"""The command line, `lathe …`; the same as `python -m service …`.

This module is imported again by every worker process, so it loads nothing but what parses the command line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from service.settings import Loaded, Settings

T = TypeVar("T")

cli = typer.Typer(add_completion=False, no_args_is_help=True, help="Lathe compiles kernels: JSON in, programs out.")

ANY_SETTING = {"allow_extra_args": True, "ignore_unknown_options": True}
ConfigFile = Annotated[Path | None, typer.Option("--config", help="a TOML file of settings", dir_okay=False)]


def flags(words: list[str]) -> dict[str, str]:
    """Settings given as flags: `--queue-limit 5` or `--queue-limit=5`. Exits where a word is no such thing."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, given, value = word.partition("=")
        if not name.startswith("--"):
            raise typer.BadParameter(f"{word!r} is no setting")
        if not given:
            value = next(rest, "")
        found[name.removeprefix("--").replace("-", "_")] = value
    return found


def _loaded(words: list[str], config: Path | None) -> Loaded:
    from service.settings import SettingsError, load

    try:
        return load(flags(words), file=config)
    except SettingsError as error:
        typer.echo(f"lathe: {error}", err=True)
        raise typer.Exit(2) from None


@cli.command(context_settings=ANY_SETTING)
def serve(context: typer.Context, config: ConfigFile = None) -> None:
    """Serve over HTTP. Every setting can be given as a flag, such as --port 8000 or --store memory://; `config` lists them."""
    loaded = _loaded(context.args, config)
    from service.serve import serve as serve_until_told

    raise typer.Exit(serve_until_told(loaded.settings))


@cli.command(name="config", context_settings=ANY_SETTING)
def config_(context: typer.Context, config: ConfigFile = None) -> None:
    """Show every setting in force and where it came from: a flag, the environment, a file or its default."""
    rows = _loaded(context.args, config).rows()
    wide = max(len(name) for name, _, _ in rows)
    for name, value, origin in rows:
        typer.echo(f"{name:{wide}}  {value}  ({origin})")


@cli.command()
def token(
    name: Annotated[str, typer.Argument(help="the client's name, as logs and the queue will have it")],
    scope: Annotated[list[str], typer.Option(help="read, compile, validate, tune or admin; may be given again")],
) -> None:
    """Make a token. The first line is the client's secret, shown this once; the second belongs into the setting `tokens`."""
    from service.access import Token, made, scopes_in

    try:
        shown, kept = made(name, scopes_in("+".join(scope)))
        Token.parse(str(kept))
    except ValueError as error:
        typer.echo(f"lathe: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"{shown}\n{kept}")


@cli.command(name="compile")
def compile_(
    file: Annotated[Path, typer.Argument(help="a request or a bare AST, as JSON; - is standard input")],
    target: Annotated[str | None, typer.Option(help="the target, where the file is a bare AST or names another")] = None,
    source: Annotated[bool, typer.Option("--source", help="print the program's text alone")] = False,
) -> None:
    """Compile one kernel here, without a service, and print the program."""
    from core import LatheError, Request, TargetError, compile_kernel, read_json

    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        typer.echo(f"lathe: {error}", err=True)
        raise typer.Exit(2) from None
    try:
        request = Request.from_json(request_in(read_json(raw), target))
        if request.binary:
            raise TargetError(
                "/binary", target=request.device.target, feature="binaries without a service: ask one, or `lathe warm` its store"
            )
        program = compile_kernel(request)
    except LatheError as error:
        typer.echo(f"lathe: {error.category}: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(program.source if source else json.dumps(program.to_json(), ensure_ascii=False, indent=2))


Store = Annotated[str | None, typer.Option("--store", help="the store, in place of the setting")]


def _for_store(config: Path | None, store: str | None) -> Settings:
    """The settings of a command that works on a store which outlives it."""
    loaded = _loaded([] if store is None else ["--store", store], config)
    if loaded.settings.store.startswith("memory:"):
        typer.echo("lathe: the store memory:// ends with this command: name another", err=True)
        raise typer.Exit(2)
    return loaded.settings


def _run(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work; whatever a user can do something about is said in one line."""
    import asyncio

    from core import LatheError
    from service import logs

    logs.configure("error")
    try:
        return asyncio.run(work)
    except (LatheError, OSError, ValueError) as error:
        typer.echo(f"lathe: {error}", err=True)
        raise typer.Exit(1) from None


@cli.command(name="export")
def export_(
    file: Annotated[Path, typer.Argument(help="the file to write", dir_okay=False)], config: ConfigFile = None, store: Store = None
) -> None:
    """Write every program in the store to a file, with what it was compiled from and what devices have said of it."""
    settings = _for_store(config, store)
    from rich.console import Console
    from rich.progress import TaskID

    from service.tools.archive import exported
    from service.tools.parts import parts, progress

    async def work() -> int:
        async with parts(settings) as services:
            with progress(Console(stderr=True), "programs", None) as bar:
                return await exported(services.catalog, file, lambda: bar.advance(TaskID(0)))

    typer.echo(f"{_run(work())} programs in {file}")


@cli.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="a file that `lathe export` has written", dir_okay=False, exists=True)],
    config: ConfigFile = None,
    store: Store = None,
) -> None:
    """Keep every program in a file; what the store has already stays as it is."""
    settings = _for_store(config, store)
    from rich.console import Console
    from rich.progress import TaskID

    from service.tools.archive import imported
    from service.tools.parts import parts, progress

    async def work() -> int:
        async with parts(settings) as services:
            with progress(Console(stderr=True), "programs", None) as bar:
                return await imported(services.catalog, file, lambda: bar.advance(TaskID(0)))

    typer.echo(f"{_run(work())} new programs from {file}")


@cli.command()
def warm(
    file: Annotated[Path, typer.Argument(help="requests: one, an array, or one on each line", dir_okay=False, exists=True)],
    config: ConfigFile = None,
    store: Store = None,
) -> None:
    """Compile the requests in a file into the store, before anybody asks for them. Fails where one of them does."""
    settings = _for_store(config, store)
    from rich.console import Console
    from rich.progress import TaskID

    from service.tools.parts import parts, progress
    from service.tools.warm import Tally, requests_in
    from service.tools.warm import warm as warmed

    async def work() -> Tally:
        requests = requests_in(file)
        async with parts(settings, compiling=True) as services:
            with progress(Console(stderr=True), "kernels", len(requests)) as bar:
                return await warmed(services, requests, lambda: bar.advance(TaskID(0)))

    tally = _run(work())
    for problem in tally.problems:
        typer.echo(f"lathe: {problem}", err=True)
    typer.echo(", ".join(f"{count} {result}" for result, count in sorted(tally.results.items())) or "no requests")
    raise typer.Exit(1 if tally.problems else 0)


@cli.command()
def replay(
    most: Annotated[int, typer.Option(min=1, help="how many programs, the most used first")] = 1000,
    config: ConfigFile = None,
    store: Store = None,
) -> None:
    """After an upgrade and before the switch: compile anew what was asked for most often, and report what has changed.

    Prints one JSON line for each program that is not the same. Fails where one can't be compiled any more.
    """
    settings = _for_store(config, store)
    from dataclasses import asdict

    from rich.console import Console
    from rich.progress import TaskID

    from service.tools.parts import parts, progress
    from service.tools.warm import Change
    from service.tools.warm import replay as replayed

    async def work() -> list[Change]:
        async with parts(settings, compiling=True) as services:
            with progress(Console(stderr=True), "programs", None) as bar:
                return await replayed(services, most, lambda _: bar.advance(TaskID(0)))

    changes = _run(work())
    for change in changes:
        if change.change != "same":
            typer.echo(json.dumps(asdict(change)))
    counts = {name: sum(change.change == name for change in changes) for name in ("same", "changed", "refused", "gone")}
    typer.echo(", ".join(f"{count} {name}" for name, count in counts.items()), err=True)
    raise typer.Exit(1 if counts["refused"] else 0)


def request_in(value: object, target: str | None) -> object:
    """The request a file holds: itself, or around a bare AST. target: goes in place of the one it names."""
    if isinstance(value, dict) and "nodes" in value and "ast" not in value:
        value = {"ast": value, "device": {"target": target or "opencl"}}
    elif isinstance(value, dict) and target is not None:
        device = value.get("device")
        value = {**value, "device": {**(device if isinstance(device, dict) else {}), "target": target}}
    return value


def main() -> None:
    """What the console command `lathe` calls."""
    cli(prog_name="lathe")


if __name__ == "__main__":
    main()
