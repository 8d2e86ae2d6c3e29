"""Every knob of the service: one class, read once at the start.

A setting comes from a flag, else the environment (`LATHE_` and its name in capitals), else a TOML file, else its default;
`load` says which it was. What is not a setting is an error wherever it stands: a misspelt name would otherwise be ignored in
silence.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, PositiveInt, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from core import Limits
from service.access import Access, scopes_in, tokens_in
from service.address import SCHEMES, address_in
from service.caller import Scope

PREFIX = "LATHE_"
TESTS_PREFIX = "LATHE_TEST_"  # belongs to the test suite and its runner, never to the service
FILE_VARIABLE = "LATHE_CONFIG"  # names the file; not itself a setting
MIB = 1 << 20

Seconds = Annotated[float, Field(gt=0)]
Natural = Annotated[int, Field(ge=0)]


def default_store() -> str:
    """The embedded default: an SQLite file in the user's data folder (XDG base directories)."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return f"sqlite:///{os.path.join(home, 'lathe', 'lathe.db')}"


def default_workers() -> int:
    """One worker per processor this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


class SettingsError(ValueError):
    """A setting is unknown or has no sense; the message names it and where it came from."""


class Settings(BaseSettings):
    """Each field is a setting; docs/settings.md lists them all. Units are in the names."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, validate_default=True)

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0: any free one")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least severity that is logged")
    access_log: bool = Field(True, description="log one line per request")

    trace_endpoint: str = Field("", description="address of an OpenTelemetry collector (OTLP over HTTP); empty: no traces")
    trace_ratio: float = Field(1.0, ge=0, le=1, description="part of the traces that begin here which is kept")
    trusted_proxies: str = Field("127.0.0.1", description="addresses and networks whose `X-Forwarded-For` is believed, with commas between")
    tokens: str = Field("", description="clients' tokens, each as `NAME:SCOPE+SCOPE:SHA256`, with spaces between")
    anonymous: str | None = Field(
        None, description="scopes of clients without a token; not set: all of them, or none where there are tokens"
    )
    tls_cert: str = Field("", description="file of the certificate (chain) to serve TLS with")
    tls_key: str = Field("", description="file of its key; empty: it is in the same file")
    tls_key_password: str = Field("", description="the key's password")
    tls_client_ca: str = Field("", description="file of the authorities one of which must have signed a client's certificate")

    store: str = Field(default_factory=default_store, description="where programs are kept: `memory://`, `sqlite:///FILE` or `redis://…`")
    store_prefix: str = Field("lathe", pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="first part of every name in Redis")
    store_secret: str = Field("", description="with this secret stored values carry a MAC; values without it are not believed")
    store_timeout_s: Seconds = Field(0.2, description="longest wait for one answer of Redis, with connecting to it")
    store_connections: PositiveInt = Field(32, description="most connections to Redis; of a cluster, to each of its servers")
    store_ca: str = Field("", description="file of certificates to believe Redis by, in place of the system's")
    store_certificate: str = Field("", description="file of the certificate to show to Redis")
    store_certificate_key: str = Field("", description="file of the key that belongs to it")
    breaker_failures: PositiveInt = Field(3, description="failures in a row after which the store is left alone for a while")
    breaker_seconds: Seconds = Field(1.0, description="how long it is left alone before one call tries again")
    memory_bytes: PositiveInt = Field(256 * MIB, description="memory for programs in this process, all levels together")
    memory_seconds: Seconds = Field(300.0, description="how long this process believes its memory before it asks the store again")
    program_lifetime_s: PositiveInt = Field(90 * 86400, description="how long a program is kept after it was last asked for")
    refusal_lifetime_s: PositiveInt = Field(60, description="how long a refusal that depends on the request alone is kept")

    lease_seconds: Seconds = Field(5.0, description="life of a lease for a compile that is not renewed: its process is gone")
    lease_wait_s: Seconds = Field(60.0, description="longest wait for another process's compile before compiling it here too")

    workers: PositiveInt = Field(default_factory=default_workers, description="worker processes that compile")
    worker_tasks: PositiveInt = Field(500, description="compiles after which a worker is replaced")
    worker_memory_bytes: int = Field(2048 * MIB, ge=128 * MIB, description="address space a worker may have")
    worker_start_s: Seconds = Field(60.0, description="longest time a worker may take to start")
    compile_seconds: Seconds = Field(30.0, description="longest time one compile may run")
    binaries: Literal["auto", "none"] = Field("auto", description="device compilers to make binaries by: all that are installed, or none")
    binary_bytes: int = Field(16 * MIB, ge=1, le=256 * MIB, description="largest binary")
    binary_memory_bytes: PositiveInt = Field(64 * MIB, description="memory for binaries in this process")
    queue_limit: Natural = Field(512, description="most compiles that may wait for a worker")
    queue_limit_client: PositiveInt = Field(256, description="most of these that may be one client's")
    queue_seconds: Seconds = Field(60.0, description="longest time one compile may wait for a worker")
    shun_seconds: Seconds = Field(10.0, description="how long a kernel that kills workers is refused at first; doubles each time")
    shun_most_s: Seconds = Field(3600.0, description="how long it is refused at most")

    devices: Literal["auto", "none"] = Field("auto", description="attached devices to validate on: all that are found, or none")
    device_cache: str = Field("", description="folder for what drivers compile; empty: one in the folder for temporary files")
    run_seconds: Seconds = Field(60.0, description="longest time one validation may run")
    run_queue: PositiveInt = Field(16, description="most validations that may wait for one device")
    run_memory_bytes: int = Field(16384 * MIB, ge=1024 * MIB, description="address space a device's process may have")
    validate_points: PositiveInt = Field(1 << 28, description="most points of nodes a reference evaluation may go through")

    body_bytes: PositiveInt = Field(16 * MIB, description="largest body as it is sent")
    inflated_bytes: PositiveInt = Field(64 * MIB, description="largest body after its content coding is undone")
    body_seconds: Seconds = Field(30.0, description="longest time a client may take to send a body")
    head_bytes: PositiveInt = Field(65536, description="largest request line and headers")
    head_seconds: Seconds = Field(10.0, description="longest time a client may take to send these")
    stall_seconds: Seconds = Field(60.0, description="longest time in which a client takes nothing more of an answer")
    connections_limit: PositiveInt = Field(8192, description="most connections at once")
    lookup_keys: PositiveInt = Field(1000, description="most keys in one `POST /programs/lookup`")
    batch_requests: PositiveInt = Field(1000, description="most requests in one `POST /compile/batch`")
    batch_parallel: PositiveInt = Field(32, description="most of these that are compiled or waited for at once")
    jobs_limit: PositiveInt = Field(1000, description="most jobs that may run in this process")
    job_lifetime_s: PositiveInt = Field(86400, description="how long a job is kept after it was last heard of")
    job_stale_s: Seconds = Field(10.0, description="silence of a process after which its jobs begin anew elsewhere")
    seen_bodies: PositiveInt = Field(65536, description="digests of bodies remembered with the key they led to")
    drain_notice_s: float = Field(0.0, ge=0, description="how long a process told to end still listens while it says it is not ready")
    drain_seconds: Seconds = Field(30.0, description="longest time running work may take after that")

    limit_nesting: PositiveInt = Field(Limits().nesting, description="JSON arrays and objects within each other")
    limit_nodes: PositiveInt = Field(Limits().nodes, description="nodes of a kernel")
    limit_rank: PositiveInt = Field(Limits().rank, description="axes of a kernel")
    limit_views: PositiveInt = Field(Limits().views, description="views of one leaf")
    limit_variables: PositiveInt = Field(Limits().variables, description="variables of a kernel")
    limit_expression_chars: PositiveInt = Field(Limits().expression_chars, description="characters of one expression")
    limit_sites: PositiveInt = Field(Limits().sites, description="evaluations of nodes once nested reduces have loops of their own")
    limit_expanded: PositiveInt = Field(Limits().expanded, description="elements one program point may stand for")
    limit_micro_ops: PositiveInt = Field(Limits().micro_ops, description="micro-ops of a lowered kernel")
    limit_source_chars: PositiveInt = Field(Limits().source_chars, description="characters of a program's text")

    @field_validator("store")
    @classmethod
    def _store_is_known(cls, value: str) -> str:
        scheme = urlsplit(value).scheme
        if scheme == "sqlite" and not value.startswith("sqlite:///"):
            raise ValueError("expected sqlite:/// and the path of a file")
        if scheme not in ("memory", "sqlite"):
            if scheme not in SCHEMES:
                raise ValueError(f"expected memory://, sqlite:///FILE or one of {', '.join(f'{name}://' for name in SCHEMES)}")
            address_in(value)
        return value

    @field_validator("tokens")
    @classmethod
    def _tokens_are_some(cls, value: str) -> str:
        tokens_in(value)
        return value

    @field_validator("anonymous")
    @classmethod
    def _anonymous_are_scopes(cls, value: str | None) -> str | None:
        scopes_in(value or "")
        return value

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Settings:
        if (self.tls_key or self.tls_client_ca) and not self.tls_cert:
            raise ValueError("tls_key and tls_client_ca need tls_cert")
        return self

    @property
    def access(self) -> Access:
        """Who may do what."""
        tokens = tokens_in(self.tokens)
        anonymous = self.anonymous if self.anonymous is not None else "" if tokens else Scope.ADMIN
        return Access(tokens, scopes_in(anonymous))

    @property
    def limits(self) -> Limits:
        """The compiler's limits, from the `limit_` settings."""
        return Limits(**{field.name: getattr(self, f"limit_{field.name}") for field in fields(Limits)})

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)  # `load` brings the sources together, for it also tells where each value came from


