"""Tests the files that start a cluster against the schemas of their readers. No test starts a cluster."""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import jsonschema
import yaml

from weir.cluster.ray_cluster import Role, get_resource_name

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "cluster"
# The parts of KubeRay's schema for a RayCluster that the example uses.
CONTAINERS = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "object", "required": ["name", "image", "resources"]},
}
GROUP = {
    "type": "object",
    "required": ["rayStartParams", "template"],
    "properties": {
        "rayStartParams": {"type": "object", "additionalProperties": {"type": "string"}},
        "template": {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {"type": "object", "required": ["containers"], "properties": {"containers": CONTAINERS}}
            },
        },
    },
}
KUBERAY = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayCluster"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "required": ["headGroupSpec"],
            "additionalProperties": False,
            "properties": {
                "headGroupSpec": GROUP,
                "workerGroupSpecs": {
                    "type": "array",
                    "items": {
                        **GROUP,
                        "required": ["groupName", "replicas", "minReplicas", "maxReplicas", *GROUP["required"]],
                    },
                },
            },
        },
    },
}


def read(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text())


def test_the_launcher_file_is_what_rays_launcher_takes() -> None:
    found = find_spec("ray")
    assert found is not None
    assert found.origin is not None
    schema = json.loads((Path(found.origin).parent / "autoscaler" / "ray-schema.json").read_text())
    jsonschema.validate(read("ray-cluster.yaml"), schema)


def test_the_kubernetes_file_is_a_ray_cluster() -> None:
    jsonschema.validate(read("kuberay.yaml"), KUBERAY)


def test_the_pods_offer_every_role() -> None:
    spec = read("kuberay.yaml")["spec"]
    told = [group["rayStartParams"]["resources"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]
    # The shell removes the outer quotes and the backslashes.
    offered = [json.loads(json.loads(resources.strip("'"))) for resources in told]
    assert sorted(name for resources in offered for name in resources) == sorted(map(get_resource_name, get_args(Role)))


def test_the_launchers_machines_offer_loads_and_stacks_and_one_joins_by_hand_for_services() -> None:
    found = read("ray-cluster.yaml")
    started = " ".join(found["head_start_ray_commands"] + found["worker_start_ray_commands"])
    assert set(re.findall(r"weir_\w+", started)) == {get_resource_name("load"), get_resource_name("stack")}
    by_hand = [
        line for line in (EXAMPLES / "ray-cluster.yaml").read_text().splitlines() if line.startswith("#   ray start")
    ]
    assert [re.findall(r"weir_\w+", line) for line in by_hand] == [[get_resource_name("service")]]
