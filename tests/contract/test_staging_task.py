"""The staging task as the component calls it, from every source, and the check before a run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from eagle_bench import config, config_file
from eagle_bench.adapters import sources
from eagle_bench.adapters.tokenizer import load
from eagle_bench.errors import InputError, ServiceError
from eagle_bench.tasks.stage_data import preflight, stage_data
from eagle_bench.workload.prompts import TOKENIZER, read_staged
from servers import sharegpt
from servers.files import File, FileHandler, Site, serving
from servers.hub import Hub, Repo
from servers.storage import serving_storage
from servers.tokenizers import SMOL, write_tokenizer


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sharegpt") / "chats.json"
    sharegpt.write(path, 600, mean_turns=2.0)
    return path


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    return write_tokenizer(tmp_path / "smol", SMOL)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def workload(dataset: str, **fields: object) -> dict[str, Any]:
    return {"dataset": dataset, "prompts_per_level": 50.0, "seed": 3.0, **fields}


def test_every_source_stages_the_same_prompts(
    chats: Path, tokenizer: Path, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = chats.read_bytes()
    sharegpt_id = "anon8231489123/ShareGPT_Vicuna_unfiltered"
    name = "ShareGPT_V3_unfiltered_cleaned_split.json"
    hub.repos[f"datasets/{sharegpt_id}"] = Repo({name: content, "other.json": b"[]"}, large=frozenset({name}))
    hub.repos["models/smol/lm"] = Repo({p.name: p.read_bytes() for p in tokenizer.iterdir()})
    with serving(FileHandler, Site(files={"/chats.json": File(content)})) as site, serving_storage() as emulator:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
        from google.cloud.storage import Client

        bucket = Client().create_bucket("b")
        bucket.blob("chats.json").upload_from_filename(str(chats))
        for path in tokenizer.iterdir():
            bucket.blob(f"smol/{path.name}").upload_from_filename(str(path))
        asked = [
            (str(chats), str(tokenizer)),
            ("gs://b/chats.json", "gs://b/smol"),
            (f"{site.url}/chats.json", "smol/lm"),
            ("sharegpt", "smol/lm"),
            (f"hf://{sharegpt_id}/{name}", str(tokenizer)),
        ]
        staged = [
            stage_data(workload(dataset), tok, None, [1.0, 2.0], 3.0, tmp_path / f"{number}")  # type: ignore[list-item, arg-type]
            for number, (dataset, tok) in enumerate(asked)
        ]
    assert len({manifest.slices for manifest in staged}) == 1
    assert {manifest.source for manifest in staged} == {dataset for dataset, _ in asked}
    assert {manifest.source_sha256 for manifest in staged} == {hashlib.sha256(content).hexdigest()}
    counter = load(tmp_path / "1" / TOKENIZER)
    for level in (1, 2):
        warmup, measured = read_staged(tmp_path / "1", level)
        for prompt in [*warmup, *measured]:
            assert prompt.prompt_tokens == counter.count(prompt.messages)
            assert 4 <= (prompt.prompt_tokens or 0) <= 1024


def test_a_synthetic_shape_with_a_real_tokenizer_is_exact(tokenizer: Path, tmp_path: Path) -> None:
    manifest = stage_data(workload("synthetic:200x40"), str(tokenizer), None, [2], 2, tmp_path / "out")
    assert manifest.label is not None
    assert "random words, 200 input tokens" in manifest.label
    counter = load(tokenizer)
    warmup, measured = read_staged(tmp_path / "out", 2)
    assert {counter.count(prompt.messages) for prompt in [*warmup, *measured]} == {200}
    assert {prompt.max_tokens for prompt in measured} == {40}


def test_a_file_like_sharegpt_is_staged_in_memory_that_does_not_grow_with_it(
    tmp_path: Path,
) -> None:
    import tracemalloc

    peaks = {}
    for count in (300, 2000):
        path = tmp_path / f"{count}.json"
        sharegpt.write(path, count, mean_turns=3.0)
        tracemalloc.start()
        manifest = stage_data(workload(str(path)), None, None, [1], 1, tmp_path / f"out{count}")
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert manifest.read == count
        assert {drop.reason.split()[0] for drop in manifest.dropped} == {"empty", "begins", "the"}
    # Seven times the file: what grows is some 300 bytes a conversation, not the 6,000 that it has.
    assert peaks[2000] - peaks[300] < 1700 * 1000


def settings(**fields: Any) -> config.Config:
    data = {
        "project": "p",
        "location": "us-central1",
        "variants": [{"id": name, "url": f"http://127.0.0.1:9/{name}"} for name in ("baseline", "eagle")],
        "concurrency": [1, 2],
        **fields,
    }
    return config_file.validate(data)


def test_a_conversation_that_the_chat_template_refuses_is_left_out_and_counted(tmp_path: Path) -> None:
    """Its endpoint would refuse it; the others are measured."""
    refusing = (
        "{% if 'bad' in messages[0].content %}{{ raise_exception('no bad ones: ' ~ messages[0].content) }}{% endif %}"
    )
    write_tokenizer(tmp_path / "picky", refusing + SMOL)
    rows = [{"prompt": f"{number} {'bad' if number % 3 == 0 else 'good'}?"} for number in range(90)]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    load = {"dataset": str(tmp_path / "mine.jsonl"), "prompts_per_level": 50}

    def staged() -> Any:
        return stage_data(load, str(tmp_path / "picky"), None, [1], 1, tmp_path / "out")

    manifest = staged()
    (drop,) = manifest.dropped
    assert (drop.reason, drop.count) == ("refused by the chat template: no bad ones: 0 bad?", 30)
    assert manifest.kept == 60
    load["prompts_per_level"] = 80
    with pytest.raises(InputError, match="30 refused by the chat template"):
        staged()


def test_levels_that_the_reference_gives_the_builtin_set_are_ones_that_it_has_prompts_for() -> None:
    words = config.Workload.model_fields["dataset"].description or ""
    fields = [yaml.safe_load(text) for text in re.findall(r"`(\w+: [^`]+)`", words)]
    assert [list(field) for field in fields] == [["concurrency"], ["prompts_per_level"]]
    preflight(settings(**fields[0], workload=fields[1]))
    with pytest.raises(InputError, match="700 of the 700"):
        preflight(settings(concurrency=list(config.Config.model_fields["concurrency"].default)))


def test_preflight_finds_too_few_prompts_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"builtin: 700 of the 700 conversations can be used, and 2\u202f006 are needed"
    ):
        preflight(settings())
    preflight(settings(workload={"prompts_per_level": 300}))
    mine = tmp_path / "mine.jsonl"
    mine.write_text("\n".join(json.dumps({"prompt": f"{n}?"}) for n in range(60)))
    with pytest.raises(InputError, match=r"60 of the 60 conversations.*106 are needed"):
        preflight(settings(workload={"dataset": str(mine), "prompts_per_level": 50}))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"workload": {"dataset": "sharegtp"}}, "no file 'sharegtp'.*`sharegpt`"),
        ({"workload": {"dataset": "synthetic:512"}}, "synthetic:512x128"),
        ({"workload": {"dataset": "/nowhere/x.json"}}, "no file '/nowhere/x.json'"),
        ({"workload": {"dataset": "~nobody-here/x.json"}}, "no file '~nobody-here"),
        ({"workload": {"dataset": "x" * 5000}}, "no file 'xxx"),
        ({"workload": {"prompts_per_level": 50}, "tokenizer": "~nobody-here/tok"}, "`tokenizer`.*is neither"),
        ({"workload": {"prompts_per_level": 50}, "tokenizer": "/" + "x" * 5000}, "`tokenizer`.*is neither"),
        (
            {"workload": {"prompts_per_level": 50}, "tokenizer": "/nowhere/tok"},
            "`tokenizer`: '/nowhere/tok' is neither",
        ),
        (
            {"workload": {"prompts_per_level": 50}, "tokenizer": "projects/p/locations/l/endpoints/1"},
            "`tokenizer`:.*owner/name",
        ),
    ],
)
def test_preflight_refuses_what_is_no_source(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        preflight(settings(**fields))


def test_preflight_sees_a_gated_tokenizer_and_fetches_nothing(hub: Hub) -> None:
    hub.repos["models/meta-llama/Scout"] = Repo({"tokenizer.json": b"{}", "tokenizer_config.json": b"{}"}, gated=True)
    few = {"prompts_per_level": 50}
    with pytest.raises(ServiceError, match="meta-llama/Scout is gated") as gated:
        preflight(settings(workload=few, tokenizer="meta-llama/Scout"))
    assert gated.value.kind == "gated-model"
    assert f"{hub.url}/meta-llama/Scout" in str(gated.value)
    hub.repos["models/meta-llama/Scout"].gated = False
    preflight(settings(workload=few, tokenizer="meta-llama/Scout"))
    assert hub.downloads() == []


def test_preflight_sees_a_data_set_that_is_not_there(hub: Hub) -> None:
    with pytest.raises(ServiceError, match="there is no data set me/mine"):
        preflight(settings(workload={"dataset": "hf://me/mine"}))


def test_the_token_comes_from_secret_manager_and_stays_in_memory(
    start: Callable[..., object], hub: Hub, tokenizer: Path, tmp_path: Path
) -> None:
    secret = "projects/p/secrets/hf/versions/latest"
    (tmp_path / "token").write_text("hf_let_in\n")
    start(secrets={secret: tmp_path / "token"})
    hub.known_tokens.add("hf_let_in")
    hub.admitted_tokens.add("hf_let_in")
    hub.repos["models/meta/gated"] = Repo({p.name: p.read_bytes() for p in tokenizer.iterdir()}, gated=True)
    stage_data(workload("builtin"), "meta/gated", secret, [1], 1, tmp_path / "out")
    assert sources.hub_token(None) is None
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"hf_let_in" not in written
    with pytest.raises(ServiceError, match="projects/p/secrets/other/versions/1"):
        stage_data(workload("builtin"), "meta/gated", "projects/p/secrets/other/versions/1", [1], 1, tmp_path / "none")


def test_a_path_of_this_machine_is_no_source_for_a_job_elsewhere(tmp_path: Path, tokenizer: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_text("\n".join(json.dumps({"prompt": f"{n}?"}) for n in range(120)))
    data = {"dataset": str(mine), "prompts_per_level": 50}
    preflight(settings(workload=data))
    with pytest.raises(InputError, match=r"`workload.dataset`: .*mine.jsonl' lies on this machine.*gs://"):
        preflight(settings(workload=data), job_of="Vertex AI")
    with pytest.raises(InputError, match=r"`tokenizer`: .*lies on this machine"):
        preflight(settings(workload={"prompts_per_level": 50}, tokenizer=str(tokenizer)), job_of="Vertex AI")


def test_a_job_of_local_vertex_reads_whole_paths_only(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps({"prompt": f"{n}?"}) for n in range(120)))
    (tmp_path / "words").symlink_to(tokenizer)
    monkeypatch.chdir(tmp_path)
    data = {"prompts_per_level": 50}
    preflight(settings(workload={**data, "dataset": "mine.jsonl"}, tokenizer="words"))
    whole = settings(workload={**data, "dataset": str(tmp_path / "mine.jsonl")}, tokenizer=str(tmp_path / "words"))
    preflight(whole, job_of="Local Vertex")
    with pytest.raises(
        InputError, match=r"`workload.dataset`: 'mine.jsonl' is looked for in another folder"
    ) as refused:
        preflight(settings(workload={**data, "dataset": "mine.jsonl"}), job_of="Local Vertex")
    assert str(refused.value).endswith(f"Give the whole path, '{tmp_path / 'mine.jsonl'}'.")
    with pytest.raises(InputError, match=r"`tokenizer`: 'words' is looked for in another folder"):
        preflight(settings(workload=data, tokenizer="words"), job_of="Local Vertex")


@pytest.mark.parametrize(
    ("load_", "levels", "said"),
    [
        ({"dataset": "builtin", "prompts": 3}, [1], "prompts"),
        ({"dataset": "builtin"}, [0], "greater than or equal to 1"),
        ({"dataset": "builtin"}, [1.5], "whole number"),
    ],
)
def test_values_that_can_not_be_used_are_refused(
    tmp_path: Path, load_: dict[str, Any], levels: list[Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        stage_data(load_, None, None, levels, 1, tmp_path)
