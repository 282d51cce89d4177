"""Data sets and tokenizers through the real `huggingface_hub`, against a hub of our own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from eagle_bench.adapters import hugging_face as hub_adapter
from eagle_bench.cli import main
from eagle_bench.errors import InputError, ServiceError
from servers.files import File, FileHandler, Site, serving
from servers.hub import Hub, Repo
from servers.tokenizers import SMOL, write_tokenizer

BIG = bytes(range(256)) * 20_000  # 5 MB
MODEL_FILES = {
    "tokenizer.json": b'{"version": "1.0"}',
    "tokenizer_config.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
    "vocab.txt": b"a\nb\n",
    "config.json": b"{}",
    "model.safetensors": b"\0" * 1000,
    "pytorch_model.bin": b"\0" * 1000,
    "model.safetensors.index.json": b"{}",
    "README.md": b"# model",
    "onnx/tokenizer.json": b"{}",
}


@pytest.fixture
def hub(hub: Hub) -> Hub:
    hub.repos["models/meta/plain"] = Repo(MODEL_FILES, large=frozenset({"tokenizer.json", "model.safetensors"}))
    hub.repos["models/meta/gated"] = Repo(MODEL_FILES, gated=True)
    hub.repos["datasets/anon/chats"] = Repo({"chats.json": BIG, "README.md": b"#"}, large=frozenset({"chats.json"}))
    hub.known_tokens |= {"hf_let_in", "hf_stranger"}
    hub.admitted_tokens |= {"hf_let_in"}
    return hub


def refused(kind: str, ask: object, *args: object) -> str:
    with pytest.raises(ServiceError) as error:
        ask(*args)  # type: ignore[operator]
    assert error.value.kind == kind, error.value
    return str(error.value)


def test_a_tokenizer_comes_without_weights(hub: Hub, tmp_path: Path) -> None:
    hub_adapter.download_tokenizer("meta/plain", None, tmp_path / "tokenizer")
    wanted = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "vocab.txt", "config.json"}
    assert {path.name for path in (tmp_path / "tokenizer").iterdir()} == wanted
    for name in wanted:
        assert (tmp_path / "tokenizer" / name).read_bytes() == MODEL_FILES[name]
    assert set(hub.downloads()) <= wanted


def test_a_check_fetches_nothing(hub: Hub) -> None:
    hub_adapter.check_tokenizer("meta/plain", None)
    hub_adapter.check_dataset("hf://anon/chats", None)
    assert hub.downloads() == []
    assert hub.cdn.seen == []


def test_a_gated_tokenizer_with_a_token_that_is_let_in(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_adapter.check_tokenizer("meta/gated", "hf_let_in")
    hub_adapter.download_tokenizer("meta/gated", "hf_let_in", tmp_path / "one")
    monkeypatch.setenv("HF_TOKEN", "hf_let_in")
    hub_adapter.download_tokenizer("meta/gated", None, tmp_path / "two")
    assert (tmp_path / "two" / "tokenizer.json").read_bytes() == MODEL_FILES["tokenizer.json"]


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (None, ["no token was given", "hf_token_secret", "HF_TOKEN"]),
        ("hf_stranger", ["the token's account has no access"]),
    ],
)
def test_a_gated_tokenizer_without_access_names_repository_and_what_to_accept(
    hub: Hub, tmp_path: Path, token: str | None, said: list[str]
) -> None:
    for ask, args in (
        (hub_adapter.check_tokenizer, ("meta/gated", token)),
        (hub_adapter.download_tokenizer, ("meta/gated", token, tmp_path)),
    ):
        message = refused("gated-model", ask, *args)
        for words in ["meta/gated is gated", f"Accept its conditions at {hub.url}/meta/gated", "gs:// folder", *said]:
            assert words in message
        assert "hf_stranger" not in message


def test_what_is_not_there_is_told_apart_from_what_is_gated(hub: Hub) -> None:
    message = refused("not-found", hub_adapter.check_tokenizer, "meta/nothing", None)
    assert "there is no model meta/nothing, or it is private" in message
    message = refused("not-found", hub_adapter.check_dataset, "hf://anon/nothing", "hf_let_in")
    assert "there is no data set anon/nothing" in message
    message = refused("not-found", hub_adapter.check_dataset, "hf://anon/chats/other.json", None)
    assert "no file 'other.json'" in message
    assert "chats.json" in message
    message = refused("not-found", hub_adapter.check_dataset, "hf://anon/chats@v9/chats.json", None)
    assert "no such revision" in message


def test_a_token_that_is_no_token(hub: Hub) -> None:
    message = refused("authentication", hub_adapter.check_tokenizer, "meta/plain", "hf_made_up")
    assert "refuses the token" in message
    assert "hf_made_up" not in message


@pytest.mark.parametrize("page", [b"<html>sign in</html>", b"[]", b"{}", b'{"id": "meta/plain", "siblings": [{}]}'])
def test_a_page_in_place_of_the_hub_is_called_one(page: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Page(FileHandler):
        def do_GET(self) -> None:
            self.send_file(File(page))

    with serving(Page, Site()) as site:
        monkeypatch.setenv("HF_ENDPOINT", site.url)
        message = refused("unavailable", hub_adapter.check_tokenizer, "meta/plain", None)
    assert "is no hub" in message
    assert "HF_ENDPOINT" in message


def test_a_refusal_without_a_token_blames_none(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuses(FileHandler):
        def do_GET(self) -> None:
            self.refuse(403, {"X-Error-Message": "Access to this resource is disabled."})

    with serving(Refuses, Site()) as site:
        monkeypatch.setenv("HF_ENDPOINT", site.url)
        message = refused("permission", hub_adapter.check_tokenizer, "meta/plain", None)
    assert "the model meta/plain may not be read (403): Access to this resource is disabled" in message
    assert "hf_token_secret" in message


def test_no_network_is_told_apart_from_a_refusal(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
        for ask, args in (
            (hub_adapter.check_tokenizer, ("meta/plain", None)),
            (hub_adapter.download_dataset, ("hf://anon/chats", None)),
        ):
            message = refused("unavailable", ask, *args)
            assert "can't be reached" in message
            assert "HF_ENDPOINT" in message


def test_a_repository_without_a_tokenizer(hub: Hub) -> None:
    hub.repos["models/meta/draft"] = Repo({"config.json": b"{}", "model.safetensors": b"\0"})
    assert "meta/draft has no tokenizer" in refused("not-found", hub_adapter.check_tokenizer, "meta/draft", None)


def test_a_data_set_that_breaks_is_resumed_and_its_hash_checked(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 65536)  # it resumes in whole chunks of these
    hub_adapter.check_dataset("hf://anon/chats", None)
    (name,) = hub.cdn.files
    hub.cdn.files[name].breaks.append(2_000_000)
    assert hub_adapter.download_dataset("hf://anon/chats/chats.json", "hf_let_in").read_bytes() == BIG
    # How much of what was sent arrived is the network's affair; that not all is asked for again is not.
    assert [r.headers.get("range", "").startswith("bytes=") for r in hub.cdn.seen if r.method == "GET"] == [False, True]
    assert {r.headers.get("authorization") for r in hub.cdn.seen} == {None}, "the token went to another host"


def test_a_file_that_differs_from_what_the_hub_lists_is_fetched_again_and_then_refused(hub: Hub) -> None:
    hub_adapter.check_dataset("hf://anon/chats", None)
    (name,) = hub.cdn.files
    hub.cdn.files[name].content = BIG[::-1]
    message = refused("unavailable", hub_adapter.download_dataset, "hf://anon/chats", None)
    assert "chats.json of anon/chats arrived damaged: its sha256 is" in message
    assert sum(request.method == "GET" for request in hub.cdn.seen) == 2
    hub.cdn.files[name].content = BIG
    assert hub_adapter.download_dataset("hf://anon/chats", None).read_bytes() == BIG


def test_a_second_run_finds_the_data_set_in_the_cache(hub: Hub) -> None:
    first = hub_adapter.download_dataset("hf://anon/chats", None)
    assert hub_adapter.download_dataset("hf://anon/chats", None) == first
    assert sum(request.method == "GET" for request in hub.cdn.seen) == 1


def test_more_than_one_data_file_asks_which(hub: Hub) -> None:
    hub.repos["datasets/anon/many"] = Repo({"a.json": b"[]", "b.jsonl": b"", "c.parquet": b""})
    with pytest.raises(InputError, match=r"hf://anon/many/FILE.*a\.json, b\.jsonl"):
        hub_adapter.check_dataset("hf://anon/many", None)


@pytest.mark.parametrize("address", ["hf://", "hf://name", "hf:///x/y", "hf://a b/c"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="hf://owner/name"):
        hub_adapter.check_dataset(address, None)


def test_bench_takes_its_tokenizer_from_the_hub_as_a_run_does(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "prompts.jsonl").write_text("".join(f'{{"prompt": "{n} apples"}}\n' for n in range(3)))

    def bench(tokenizer: str) -> str:
        arguments = ["--base-url", "http://127.0.0.1:1/v1", "--prompts", str(tmp_path / "prompts.jsonl")]
        with pytest.raises(SystemExit) as ended:
            main(["bench", *arguments, "--concurrency", "9", "--tokenizer", tokenizer, "--out", "cell.json"])
        assert ended.value.code != 0
        return capsys.readouterr().err

    assert "Accept its conditions" in bench("meta/gated")
    write_tokenizer(tmp_path / "real", SMOL)
    files = {path.name: path.read_bytes() for path in (tmp_path / "real").iterdir()}
    hub.repos["models/meta/real"] = Repo(files)
    assert "3 prompts can't keep 9 requests in flight" in bench("meta/real")
    assert "tokenizer.json" in hub.downloads()
