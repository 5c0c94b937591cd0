"""The manifests of `deploy/kubernetes` fit the service and each other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.config.loading import load
from rlmm.config.process import ServiceMode
from rlmm.http.routes import ROUTES
from rlmm.http.settings import LocalRole
from tests.support.repository import foreign_tools, tree
from tests.support.repository.deployment import container, documents, files, manifest, run

if TYPE_CHECKING:
    from rlmm.config.loading import LoadedConfiguration

PATHS = {route.path for route in ROUTES}
KUBERNETES = Path("deploy/kubernetes")
CONFIGURED = ("base", "strimzi", "brokers")


def configured(folder: str, tmp_path: Path) -> LoadedConfiguration:
    """Return the configuration of a folder of manifests, with the variables of its container."""
    text = manifest(f"{folder}/configmap.yaml", "ConfigMap")["data"]["rlmm.toml"]
    file = tmp_path / "rlmm.toml"
    file.write_text(text)
    environ = {}
    if folder != "base":
        named = container(f"{folder}/deployment.yaml").get("env", [])
        environ = {variable["name"]: "given-by-a-secret" for variable in named}
    return load(environ=environ, file=file)


@pytest.mark.parametrize("folder", CONFIGURED)
def test_configuration_of_the_manifests_is_one(folder: str, tmp_path: Path) -> None:
    """The service takes the TOML of each ConfigMap together with the secrets."""
    loaded = configured(folder, tmp_path)
    assert loaded.notices == ()
    config = loaded.config
    assert config.kafka is not None
    expected = ServiceMode.SERVE if folder == "brokers" else ServiceMode.OBSERVER
    assert config.process.mode is expected
    assert config.http.address == ("0.0.0.0", 7405)
    assert (config.sidecar.address is not None) == (folder == "brokers")


def test_container_has_the_ports_and_paths_of_its_configuration(tmp_path: Path) -> None:
    """Probes, mounts and listeners use the same ports and paths."""
    base, brokers = container("base/deployment.yaml"), container("brokers/deployment.yaml")
    config = configured("brokers", tmp_path).config
    ports = {one["name"]: one["containerPort"] for one in [*base["ports"], *brokers["ports"]]}
    assert config.http.address is not None
    assert config.sidecar.address is not None
    assert ports == {"http": config.http.address[1], "brokers": config.sidecar.address[1]}
    probes = {
        name: base[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")
    }
    assert [probes[name]["path"] for name in probes] == ["/startupz", "/readyz", "/livez"]
    assert {one["path"] for one in probes.values()} <= PATHS
    assert {one["port"] for one in probes.values()} == {"http"}
    mounts = {one["name"]: one["mountPath"] for one in base["volumeMounts"]}
    assert mounts["data"] == str(config.process.data_dir)
    assert base["args"] == ["serve", "--config", f"{mounts['config']}/rlmm.toml"]
    assert base["resources"]["limits"]["memory"] == base["resources"]["requests"]["memory"]
    services = [
        manifest("base/service.yaml", "Service"),
        manifest("brokers/service.yaml", "Service"),
    ]
    assert {one["targetPort"] for each in services for one in each["spec"]["ports"]} == set(ports)
    monitor = manifest("servicemonitor.yaml", "ServiceMonitor")["spec"]["endpoints"]
    assert [(one["port"], one["path"] in PATHS) for one in monitor] == [("http", True)]


def test_memory_of_the_pod_holds_the_state_and_all_that_clients_may_take(tmp_path: Path) -> None:
    """The defaults add up to less than the limit, also above 90 % of it, where events stop."""
    mib = 2**20
    limits = configured("brokers", tmp_path).config.sidecar
    (pod,) = manifest("base/deployment.yaml", "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    quantity = pod["resources"]["limits"]["memory"]
    assert quantity.endswith("Gi")
    limit = int(quantity.removesuffix("Gi")) * 1024 * mib
    clients = (
        limits.received_bytes_max
        + limits.greeting_bytes_max
        + limits.waiting_bytes_total_max
        + limits.unsent_bytes_total_max
    )
    assert clients <= 64 * mib
    message = 32 * mib  # one frame of the largest size while it is read, and its answer
    process, state = 100 * mib, 512 * mib
    assert process + state + limits.assigned_bytes_max + clients + message <= limit
    assert limit * 9 // 10 + clients + message <= limit


def test_pod_is_nobody_and_writes_nothing_but_its_volume(tmp_path: Path) -> None:
    """The pod is not root, has no rights, a read-only root, and time for an orderly stop."""
    pod = manifest("base/deployment.yaml", "Deployment")["spec"]["template"]["spec"]
    security = {**pod["securityContext"], **pod["containers"][0]["securityContext"]}
    assert security["runAsNonRoot"]
    assert security["readOnlyRootFilesystem"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["runAsUser"] == security["fsGroup"] > 0
    given = {"configMap", "secret"}
    assert [one["name"] for one in pod["volumes"] if not given & one.keys()] == ["data"]
    config = configured("base", tmp_path).config
    assert pod["terminationGracePeriodSeconds"] * 1_000 > config.process.shutdown_timeout_ms
    assert pod["enableServiceLinks"] is False


@pytest.mark.parametrize("folder", CONFIGURED)
def test_pod_on_a_network_has_tokens_from_its_secret(folder: str, tmp_path: Path) -> None:
    """The pod takes its tokens from a secret at the documented path, readable by its group."""
    config = configured(folder, tmp_path).config
    assert config.http.address is not None
    assert (config.http.local_role, config.http.token_file) == (LocalRole.NONE, "none")
    file = config.access.tokens_file
    assert file is not None
    mounts = {
        one["mountPath"]: (one["name"], one["readOnly"])
        for one in container("base/deployment.yaml")["volumeMounts"]
        if "readOnly" in one
    }
    assert mounts[str(file.parent)] == ("tokens", True)
    pod = manifest("base/deployment.yaml", "Deployment")["spec"]["template"]["spec"]
    (secret,) = [one["secret"] for one in pod["volumes"] if one["name"] == "tokens"]
    assert secret == {"secretName": "rlmm-tokens", "defaultMode": 0o440}
    said = [KUBERNETES / folder / "kustomization.yaml", KUBERNETES / "README.md"]
    for page in said:
        (line,) = re.findall(r"kubectl create .*secret generic rlmm-tokens (.*)", tree.read(page))
        assert re.match(rf"--from-(literal|file)={file.name}\b", line), page


def test_everything_of_the_manifests_finds_the_pods() -> None:
    """Each selector is of labels that the pods have."""
    deployment = manifest("base/deployment.yaml", "Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    selectors = [deployment["selector"]["matchLabels"]]
    for file, kind in (
        ("base/service.yaml", "Service"),
        ("brokers/service.yaml", "Service"),
        ("base/poddisruptionbudget.yaml", "PodDisruptionBudget"),
        ("base/networkpolicy.yaml", "NetworkPolicy"),
        ("brokers/networkpolicy.yaml", "NetworkPolicy"),
    ):
        spec = manifest(file, kind)["spec"]
        found = spec.get("selector", spec.get("podSelector"))
        selectors.append(found.get("matchLabels", found))
    assert all(selector.items() <= labels.items() and selector for selector in selectors)


def test_nodes_can_be_drained_with_as_many_replicas_as_there_are() -> None:
    """No disruption budget covers a single pod, because it would block every drain."""
    budget = manifest("base/poddisruptionbudget.yaml", "PodDisruptionBudget")["spec"]
    replicas = manifest("brokers/deployment.yaml", "Deployment")["spec"]["replicas"]
    assert replicas - budget.get("minAvailable", replicas - budget.get("maxUnavailable", 0)) >= 1


def test_kafka_user_may_read_one_topic_and_nothing_else(tmp_path: Path) -> None:
    """An observer beside Strimzi has READ and DESCRIBE on the metadata topic."""
    user = manifest("strimzi/kafka-user.yaml", "KafkaUser")
    assert user["apiVersion"] == "kafka.strimzi.io/v1", "what came before is gone from 1.0 on"
    (rights,) = user["spec"]["authorization"]["acls"]
    config = configured("strimzi", tmp_path).config
    assert config.kafka is not None
    assert rights["resource"]["name"] == config.kafka.topic.name
    assert set(rights["operations"]) == {"Read", "Describe"}
    name = user["metadata"]["name"]
    assert config.kafka.security.sasl_username == name
    (variable,) = container("strimzi/deployment.yaml")["env"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": name, "key": "password"}


@pytest.mark.parametrize("folder", CONFIGURED)
def test_kustomization_names_every_file_that_is_there(folder: str) -> None:
    """The kustomization has every file of its folder."""
    here = KUBERNETES / folder
    (found,) = documents(here / "kustomization.yaml")
    named = {*found["resources"], *(one["path"] for one in found.get("patches", []))}
    there = {path.name for path in files(".yaml") if path.parent == here}
    assert named - {"../base"} == there - {"kustomization.yaml", "secret-example.yaml"}


@pytest.mark.network
@pytest.mark.parametrize("folder", CONFIGURED)
def test_manifests_when_kubeconform_judges_then_each_is_of_kubernetes_own_schema(
    folder: str, tmp_path: Path
) -> None:
    """`kubeconform` finds no unknown field and no wrong type in what each folder is built into."""
    built = tmp_path / "built.yaml"
    built.write_text(run(foreign_tools.kustomize(), "build", KUBERNETES / folder))
    examples = [path for path in files(".yaml") if path.name == "secret-example.yaml"]
    schemas = (
        f"{foreign_tools.kubernetes_schemas()}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
    )
    output = run(
        foreign_tools.kubeconform(), "-summary", "-output", "json", "-skip", "KafkaUser",
        "-schema-location", schemas, built, *examples,
    )  # fmt: skip
    summary = json.loads(output)["summary"]
    assert summary["valid"] > len(examples) + 3
    assert summary["invalid"] == summary["errors"] == 0
