"""https: the same counts and clock over TLS, and no measurement of a server that can't prove who it is."""

from __future__ import annotations

import datetime
import ipaddress
import socket
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from contract.client_runs import MARK, cell
from eagle_bench.adapters.vllm_client import Progress, probe
from truth_server import oracle
from truth_server.process import TruthServer


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "truth")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return path


@pytest.mark.parametrize(
    "modes", [(), ("close",), ("split", "vertex", "usage-with-content"), ("cut:3", "503:4")], ids="+".join
)
def test_counts_are_exact_over_tls(modes: tuple[str, ...], certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with TruthServer(*modes, only=MARK, tokens=20, first_ms=5, token_ms=1, certificate=str(certificate)) as server:
        found = cell(server)
        journal = server.journal(MARK)
    assert found.counts.model_dump() == oracle.counts(journal)
    entries = {entry["content"]: entry for entry in journal}
    for record in found.requests:
        if record.error is None:
            entry = entries[f"{MARK} {record.prompt_id[1:]}] why?"]
            assert record.output_tokens == entry["tokens"] == 20
            assert record.ttft_ms is not None
            assert record.ttft_ms >= oracle.ttft_ms(entry)


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with TruthServer(tokens=8, first_ms=1, token_ms=1, certificate=str(certificate)) as server:
        found = cell(server)
        journal = server.journal()
    assert journal == []
    assert found.metrics is None
    assert found.failure is not None
    assert found.failure.kind == "connection"
    assert "certificate" in found.failure.message.lower()
    assert "SSL_CERT_FILE" in found.failure.message


def test_a_silent_port_is_waited_for_once_and_tls_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_CONNECT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = cell(TruthServer(), base_url=f"https://127.0.0.1:{silent.getsockname()[1]}/v1")
    assert found.counts.requested == 0
    assert found.failure is not None
    assert found.failure.kind == "connection"
    assert "no TLS connection within 0.3 s" in found.failure.message
    assert "http:// is meant" in found.failure.message
    assert any(warning.startswith("stopped_early") for warning in found.warnings)


def test_https_to_a_plain_port_is_named() -> None:
    with TruthServer(tokens=2, first_ms=1, token_ms=1) as server:
        found = cell(server, count=4, base_url=server.url.replace("http://", "https://"))
    assert found.failure is not None
    assert "Does this port speak TLS?" in found.failure.message


def test_http_to_a_port_with_tls_is_named(certificate: Path) -> None:
    heard: list[Progress] = []
    with TruthServer(tokens=2, first_ms=1, token_ms=1, certificate=str(certificate)) as server:
        found = cell(server, count=4, base_url=server.url.replace("https://", "http://"), progress=heard)
    assert found.failure is not None
    said = [found.failure.message, *(progress.note or "" for progress in heard)]
    assert any("https://" in text and "is meant" in text for text in said)
