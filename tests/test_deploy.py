"""What the service is deployed with: every file is what its tool takes, and names nothing that is not there."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from core import COMPILER
from service.metrics import Metrics
from service.settings import PREFIX, Settings
from tests.service.process import served

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "kubernetes" / "base"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"


def ran(*command: str | Path, given: str | None = None) -> str:
    """What a tool prints; the test fails where the tool does."""
    program = shutil.which(str(command[0]), path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin")
    if program is None:
        pytest.fail(f"{command[0]} is not installed: run the tests by ./run test, which installs it")
    result = subprocess.run([program, *map(str, command[1:])], input=given, capture_output=True, text=True, timeout=120, check=False)
    assert 0 == result.returncode, result.stdout + result.stderr
    return result.stdout + result.stderr


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def exposed() -> str:
    """What `/metrics` says, every series with labels made once."""
    metrics = Metrics()
    labelled = {
        metrics.compile_requests: ("c", "hit"), metrics.leases: ("taken",), metrics.binaries: ("so", "hit"),
        metrics.compile_stage_seconds: ("lower",), metrics.cache_operations: ("store", "get", "hit"),
        metrics.cache_operation_seconds: ("store", "get"), metrics.workers: ("idle",), metrics.worker_restarts: ("lost",),
        metrics.device_up: ("gpu0",), metrics.device_jobs: ("gpu0", "validate", "done"), metrics.validations: ("gpu0", "right"),
        metrics.build_info: ("0", COMPILER),
    }  # fmt: skip
    for family, values in labelled.items():
        family.labels(*values)
    metrics.http.series("/compile", "POST", 200).add(0.001)
    return metrics.exposition("")[0].decode()


EXPOSED = exposed()
SERIES = set(re.findall(r"^([a-z_]+)(?:\{| )", EXPOSED, re.MULTILINE))


def expressions() -> Iterator[tuple[str, str]]:
    """Where, and what: every expression of PromQL there is."""
    for group in read(ALERTS)["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads((DEPLOY / "grafana" / "dashboards" / "lathe.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


EXPRESSIONS = list(expressions())


def test_metrics_are_as_prometheus_wants_them() -> None:
    ran("promtool", "check", "metrics", given=EXPOSED)


def test_every_metric_has_a_series_to_be_looked_at() -> None:
    """So that the others here see all of them."""
    families = {family.name for family in Metrics().registry.collect() if family.name.startswith("lathe_")}

    assert set() == {name for name in families if not any(series.startswith(name) for series in SERIES)}


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[f"{i} {where}" for i, (where, _) in enumerate(EXPRESSIONS)])
def test_every_metric_that_an_alert_or_a_panel_names_is_there(where: str, expression: str) -> None:
    named = set(re.findall(r"\b(lathe_[a-z_]+|process_[a-z_]+|up)\b", re.sub(r"\{[^}]*\}", "", expression)))

    assert named, where
    assert set() == named - SERIES - {"up"}


def test_alerts_fire_when_they_should_and_only_then() -> None:
    ran("promtool", "check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    ran("promtool", "test", "rules", DEPLOY / "prometheus" / "alerts_test.yml")


def test_every_alert_has_a_case_in_which_it_fires_and_says_what_to_do() -> None:
    rules = [rule for group in read(ALERTS)["groups"] for rule in group["rules"]]
    fired = {
        name
        for test in read(DEPLOY / "prometheus" / "alerts_test.yml")["tests"]
        for case in test["promql_expr_test"]
        for name in re.findall(r'alertname="(\w+)"', case["expr"])
        if case["exp_samples"]
    }

    assert fired == {rule["alert"] for rule in rules}
    assert all(rule["annotations"]["summary"] and rule["annotations"]["description"] and rule["labels"]["severity"] for rule in rules)


@pytest.mark.parametrize("path", sorted(BASE.glob("*.yaml")), ids=lambda path: path.name)
def test_every_manifest_is_what_kubernetes_takes(path: Path) -> None:
    if read(path)["kind"] in ("Kustomization", "ServiceMonitor"):  # of other schemas: looked at below
        assert read(path)["apiVersion"] in ("kustomize.config.k8s.io/v1beta1", "monitoring.coreos.com/v1")
        return
    for version in ("1.30", "1.34"):
        ran("kubernetes-validate", "-k", version, "--strict", path)


def test_the_manifests_fit_each_other() -> None:
    base = read(BASE / "kustomization.yaml")
    assert {*base["resources"], "kustomization.yaml"} == {path.name for path in BASE.glob("*.yaml")}
    deployment = read(BASE / "deployment.yaml")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    (container,) = deployment["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}

    assert labels == deployment["selector"]["matchLabels"] == read(BASE / "service.yaml")["spec"]["selector"]
    for name, at in (("disruption", "selector"), ("network", "podSelector"), ("monitor", "selector")):
        assert labels == read(BASE / f"{name}.yaml")["spec"][at]["matchLabels"]
    assert {"http": 8000} == ports
    assert [{"port": 8000, "protocol": "TCP"}] == read(BASE / "network.yaml")["spec"]["ingress"][0]["ports"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    assert read(BASE / "service.yaml")["spec"]["ports"][0]["targetPort"] in ports
    (pods, _) = read(BASE / "autoscaler.yaml")["spec"]["metrics"]
    assert pods["pods"]["metric"]["name"] in SERIES


def test_a_pod_has_time_to_drain() -> None:
    literals = dict(item.split("=") for item in read(BASE / "kustomization.yaml")["configMapGenerator"][0]["literals"])
    grace = read(BASE / "deployment.yaml")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]

    assert grace > float(literals["LATHE_DRAIN_NOTICE_S"]) + 2 * float(literals["LATHE_DRAIN_SECONDS"])


def variables() -> set[str]:
    files = [ROOT / "Dockerfile", ROOT / "docker-compose.yml", *DEPLOY.rglob("*.yaml")]
    return {name for file in files for name in re.findall(rf"\b{PREFIX}\w+", file.read_text())}


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_variable_that_is_set_is_a_setting(name: str) -> None:
    assert name.removeprefix(PREFIX).lower() in Settings.model_fields


def test_the_image_is_built_as_hadolint_wants_it() -> None:
    ran("hadolint", ROOT / "Dockerfile")


def test_the_compose_file_is_one() -> None:
    ran("check-jsonschema", "--builtin-schema", "vendor.compose-spec", ROOT / "docker-compose.yml")
    services = read(ROOT / "docker-compose.yml")["services"]
    for service in services.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith("./") or (ROOT / source).exists()
    proxy = (DEPLOY / "proxy" / "nginx.conf").read_text()
    replicas = {name for name, service in services.items() if service["image"] == "lathe"}

    assert replicas == set(re.findall(r"server (api-\d+):8000", proxy))
    assert {f"{name}:8000" for name in replicas} == set(
        read(DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"]
    )


def test_what_has_a_root_that_is_read_only_has_a_folder_for_temporary_files() -> None:
    """Workers need it: what they are forked from listens on a socket there."""
    composed = [service for service in read(ROOT / "docker-compose.yml")["services"].values() if service["image"] == "lathe"]
    pod = read(BASE / "deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (mounted,) = [mount["name"] for mount in container["volumeMounts"] if mount["mountPath"] == "/tmp"]

    assert composed
    assert all(service["read_only"] and "/tmp" in service["tmpfs"] for service in composed)
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert ["emptyDir"] == [next(key for key in volume if key != "name") for volume in pod["volumes"] if volume["name"] == mounted]


def test_the_image_s_health_check_tells_a_service_from_none() -> None:
    """The very command of the Dockerfile, against a service that runs and a port where none does."""
    (command,) = re.findall(r"^HEALTHCHECK .*\\\n\s+CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    words = [sys.executable, *json.loads(command)[1:]]

    def healthy(port: int) -> bool:
        return subprocess.run(words, env={"LATHE_PORT": str(port)}, capture_output=True, timeout=60, check=False).returncode == 0

    with served(["tests.service.fake_service"], store="memory://") as service:
        alive = healthy(service.port)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))

        assert (True, False) == (alive, healthy(nobody.getsockname()[1]))


def test_what_the_image_needs_is_not_ignored() -> None:
    """Each COPY of the build from the checkout, against the list of what is let through."""
    let_through = [line[1:].removesuffix("/**") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    assert set(let_through) == {name for names in copied for name in names.split()}
