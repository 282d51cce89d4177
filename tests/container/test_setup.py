"""The set-up by hand and by Terraform are the same, and both are what cloudbuild.yaml names."""

from __future__ import annotations

import re
from pathlib import Path

import hcl2

from container import cloud_build

REPO = Path(__file__).parents[2]
DOC = (REPO / "docs" / "cloud-build.md").read_text()
TERRAFORM = REPO / "examples" / "terraform"


def terraform() -> dict[str, dict[str, dict]]:
    """Resources by type and name."""
    with (TERRAFORM / "main.tf").open() as file:
        data = hcl2.load(file)
    found: dict[str, dict[str, dict]] = {}
    for resource in data["resource"]:
        for kind, named in resource.items():
            for name, body in named.items():
                found.setdefault(kind.strip('"'), {})[name.strip('"')] = body
    return found


def variables() -> dict[str, dict]:
    with (TERRAFORM / "variables.tf").open() as file:
        data = hcl2.load(file)
    return {name.strip('"'): body for variable in data["variable"] for name, body in variable.items()}


def plain(value: object) -> str:
    return str(value).strip('"')


def granted_by_terraform() -> set[tuple[str, str]]:
    grants = set()
    for kind, named in terraform().items():
        if not kind.endswith("_iam_member"):
            continue
        for body in named.values():
            account = re.search(r"google_service_account\.(\w+)\.member", str(body["member"]))[1]
            roles = re.findall(r"roles/[\w.]+", str(body.get("for_each", "")) + str(body["role"]))
            grants |= {(f"eagle-bench-{account.replace('_', '-')}", role) for role in roles}
    return grants


def test_gcloud_terraform_and_the_table_grant_the_same():
    by_hand = set(re.findall(r"--member=\$\(at ([\w-]+)\) --role=(roles/[\w.]+)", DOC))
    rows = re.findall(r"^\| (eagle-bench-[\w-]+) \| (roles/[^|]+) \|", DOC, re.MULTILINE)
    table = {(account, role.strip()) for account, roles in rows for role in roles.split(",")}
    assert by_hand == table == granted_by_terraform()
    assert not any(role in {"roles/owner", "roles/editor"} or role.endswith(".admin") for _, role in table)


def test_apis_and_repositories_are_the_same():
    (line,) = re.findall(r"^gcloud services enable (.*)$", DOC, re.MULTILINE)
    enabled = set(re.findall(r'"([a-z]+\.googleapis\.com)"', (TERRAFORM / "main.tf").read_text()))
    assert set(line.split()) == enabled
    by_hand = dict(re.findall(r"repositories create ([\w-]+) --repository-format=(\w+)", DOC))
    made = terraform()["google_artifact_registry_repository"].values()
    assert by_hand == {plain(body["repository_id"]): plain(body["format"]).lower() for body in made}


def test_the_build_file_names_what_is_set_up():
    build = cloud_build.load(REPO / "cloudbuild.yaml")
    values = cloud_build.Run(build, Path(), {"PROJECT_ID": "p"}).values
    created = set(re.findall(r"(?:repositories|service-accounts) create ([\w-]+)", DOC))
    for name in ("_REPOSITORY", "_TEMPLATES"):
        assert values[name].rpartition("/")[2] in created
    assert values["_BUILD_ACCOUNT"].partition("@")[0] in created
    table = set(re.findall(r"^\| `(_[A-Z_]+)` \|", DOC, re.MULTILINE))
    assert table == set(build.substitutions)


def test_triggers_give_only_substitutions_that_are_there():
    build = cloud_build.load(REPO / "cloudbuild.yaml")
    given = {
        name for text in re.findall(r"--substitutions=(\S+)", DOC) for name in re.findall(r"(?:^|,)(_[A-Z_]+)=", text)
    }
    assert given <= set(build.substitutions)
    for trigger in terraform()["google_cloudbuild_trigger"].values():
        assert {plain(name) for name in trigger["substitutions"]} - {"__comments__"} <= set(build.substitutions)


def test_terraform_needs_a_project_alone_and_makes_no_trigger_unasked():
    needed = {name for name, body in variables().items() if "default" not in body}
    assert needed == {"project"}
    assert plain(variables()["github_owner"]["default"]) == ""
    for trigger in terraform()["google_cloudbuild_trigger"].values():
        assert re.search(r'var\.github_owner == "" \? 0 : 1', str(trigger["count"]))


def test_what_is_imported_is_what_terraform_makes():
    imports = re.findall(r"^terraform \S+ import (\w+)\.(\w+) (\S+)$", DOC, re.MULTILINE)
    assert imports
    for kind, name, made in imports:
        body = terraform()[kind][name]
        known = {plain(body.get(field)) for field in ("repository_id", "account_id", "secret_id", "name")}
        last = made.rpartition("/")[2].partition("@")[0].replace("$PROJECT-", "${var.project}-")
        assert last in known, made