SECRET = ("store_secret", "tokens", "tls_key_password")  # shown as set or not, never as they are; addresses lose their password


@dataclass(frozen=True, slots=True)
class Loaded:
    """The effective settings, and where each came from: `flag`, `environment`, `file …` or `default`."""

    settings: Settings
    origins: Mapping[str, str]

    def rows(self) -> list[tuple[str, str, str]]:
        """Name, value and origin of each setting, fit to be shown: no secret among them."""
        return [(name, shown_value(name, getattr(self.settings, name)), self.origins[name]) for name in type(self.settings).model_fields]


def shown_value(name: str, value: object) -> str:
    """A setting as it may be shown or logged."""
    if name in SECRET:
        return "(set)" if value else "(not set)"
    return without_password(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def without_password(address: str) -> str:
    """An address whose password, if it has one, is hidden."""
    if "://" not in address or "@" not in address:
        return address
    scheme, rest = address.split("://", 1)
    who, where = rest.rsplit("@", 1)
    return f"{scheme}://{who.split(':', 1)[0]}:***@{where}" if ":" in who else address


def load(flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None, file: Path | None = None) -> Loaded:
    """The settings from flags, environment and file, in this order of precedence.

    file: a TOML file; None: the one `LATHE_CONFIG` names, if it does. Raises SettingsError for an unknown name or a value that
    has no sense.
    """
    environ = os.environ if environ is None else environ
    named = environ.get(FILE_VARIABLE)
    if file is None and named:
        file = Path(named)
    sources: list[tuple[str, Mapping[str, object]]] = [("flag", dict(flags or {})), ("environment", _from_environment(environ))]
    if file is not None:
        sources.append((f"file {file}", _from_file(file)))
    values: dict[str, object] = {}
    origins = dict.fromkeys(Settings.model_fields, "default")
    for origin, source in reversed(sources):
        for name, value in source.items():
            if name not in Settings.model_fields:
                raise SettingsError(f"{origin}: there is no setting {_spelt(origin, name)!r}")
            values[name] = value
            origins[name] = origin
    try:
        return Loaded(Settings(**values), origins)  # type: ignore[arg-type]  # checked by the class itself
    except ValidationError as error:
        raise SettingsError("; ".join(_complaint(item["loc"], item["msg"], origins) for item in error.errors())) from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    return {
        name[len(PREFIX) :].lower(): value
        for name, value in environ.items()
        if name.startswith(PREFIX) and not name.startswith(TESTS_PREFIX) and name != FILE_VARIABLE
    }


def _from_file(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"file {file}: {error}") from None


def _spelt(origin: str, name: str) -> str:
    if origin == "environment":
        return PREFIX + name.upper()
    return "--" + name.replace("_", "-") if origin == "flag" else name


def _complaint(where: tuple[int | str, ...], message: str, origins: Mapping[str, str]) -> str:
    name = str(where[0]) if where else "settings"
    return f"{name} ({origins.get(name, 'default')}): {message}"
