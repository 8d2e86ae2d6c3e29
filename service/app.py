"""Plugs the parts together: `build_app(settings, store, compiler)` is the whole service as one ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match

from core import COMPILER, LatheError
from service.address import address_in
from service.api import ROUTERS, WITH_COMPILERS, WITH_DEVICES, compile, validate
from service.api.bodies import CALL, ProblemDocument
from service.api.validate import VALIDATION
from service.building import Builds
from service.catalog import Catalog, Lifetimes
from service.device import attached
from service.device.device import Device
from service.device.opencl import Conditions
from service.device.validation import Validation
from service.errors import PROBLEM_JSON, Defect, HttpRefused, from_status
from service.flight.cluster import Cluster
from service.flight.leases import Leases
from service.flight.local import Flights
from service.flight.redis import RedisLeases
from service.flight.sqlite import SqliteLeases
from service.flow import Flow
from service.front import Call, Front
from service.jobs.jobs import Jobs
from service.logs import AccessLog, logger
from service.metrics import BREAKER_STATES, Metrics
from service.services import CompilerService, Services
from service.settings import Settings, without_password
from service.shun import Shun
from service.store.breaker import Breaker, State
from service.store.memory import MemoryStore
from service.store.redis import RedisStore
from service.store.redis_link import Link, Tls
from service.store.sqlite import SqliteStore
from service.store.sqlite_file import SqliteFile
from service.store.store import Store
from service.supervision import Supervision
from service.tracing import Tracing
from service.workers.compiler import Bounds, CoreCompiler
from service.workers.pool import Pool
from service.workers.slot import Sizes
from service.workers.task import run

log = logger("app")

LOOK_AFTER_S = 1.0  # how often processes and gauges are looked after


def store_of(settings: Settings, metrics: Metrics) -> tuple[Store, Leases | None]:
    """The store that the settings name, and the leases of those who share it, where somebody can."""
    url = settings.store
    if url.startswith("memory:"):
        return MemoryStore(settings.memory_bytes // 2), None
    if url.startswith("sqlite:"):
        file = SqliteFile(Path(url.removeprefix("sqlite:///")))
        return SqliteStore(file), SqliteLeases(file)

    def changed(state: State) -> None:
        metrics.breaker_state.set(BREAKER_STATES[state])
        log.warning("the store's circuit breaker turned", state=state)

    link = Link(
        address_in(url),
        timeout_s=settings.store_timeout_s,
        connections=settings.store_connections,
        tls=Tls(settings.store_ca, settings.store_certificate, settings.store_certificate_key),
        breaker=Breaker(settings.breaker_failures, settings.breaker_seconds, on_change=changed),
    )
    store = RedisStore(link, prefix=settings.store_prefix)
    return store, RedisLeases(link, store, prefix=settings.store_prefix)


def sizes_of(settings: Settings) -> Sizes:
    """How the settings want the workers."""
    return Sizes(
        workers=settings.workers,
        tasks=settings.worker_tasks,
        memory_bytes=settings.worker_memory_bytes,
        start_s=settings.worker_start_s,
        job_s=settings.compile_seconds,
        queue=settings.queue_limit,
        client_queue=settings.queue_limit_client,
        queue_s=settings.queue_seconds,
    )


def conditions_of(settings: Settings) -> Conditions:
    """What the settings let a run on a device take."""
    return Conditions(settings.run_seconds, settings.run_queue, settings.run_memory_bytes, settings.device_cache)


def build(settings: Settings, metrics: Metrics | None = None) -> tuple[Front, Services]:
    """The service as the settings describe it."""
    metrics = metrics or Metrics()
    bounds = Bounds(settings.compile_seconds, settings.binary_bytes)
    compiler = CoreCompiler(Pool(run, sizes_of(settings), metrics), settings.limits, bounds, find=settings.binaries == "auto")
    attach = None if settings.devices == "none" else partial(attached, conditions_of(settings))
    store, leases = store_of(settings, metrics)
    return build_app(settings, store, compiler, metrics, attach, leases)


def build_app(
    settings: Settings,
    store: Store,
    compiler: CompilerService,
    metrics: Metrics | None = None,
    attach: Callable[[], list[Device]] | None = None,
    leases: Leases | None = None,
) -> tuple[Front, Services]:
    """The service with these parts: the application to serve, and the parts as handlers see them.

    attach: finds the devices there are, when the service starts; None: it has none. leases: of those who share the store; None:
    nobody does.
    """
    metrics = metrics or Metrics()
    metrics.build_info.labels(own_version(), COMPILER).set(1)
    metrics.breaker_state.set(0)
    metrics.ready.set(0)
    lifetimes = Lifetimes(settings.program_lifetime_s, settings.refusal_lifetime_s, settings.memory_seconds)
    ready_bytes = settings.memory_bytes // 2 if isinstance(store, MemoryStore) else settings.memory_bytes
    catalog = Catalog(store, metrics, ready_bytes=ready_bytes, lifetimes=lifetimes, secret=settings.store_secret)
    cluster = Cluster(leases, metrics, lease_s=settings.lease_seconds, wait_s=settings.lease_wait_s)
    supervision = Supervision(catalog, Shun(settings.shun_seconds, settings.shun_most_s), metrics)
    binary_bytes = settings.binary_memory_bytes
    builds = Builds(catalog, compiler, cluster, supervision, metrics, memory_bytes=binary_bytes, memory_s=settings.memory_seconds)
    flow = Flow(catalog, compiler, Flights(metrics.singleflight_waiters), cluster, supervision, builds, metrics)
    tracing = Tracing(settings.trace_endpoint, settings.trace_ratio, own_version()) if settings.trace_endpoint else None
    jobs = Jobs(catalog, most=settings.jobs_limit, lifetime_s=settings.job_lifetime_s, stale_s=settings.job_stale_s)
    services = Services(settings, metrics, catalog, compiler, flow, jobs, settings.access, AccessLog(settings.access_log), tracing)
    jobs.kinds[compile.KIND] = compile.work(flow)
    if attach is not None:
        services.extras[VALIDATION] = Validation(attach, catalog, metrics, settings.validate_points)

    app = FastAPI(
        title="Lathe",
        version=own_version(),
        lifespan=_life,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "auto_configure": False,
        },  # the front's spans cover what never comes here
    )
    app.state.services = services
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(LatheError, _ours)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _defect)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]  # how FastAPI wants it replaced
    return Front(app, services), services


@contextlib.asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    settings = services.settings
    if not await services.catalog.ping():
        if settings.store.startswith("sqlite:"):
            raise RuntimeError(f"the store can't be used: {services.catalog.degraded}")
        log.warning("starting without the store", store=without_password(settings.store), why=services.catalog.degraded)
    await services.compiler.start()
    validation = services.extras.get(VALIDATION)
    if isinstance(validation, Validation) and await validation.start():
        services.flow.validator = validation
        services.jobs.kinds[validate.KIND] = validate.work(services)
        for router in WITH_DEVICES:
            app.include_router(router)
        for device in validation.devices:
            services.compiler.attach(device.facts.target, device.facts.name, device.facts.driver, device.facts.choice)
    if services.compiler.toolchain:
        for router in WITH_COMPILERS:
            app.include_router(router)
    services.flow.cluster.start()
    services.phase.started = True
    care = asyncio.create_task(_look_after(services))
    log.info("started", store=without_password(settings.store), workers=settings.workers, compiler=COMPILER)
    try:
        yield
    finally:
        services.phase.draining = True
        services.ready()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.drain_seconds):
                await services.jobs.drain()
                await services.compiler.drain()
                await services.flow.flights.settle()
                await services.flow.builds.flights.settle()
        care.cancel()
        await services.flow.cluster.close()
        await services.compiler.close()
        if isinstance(validation, Validation):
            await validation.close()
        await services.flow.use.keep(services.catalog, now=True)
        await services.catalog.close()
        if services.tracing is not None:
            services.tracing.close()
        services.access_log.flush()
        log.info("ended")


async def _look_after(services: Services) -> None:
    while True:
        await services.flow.use.keep(services.catalog)
        await asyncio.sleep(LOOK_AFTER_S)
        services.compiler.update()
        services.ready()
        await services.jobs.look()
        if services.catalog.degraded is not None:
            await services.catalog.ping()


def _told(request: Request, error: LatheError) -> Response:
    call: Call = request.scope[CALL]
    told = call.refused(error)
    return Response(told.body, told.status, dict(told.headers), media_type=PROBLEM_JSON)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, LatheError)
    return _told(request, error)


async def _framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == 405:  # the framework names those of the first route that has this path
        headers["allow"] = ", ".join(sorted(_methods(request)))
    return _told(request, from_status(error.status_code, str(error.detail), headers))


def _methods(request: Request) -> set[str]:
    """The methods of all routes of this path."""
    routes = [route for router in (*ROUTERS, *WITH_DEVICES, *WITH_COMPILERS) for route in router.routes if isinstance(route, APIRoute)]
    return {method for route in routes if route.matches(request.scope)[0] is not Match.NONE for method in route.methods or ()}


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = "/".join(str(part) for part in first["loc"])
    return _told(request, HttpRefused(422, f"{where}: {first['msg']}", pointer=f"/{where}"))


async def _defect(request: Request, error: Exception) -> Response:
    return _told(request, Defect())  # the front logs the exception, which goes on to it


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title="Lathe",
            version=app.version,
            openapi_version="3.1.0",
            summary="Kernels in, programs out",
            description="A kernel goes in as a table of nodes; a program for a target comes back, and is kept under its key.",
            routes=app.routes,
        )
        schemas = schema.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = schema
    return app.openapi_schema


def own_version() -> str:
    """The version of the installed package; "0" where it runs from a source tree that is not installed."""
    try:
        return version("lathe")
    except PackageNotFoundError:
        return "0"
