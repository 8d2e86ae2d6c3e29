"""The command line: `lathe serve`, `lathe compile FILE`, `lathe config`; the same as `python -m service …`.

This module is imported again by every worker process, so it loads nothing but what parses the command line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from service.settings import Loaded

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
    from core import LatheError, Request, compile_kernel, read_json

    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        typer.echo(f"lathe: {error}", err=True)
        raise typer.Exit(2) from None
    try:
        program = compile_kernel(Request.from_json(request_in(read_json(raw), target)))
    except LatheError as error:
        typer.echo(f"lathe: {error.category}: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(program.source if source else json.dumps(program.to_json(), ensure_ascii=False, indent=2))


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
