# The service with its compiler, and what PoCL needs to run programs on the processor. Nothing in it is writable but a volume for the embedded
# store; everything runs as one user without rights.
#
#   docker build -t lathe .
#   docker run --read-only --tmpfs /tmp -p 8000:8000 lathe
#
# BASE is best given by digest (…@sha256:…) where images are built for others. LOCK=requirements-tracing.lock adds OpenTelemetry's exporter,
# LOCK=requirements-cuda.lock NVIDIA's compilers; COMPILERS="gcc clang-19 lld-19" (Debian's packages) adds device compilers for binaries.

ARG BASE=docker.io/library/python:3.11-slim-bookworm

FROM ${BASE} AS build
ARG LOCK=requirements.lock
RUN python3 -m venv /opt/lathe
ENV PATH=/opt/lathe/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements*.lock ./
RUN pip install --require-hashes --requirement "$LOCK"
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY service service
RUN pip install --no-deps --no-index --no-build-isolation . \
    && python -m compileall -q /opt/lathe/lib

FROM ${BASE} AS service
ARG COMPILERS=""
# PoCL links each kernel it builds: with ld, libgcc and the C library's start files.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends binutils libc6-dev libgcc-12-dev $COMPILERS \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 lathe \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/lathe --shell /usr/sbin/nologin lathe \
    && install -d -o 10001 -g 10001 /var/lib/lathe
COPY --from=build /opt/lathe /opt/lathe
ENV PATH=/opt/lathe/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    LATHE_HOST=0.0.0.0 \
    LATHE_STORE=sqlite:////var/lib/lathe/lathe.db
USER 10001:10001
VOLUME /var/lib/lathe
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ.get('LATHE_PORT', '8000')}/healthz\", timeout=2)"]
ENTRYPOINT ["lathe"]
CMD ["serve"]
