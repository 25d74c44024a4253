"""What ``docs/how-to/kubernetes.md`` names is there: files, values of the chart, options, and what is imported."""

from __future__ import annotations

import ast
import importlib
import re

import pytest
import yaml  # type: ignore[import-untyped]

from tests.commands import deskhand
from tests.deploy.kubernetes import CHART, KUBERNETES, ROOT, one, read

PAGE = (ROOT / "docs/how-to/kubernetes.md").read_text("utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_every_file_that_is_named_is_there() -> None:
    named = set(re.findall(r"(?:tests/)?deploy/[\w./-]*[\w]", PAGE))
    assert {path.split("/")[2] for path in named if path.startswith("deploy/kubernetes")} == {
        path.name for path in KUBERNETES.iterdir()
    }
    for path in named:
        assert (ROOT / path).exists(), path


def test_every_value_that_is_named_is_one_of_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    named = set(re.findall(r"--set ([\w.]+)=", PAGE))
    named |= set(
        re.findall(r"`((?:image|token|networkPolicy|serviceMonitor|podDisruptionBudget|resources)[.][\w.]+)`", PAGE)
    )
    assert len(named) > 6
    for name in named:
        found = values
        for key in name.split("."):
            assert key in found, name
            found = found[key]


def test_the_python_is_python_and_what_it_imports_is_there() -> None:
    assert len(PYTHON) == 2
    for code in PYTHON:
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None
                if node.module == "deskhand.fleet.ray":
                    pytest.importorskip("ray")
                module = importlib.import_module(node.module)
                assert all(hasattr(module, name.name) for name in node.names)


def test_commands_have_the_options_that_are_shown() -> None:
    shown = re.findall(r"deskhand (fleet \w+)((?: --[\w-]+ \S+)*)", PAGE)
    assert shown
    for command, options in shown:
        helped = deskhand(None, *command.split(), "--help").text
        for option in re.findall(r"--[\w-]+", options):
            assert option in helped, (command, option)


def test_the_names_are_those_of_the_manifests() -> None:
    cluster = one(read("kuberay/raycluster.yaml"), "RayCluster")
    assert f"ray.io/cluster={cluster['metadata']['name']}," in PAGE
    (group,) = cluster["spec"]["workerGroupSpecs"]
    (resource,) = set(group["resources"]) - {"CPU"}
    assert f"--resource {resource} " in PAGE
    (size,) = re.findall(r"--size (\d+)", PAGE)
    assert f"of {int(size) * group['replicas']} leased" in PAGE
    secret = one(read("agent-sandbox/desktops.yaml"), "SandboxTemplate")["spec"]["podTemplate"]["spec"]["volumes"][-1]
    assert f"create secret generic {secret['secret']['secretName']} " in PAGE
