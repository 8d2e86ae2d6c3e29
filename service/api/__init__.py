"""One file per resource. ROUTERS is all that `app` needs to know; an endpoint is added here."""

from service.api import batch, binaries, compile, explain, explain_key, health, jobs, pages, programs, targets, validate

ROUTERS = (
    compile.ROUTER,
    batch.ROUTER,
    jobs.ROUTER,
    programs.ROUTER,
    explain.ROUTER,
    explain_key.ROUTER,
    targets.ROUTER,
    validate.ROUTER,
    health.ROUTER,
    pages.ROUTER,
)
WITH_DEVICES = (validate.VALIDATE,)  # only where a device is attached
WITH_COMPILERS = (binaries.ROUTER,)  # only where a device compiler is installed
