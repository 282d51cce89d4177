"""The list of permissions: docs/permissions.md shows it, and each role really is a predefined one that has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import golden_file
from eagle_bench.permissions import HOLDERS, NEEDS, needed, roles_with, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "permissions.md"
MARK = "<!-- From here on made from the code: `make golden` writes it. -->\n"

# What the predefined roles hold of it, as Google publishes them (IAM roles and permissions index, 2026-08).
ROLES = {
    "roles/aiplatform.user": r"aiplatform\.(endpoints\.(create|delete|deploy|get|list|predict|undeploy|update)"
    r"|models\.(delete|get|list|update|upload)|operations\.list|pipelineJobs\.(cancel|create|delete|get|list)"
    r"|schedules\.(create|delete|get|list|update))",
    "roles/storage.legacyBucketReader": r"storage\.(buckets\.get|objects\.list)",
    "roles/storage.objectViewer": r"storage\.objects\.(get|list)",
    "roles/storage.objectUser": r"storage\.objects\.(create|delete|get|list|update)",
    "roles/iam.serviceAccountUser": r"iam\.serviceAccounts\.(actAs|get|list)",
    "roles/iam.serviceAccountTokenCreator": r"iam\.serviceAccounts\.(get|getAccessToken|signJwt)",
    "roles/secretmanager.secretAccessor": r"secretmanager\.versions\.access",
    "roles/cloudquotas.viewer": r"cloudquotas\.quotas\.get",
    "roles/monitoring.viewer": r"monitoring\.timeSeries\.list",
    "roles/artifactregistry.reader": r"artifactregistry\.repositories\.(downloadArtifacts|get|list)",
    "roles/compute.viewer": r"compute\.reservations\.(get|list)",
}


@pytest.mark.golden
def test_the_page_shows_the_list():
    text = PAGE.read_text(encoding="utf-8")
    assert MARK in text
    golden_file.check(PAGE.name, text.partition(MARK)[0] + MARK + "\n" + table(), folder=PAGE.parent)


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: f"{need.holder}-{need.role}")
def test_each_role_brings_its_permissions(need):
    for permission in need.permissions:
        assert re.fullmatch(ROLES[need.role], permission), f"{need.role} has no {permission}"


# Where the job's account is made and given its roles, and how its name is written there.
SET_UPS = {
    "docs/vertex-ai.md": r"--member=serviceAccount:\$RUN --role=(\S+)",
    "docs/cloud-build.md": r"--member=\$\(at eagle-bench-run\) --role=(\S+)",
    "examples/terraform/main.tf": r'role\s*= "([^"]+)"\s+member\s*= google_service_account\.run\.member',
}


@pytest.mark.parametrize("name", SET_UPS)
def test_what_sets_the_job_up_grants_what_the_list_says_and_no_more(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    granted = set(re.findall(SET_UPS[name], text))
    for block in re.findall(r"for_each = toset\(\[([^\]]*)\]\)[^}]*service_account\.run\.member", text):
        granted |= set(re.findall(r'"([^"]+)"', block))
    assert granted == {need.role for need in NEEDS if need.holder == "job"}


def test_no_role_is_of_owners_editors_or_admins():
    assert not [need.role for need in NEEDS if re.search(r"owner|editor|admin", need.role, re.IGNORECASE)]


def test_asking_the_list():
    assert needed("caller", "service account") == ("iam.serviceAccounts.actAs",)
    assert "cloudquotas.quotas.get" in needed("caller", "project", optional=True)
    assert not set(needed("caller", "project")) & set(needed("caller", "project", optional=True))
    assert roles_with(["storage.objects.create"], "job") == ("roles/storage.objectUser",)
    assert roles_with(["aiplatform.endpoints.deploy", "secretmanager.versions.access"], "job") == (
        "roles/aiplatform.user",
        "roles/secretmanager.secretAccessor",
    )
    assert {need.holder for need in NEEDS} == set(HOLDERS)
