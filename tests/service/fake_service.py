"""`python -m tests.service.fake_service`: the service with the fake compiler in real worker processes; settings as ever."""

from __future__ import annotations


def main() -> int:
    """Imports here, not above: each worker imports this module again and needs none of them."""
    from service import logs
    from service.app import build_app, sizes_of, store_of
    from service.metrics import Metrics
    from service.serve import run as serve
    from service.settings import load
    from service.workers.pool import Pool
    from tests.service.fake import FakePool
    from tests.service.fake_task import run

    settings = load().settings
    logs.configure(settings.log_level)
    metrics = Metrics()
    compiler = FakePool(Pool(run, sizes_of(settings), metrics))
    store, leases = store_of(settings, metrics)
    return serve(*build_app(settings, store, compiler, metrics, leases=leases))


if __name__ == "__main__":
    raise SystemExit(main())
