"""The files that start a cluster: held against the schema of whoever reads them. Nothing is started."""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import yaml

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "cluster"
# What KubeRay's resource definition asks of a RayCluster, as far as the example uses it.
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
            "properties": {"spec": {"type": "object", "required": ["containers"], "properties": {"containers": CONTAINERS}}},
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
                    "items": {**GROUP, "required": ["groupName", "replicas", "minReplicas", "maxReplicas", *GROUP["required"]]},
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


def test_both_offer_what_weir_asks_for() -> None:
    for name in ("ray-cluster.yaml", "kuberay.yaml"):
        offered = set(re.findall(r"weir_\w+", (EXAMPLES / name).read_text()))
        assert offered == {"weir_load", "weir_stack"}, name


def test_resources_are_json_behind_the_shells_quotes() -> None:
    spec = read("kuberay.yaml")["spec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    for group in groups:
        told = group["rayStartParams"]["resources"]
        # The shell reads the outer quotes and the backslashes.
        assert json.loads(json.loads(told.strip("'")))
