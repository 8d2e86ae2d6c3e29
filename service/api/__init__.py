"""One file per resource. ROUTERS is all that `app` needs to know; an endpoint is added here."""

from service.api import compile, explain, health, pages, programs, targets, validate

ROUTERS = (compile.ROUTER, programs.ROUTER, explain.ROUTER, targets.ROUTER, validate.ROUTER, health.ROUTER, pages.ROUTER)
WITH_DEVICES = (validate.VALIDATE,)  # only where a device is attached
