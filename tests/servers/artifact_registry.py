"""Artifact Registry on loopback: images by Docker's protocol, templates by kfp's, tags by its own API.

Refusals have the codes and words of the public service: NAME_UNKNOWN for a repository that is not there,
MANIFEST_UNKNOWN for an image, DENIED for an account without a role.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path

import yaml

from servers.google_hosts import Handler, serving, write_certificate

UPLOADS = re.compile(r"/v2/(?P<name>.+)/blobs/uploads/(?P<id>[\w-]*)(\?.*?digest=(?P<digest>[\w:%]+))?")
BLOB = re.compile(r"/v2/(?P<name>.+)/blobs/(?P<digest>sha256:\w+)")
MANIFEST = re.compile(r"/v2/(?P<name>.+)/manifests/(?P<reference>.+)")
TAG = re.compile(
    r"/v1/projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/repositories/(?P<repository>[^/]+)"
    r"/packages/(?P<package>[^/]+)/tags/(?P<tag>.+)"
)
PERMISSIONS = re.compile(
    r"/v1/projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/repositories/(?P<repository>[^/]+):testIamPermissions"
)
MANIFEST_KIND = "application/vnd.docker.distribution.manifest.v2+json"


@dataclass
class ArtifactRegistry:
    """What stands in it. Repositories are "LOCATION/PROJECT/NAME"; plain http on loopback is taken for any location."""

    folder: Path
    repositories: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    manifests: dict[tuple[str, str], tuple[str, bytes]] = field(default_factory=dict)  # (name, reference) → kind, bytes
    templates: dict[tuple[str, str], bytes] = field(default_factory=dict)  # (repository, package@version) → YAML
    tags: dict[tuple[str, str, str], str] = field(default_factory=dict)  # (repository, package, tag) → version
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # method, host, path
    tokens: list[str] = field(default_factory=list)
    port: int = 0
    certificate: Path = Path()

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs in its environment to take this for Google's."""
        return {
            "HTTPS_PROXY": f"http://127.0.0.1:{self.port}",
            "NO_PROXY": "127.0.0.1",
            "REQUESTS_CA_BUNDLE": str(self.certificate),
            "SSL_CERT_FILE": str(self.certificate),
        }

    def push(self, name: str, reference: str) -> str:
        """Put an empty image there, and give its digest."""
        return self.keep_manifest(name, reference, MANIFEST_KIND, json.dumps({"schemaVersion": 2}).encode())

    def keep_manifest(self, name: str, reference: str, kind: str, content: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.manifests[name, reference] = self.manifests[name, digest] = kind, content
        return digest


@contextmanager
def serving_artifact_registry(folder: Path, *repositories: str) -> Iterator[ArtifactRegistry]:
    """A registry with these repositories in it."""
    folder.mkdir(parents=True, exist_ok=True)
    registry = ArtifactRegistry(folder, set(repositories), certificate=write_certificate(folder / "certificate.pem"))
    with serving(type("Answers", (_Answers,), {"registry": registry}), registry.certificate) as port:
        registry.port = port
        yield registry


class _Answers(Handler):
    registry: ArtifactRegistry

    def handle_one(self) -> None:
        self.registry.requests.append((self.command, self.host, self.path))
        if self.host.endswith(".dev") or self.host.endswith(".googleapis.com"):
            scheme, _, token = self.headers.get("Authorization", "").partition(" ")
            if scheme != "Bearer" or not token:
                return self.error(401, "UNAUTHORIZED", "Unauthenticated request")
            self.registry.tokens.append(token)
        if self.host.endswith("-kfp.pkg.dev"):
            return self.template(self.host.removesuffix("-kfp.pkg.dev"))
        if self.host == "artifactregistry.googleapis.com":
            asked = PERMISSIONS.fullmatch(self.path)
            return self.permissions(asked) if asked else self.tag()
        return self.docker()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = handle_one

    def error(self, status: int, code: str, message: str) -> None:
        for _ in self.body():
            pass
        body = {"errors": [{"code": code, "message": message}]}
        if not self.host.endswith("-docker.pkg.dev"):
            body = {"error": {"code": status, "message": message, "status": code}}
        self.answer(status, json.dumps(body).encode())

    def admitted(self, location: str, project: str, repository: str, permission: str) -> bool:
        """Whether the repository is there and may be used; answers otherwise."""
        key = f"{location}/{project}/{repository}"
        resource = f"projects/{project}/locations/{location}/repositories/{repository}"
        if key in self.registry.denied:
            words = f'Permission "artifactregistry.repositories.{permission}" denied on resource "{resource}" (or it may not exist)'
            self.error(403, "DENIED", words)
        elif key not in self.registry.repositories:
            self.error(404, "NAME_UNKNOWN", f'Repository "{repository}" not found')
        else:
            return True
        return False

    def template(self, location: str) -> None:
        project, repository, *rest = self.path.strip("/").split("/")
        upload = self.command == "POST"
        if not self.admitted(location, project, repository, "uploadArtifacts" if upload else "downloadArtifacts"):
            return
        key = f"{location}/{project}/{repository}"
        if upload:
            head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            parts = BytesParser(policy=HTTP).parsebytes(head + b"".join(self.body()))
            fields = {
                part.get_param("name", header="content-disposition"): part.get_content() for part in parts.iter_parts()
            }
            text = fields["content"]
            content = text if isinstance(text, bytes) else text.encode()
            version = f"sha256:{hashlib.sha256(content).hexdigest()}"
            package = yaml.safe_load(content)["pipelineInfo"]["name"]
            self.registry.templates[key, f"{package}/{version}"] = content
            for tag in filter(None, str(fields.get("tags", "")).strip().split(",")):
                self.registry.tags[key, package, tag] = version
            return self.answer(200, f"{package}/{version}".encode(), "text/plain")
        package, version = rest
        version = self.registry.tags.get((key, package, version), version)
        found = self.registry.templates.get((key, f"{package}/{version}"))
        if found is None:
            return self.error(404, "NOT_FOUND", f'Requested entity "{package}/{version}" was not found')
        return self.answer(200, found, "application/yaml")

    def tag(self) -> None:
        wanted = TAG.fullmatch(self.path)
        assert wanted, self.path
        place = wanted["location"], wanted["project"], wanted["repository"]
        if not self.admitted(*place, "downloadArtifacts"):
            return
        version = self.registry.tags.get(("/".join(place), wanted["package"], wanted["tag"]))
        if version is None:
            return self.error(404, "NOT_FOUND", f'Tag "{wanted["tag"]}" was not found')
        package = self.path.removeprefix("/v1/").partition("/tags/")[0]
        body = {"name": f"{package}/tags/{wanted['tag']}", "version": f"{package}/versions/{version}"}
        return self.answer(200, json.dumps(body).encode())

    def permissions(self, asked: re.Match[str]) -> None:
        """Those of the asked ones that the account has; all, unless it is denied the repository."""
        key = f"{asked['location']}/{asked['project']}/{asked['repository']}"
        if key not in self.registry.repositories:
            return self.error(404, "NOT_FOUND", f'Repository "{asked["repository"]}" not found')
        held = json.loads(b"".join(self.body()))
        return self.answer(200, b"{}" if key in self.registry.denied else json.dumps(held).encode())

    def docker(self) -> None:
        """Docker's protocol, as far as push and pull need it."""
        if self.path == "/v2/":
            return self.answer(200, b"{}")
        name = (UPLOADS.match(self.path) or BLOB.fullmatch(self.path) or MANIFEST.fullmatch(self.path))["name"]
        if self.host.endswith("-docker.pkg.dev"):
            project, repository = name.split("/")[:2]
            if not self.admitted(self.host.removesuffix("-docker.pkg.dev"), project, repository, "downloadArtifacts"):
                return
        if upload := UPLOADS.fullmatch(self.path):
            return self.upload(name, upload["id"], upload["digest"])
        if blob := BLOB.fullmatch(self.path):
            path = self.registry.folder / blob["digest"]
            if not path.is_file():
                return self.error(404, "BLOB_UNKNOWN", "blob unknown to registry")
            if self.command == "HEAD":
                return self.answer(200, Content_Length=str(path.stat().st_size), Docker_Content_Digest=blob["digest"])
            return self.answer(200, path.read_bytes(), "application/octet-stream")
        reference = MANIFEST.fullmatch(self.path)["reference"]
        if self.command == "PUT":
            content = b"".join(self.body())
            digest = self.registry.keep_manifest(name, reference, self.headers["Content-Type"], content)
            return self.answer(201, Docker_Content_Digest=digest, Location=f"/v2/{name}/manifests/{digest}")
        if (name, reference) not in self.registry.manifests:
            return self.error(404, "MANIFEST_UNKNOWN", f'Failed to fetch "{reference}"')
        kind, content = self.registry.manifests[name, reference]
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        length = str(len(content))
        return self.answer(200, content, kind, Content_Length=length, Docker_Content_Digest=digest)

    def upload(self, name: str, upload_id: str, digest: str | None) -> None:
        upload_id = upload_id or uuid.uuid4().hex
        part = self.registry.folder / f"{upload_id}.part"
        with part.open("ab") as file:
            for piece in self.body():
                file.write(piece)
            size = file.tell()
        if self.command == "PUT":
            assert digest
            digest = digest.replace("%3A", ":")
            with part.open("rb") as file:
                assert f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == digest
            part.rename(self.registry.folder / digest)
            return self.answer(201, Docker_Content_Digest=digest, Location=f"/v2/{name}/blobs/{digest}")
        location = f"/v2/{name}/blobs/uploads/{upload_id}"
        return self.answer(202, Location=location, Range=f"0-{max(0, size - 1)}", Docker_Upload_UUID=upload_id)
