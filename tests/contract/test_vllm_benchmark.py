"""What we rely on in the pinned vLLM: its version, the fields of its result, and that its medians are ours."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import re
import subprocess
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import prometheus_client
import pytest

from eagle_bench.adapters.vllm_client import engine, lean_import
from eagle_bench.errors import InputError
from eagle_bench.metrics import cell_metrics
from eagle_bench.results import Counts, RequestRecord

ROOT = Path(__file__).parents[2]


def test_the_version_that_is_checked_is_the_one_that_is_installed_and_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"vllm=={engine.VLLM_VERSION}" in project["optional-dependencies"]["client"]
    assert engine.check_version().startswith(engine.VLLM_VERSION)


@pytest.mark.parametrize("version", ["0.32.0", "0.34.0+cpu", "1.0"])
def test_another_version_is_refused_by_name(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: version)
    with pytest.raises(InputError, match=re.escape(version)) as refused:
        engine.check_version()
    assert engine.VLLM_VERSION in str(refused.value)


def test_no_vllm_is_an_error_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(InputError, match="eagle-bench\\[client\\]"):
        engine.check_version()


def run(rows: list[tuple[float, float, int] | None], concurrency: int = 2) -> tuple[engine.EngineResult, list[int]]:
    """vLLM's benchmark over requests whose times (TTFT, E2E in seconds; tokens) are given; None fails."""
    from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput

    engine.load()
    flying = [0, 0]

    async def request(request_func_input: object, session: object, pbar: object = None) -> object:
        flying[0] += 1
        flying[1] = max(flying)
        await asyncio.sleep(0)
        flying[0] -= 1
        row = rows[int(request_func_input.request_id)]  # type: ignore[attr-defined]
        if row is None:
            return RequestFuncOutput(error="no", start_time=time.perf_counter())
        ttft, latency, tokens = row
        return RequestFuncOutput(
            success=True, ttft=ttft, latency=latency, output_tokens=tokens, start_time=time.perf_counter()
        )

    samples = [engine.Sample([{"role": "user", "content": str(i)}], 3, 8) for i in range(len(rows))]
    result = asyncio.run(
        engine.run(request, samples, url="http://127.0.0.1:9/v1/chat/completions", concurrency=concurrency)
    )
    return result, flying


ROWS = [(0.05 + 0.001 * i, 0.4 + 0.013 * i, 20 + 3 * i) for i in range(21)]


def test_vllms_medians_are_ours_for_the_same_records(capsys: pytest.CaptureFixture[str]) -> None:
    result, _ = run([*ROWS, None, None])
    records = [
        RequestRecord(
            prompt_id=str(i), round=0, start_s=float(i), ttft_ms=ttft * 1000, e2e_ms=e2e * 1000, output_tokens=tokens
        )
        for i, (ttft, e2e, tokens) in enumerate(ROWS)
    ]
    ours = cell_metrics(records, [])
    assert ours is not None
    assert ours.tpot_ms is not None
    assert result.median_ttft_ms == pytest.approx(ours.ttft_ms.p50)
    assert result.median_tpot_ms == pytest.approx(ours.tpot_ms.p50)
    assert result.median_e2el_ms == pytest.approx(ours.e2e_ms.p50)
    assert (result.completed, result.failed) == (21, 2)
    assert result.agrees(Counts(completed=21), ours)
    assert not result.agrees(Counts(completed=20), ours)
    assert not result.agrees(Counts(completed=21), ours.model_copy(update={"ttft_ms": ours.e2e_ms}))
    assert capsys.readouterr().out == ""  # standard output is the caller's


def test_the_fields_that_we_use_are_in_the_order_of_the_requests() -> None:
    result, _ = run([*ROWS, None])
    assert result.ttfts[:21] == [row[0] for row in ROWS]
    assert result.latencies[:21] == [row[1] for row in ROWS]
    assert result.output_lens == [row[2] for row in ROWS] + [0]
    assert len(result.start_times) == 22


def test_vllm_makes_a_dead_endpoint_look_infinitely_fast_and_we_do_not_use_that() -> None:
    result, _ = run([None, None])
    assert result.median_tpot_ms == 0.0
    assert cell_metrics([], []) is None


@pytest.mark.parametrize("concurrency", [1, 3])
def test_vllm_holds_the_concurrency(concurrency: int) -> None:
    assert run(list(ROWS), concurrency)[1][1] == concurrency


@pytest.mark.parametrize("page", ["before", "after"])
def test_the_golden_page_is_what_vllm_writes(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.v1.spec_decode.metrics import SpecDecodingProm, SpecDecodingStats

    registry = prometheus_client.CollectorRegistry()

    class Counter(prometheus_client.Counter):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, registry=registry, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(SpecDecodingProm, "_counter_cls", Counter)
    prometheus = SpecDecodingProm(
        SimpleNamespace(num_speculative_tokens=3), ["model_name", "engine"], {0: ["m", "0"], 1: ["m", "1"]}
    )
    steps = [(0, 10, 30, 12, [8, 3, 1])]
    if page == "after":
        steps += [(0, 100, 300, 150, [80, 45, 25]), (1, 100, 300, 90, [60, 20, 10])]
    for index, drafts, drafted, accepted, positions in steps:
        stats = SpecDecodingStats(num_spec_tokens=3)
        stats.num_drafts, stats.num_draft_tokens = drafts, drafted
        stats.num_accepted_tokens, stats.num_accepted_tokens_per_pos = accepted, positions
        prometheus.observe(stats, index)
    golden = (ROOT / "tests/golden/metrics" / f"vllm-0.33.0-{page}.txt").read_text()
    assert _samples(prometheus_client.generate_latest(registry).decode()) == _samples(golden)


def _samples(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#") and "_created" not in line]


def test_what_is_left_out_of_vllm_is_stood_in_for_as_it_is() -> None:
    vllm = Path(str(metadata.distribution("vllm").locate_file("vllm")))
    source = ast.parse((vllm / "benchmarks" / "datasets" / "datasets.py").read_text())
    theirs = next(node for node in source.body if isinstance(node, ast.ClassDef) and node.name == "SampleRequest")
    fields = [
        (node.target.id, ast.unparse(node.value) if node.value else None)
        for node in theirs.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    ours = [
        (field.name, None if field.default is dataclasses.MISSING else repr(field.default))
        for field in dataclasses.fields(lean_import.SampleRequest)
    ]
    assert ours == fields

    source = ast.parse((vllm / "benchmarks" / "serve.py").read_text())
    imported = {
        node.module: {alias.name for alias in node.names}
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom)
    }
    assert imported[lean_import.DATASETS] == {"SampleRequest", "add_dataset_parser", "get_samples"}
    assert imported[lean_import.TOKENIZERS] == {"TokenizerLike", "get_tokenizer"}


def test_the_client_starts_without_models_and_compilers_and_leaves_vllm_whole() -> None:
    program = (
        "import sys; from eagle_bench.adapters.vllm_client import engine; engine.load();"
        "print([name for name in ('transformers', 'torch', 'vllm.config', 'vllm.lora.utils') "
        "if name in sys.modules]);"
        "from vllm.benchmarks.datasets import SampleRequest; from vllm.tokenizers import get_tokenizer;"
        "print(SampleRequest.__module__, get_tokenizer.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lean, whole = done.stdout.strip().splitlines()[-2:]
    assert lean == "[]"
    assert whole == "vllm.benchmarks.datasets.datasets vllm.tokenizers.registry"
