"""A desktop of the Helm chart, with the variables, the names and the secret that its pod has there."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.kubernetes import Document, find_helm, one, read
from tests.deploy.test_chart import container, environment
from tests.image.computers import Computer, started
from tests.image.containers import PORT

RELEASE = "desks"


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return find_helm().render({"replicas": 1, "size": "1024x768", "hosts": ["desks.example.org"]}, release=RELEASE)


@pytest.fixture(scope="module")
def desktop(documents: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Computer]:
    variables = environment(documents)
    directory = tmp_path_factory.mktemp("pod")
    token = directory / "token"
    token.touch(0o400)
    token.write_text(secrets.token_urlsafe(32))
    hosts = directory / "hosts"
    hosts.write_text("127.0.0.1 localhost " + variables["DESKHAND_HOSTS"].replace(",", " ") + "\n")
    volumes = [(token, variables["DESKHAND_TOKEN_FILE"]), (hosts, "/etc/hosts")]
    with started(with_token=False, volumes=volumes, environment=variables) as computer:
        computer.wait_until_healthy()
        yield computer


def ask(desktop: Computer, host: str, path: str = "/health") -> int:
    return desktop.request("GET", path, headers={"Host": host}).status


def test_probes_are_answered(documents: list[Document], desktop: Computer) -> None:
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked: Any = container(documents)[name]["httpGet"]
        (header,) = asked["httpHeaders"]
        assert (
            desktop.request(
                "GET", asked["path"], headers={"Authorization": None, **{header["name"]: header["value"]}}
            ).status
            == 200
        )


def test_it_answers_to_its_names_and_to_no_other(documents: list[Document], desktop: Computer) -> None:
    names = environment(documents)["DESKHAND_HOSTS"].split(",")
    assert len(names) == 6
    for name in names:
        assert ask(desktop, f"{name}:{PORT}", "/info") == 200, name
    for name in ("desks-deskhand-1.desks-deskhand", "desks-deskhand", "example.org"):
        assert ask(desktop, f"{name}:{PORT}", "/info") == 403, name


def test_the_desktop_is_as_the_values_say(desktop: Computer) -> None:
    told = desktop.request("GET", "/info").json
    assert told["size"] == [1024, 768]


def test_the_chart_s_own_test_passes(documents: list[Document], desktop: Computer) -> None:
    (asking,) = one(documents, "Pod")["spec"]["containers"]
    said = desktop.run(*asking["command"], *asking["args"], user=str(asking["securityContext"]["runAsUser"]))
    assert said.startswith('desks-deskhand-0.desks-deskhand {"ok": true')


def test_the_client_of_the_how_to_leases_it(documents: list[Document], desktop: Computer) -> None:
    (client,) = one(read("client.yaml"), "Job")["spec"]["template"]["spec"]["containers"]
    urls, _token = client["env"]
    variables = [f"DESKHAND_URLS={urls['value']}", f"DESKHAND_TOKEN={desktop.token}"]
    user = str(client["securityContext"]["runAsUser"])
    # The second of its two desktops is not there.
    said = desktop.run("env", *variables, *client["command"], *client["args"], user=user)
    url, ok, size = said.split()
    assert (url, ok) == (f"http://desks-deskhand-0.desks-deskhand:{PORT}", "True")
    assert int(size) > 1000


@pytest.mark.parametrize(
    ("session", "why"),
    [("kde", "DESKHAND_SESSION is 'kde': choose one of"), ("openbox", "openbox is not in this image")],
    ids=["there is none of that name", "it is not installed"],
)
def test_a_session_that_can_not_be_had_ends_it_with_the_reason(session: str, why: str) -> None:
    with started(environment={"DESKHAND_SESSION": session}) as computer:
        assert computer.wait_for_end() == 1
        assert why in computer.log().strip().splitlines()[-1]
