"""One file per resource. ROUTERS is all that `app` needs to know; an endpoint is added here."""

from service.api import compile, health, pages, programs, targets

ROUTERS = (compile.ROUTER, programs.ROUTER, targets.ROUTER, health.ROUTER, pages.ROUTER)
