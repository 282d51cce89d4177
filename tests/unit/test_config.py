"""The config file: what can't be used is refused before anything is made, by field, with what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eagle_bench import config, config_file
from eagle_bench.errors import InputError

GOOD = {
    "project": "my-project",
    "location": "us-central1",
    "model": "meta/llama4@llama-4-scout-17b-16e-instruct",
    "tokenizer": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "serving": {"args": ["--tp=8"]},
    "variants": [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}],
}


def changed(**fields):
    return {**GOOD, **fields}


def refused(data) -> str:
    with pytest.raises(InputError) as caught:
        config_file.validate(data, source="bench.yaml")
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_the_example_of_the_design_is_taken():
    taken = config_file.validate(GOOD)
    assert [variant.id for variant in taken.variants] == ["baseline", "eagle3"]
    assert taken.concurrency == (1, 2, 4, 6, 8, 10)
    assert taken.repeats == 3


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"concurrency": []}, ["`concurrency` is empty", "at least 1"]),
        ({"concurrency": [0]}, ["`concurrency[0]`", "0", "greater than or equal to 1"]),
        ({"concurrency": [1, 1]}, ["`concurrency`", "1 twice"]),
        ({"concurrency": ["a"]}, ["`concurrency[0]`", "whole number", "'a'"]),
        ({"concurrency": [True]}, ["`concurrency[0]`", "whole number", "True"]),
        ({"concurrency": [1.5]}, ["`concurrency[0]`", "whole number", "1.5"]),
        ({"concurrency": 4}, ["`concurrency`", "4"]),
        ({"repeets": 3}, ["`repeets`", "not a known key", "`repeats`"]),
        ({"workload": {"datset": "x"}}, ["`workload.datset`", "`dataset`"]),
        ({"workload": {"zzz": "x"}}, ["`workload.zzz`", "prompts_per_level"]),
        ({"variants": []}, ["`variants` is empty"]),
        ({"variants": [{"id": "baseline"}]}, ["only the baseline"]),
        ({"variants": [{"id": "baseline"}, {"id": "baseline"}]}, ["`variants`", "two variants", "'baseline'"]),
        ({"variants": [{"id": "a"}, {"id": "b"}]}, ["no variant is the baseline", "a, b"]),
        ({"baseline": "none"}, ["no variant is the baseline", "'none'", "baseline, eagle3"]),
        ({"variants": [{"id": "baseline"}, {"id": "Eagle_3"}]}, ["`variants[1].id`", "'Eagle_3'", "a-z, 0-9 and -"]),
        ({"variants": [{"id": "baseline"}, {"id": "x" * 41}]}, ["`variants[1].id`", "1 to 40"]),
        ({"variants": [{"id": "baseline"}, {"id": "-a"}]}, ["`variants[1].id`"]),
        ({"variants": [{"id": "baseline"}, {"id": "u", "url": "ftp://x"}]}, ["`variants[1].url`", "ftp://x"]),
        (
            {"variants": [{"id": "baseline"}, {"id": "u", "url": "http://x", "args": ["--a"]}]},
            ["`variants[1]`", "`args`", "deployed"],
        ),
        ({"model": None}, ["`model` is needed"]),
        ({"baseline_again": "twin"}, ["`baseline_again`", "'twin'"]),
        ({"baseline_again": "baseline"}, ["`baseline_again`", "'baseline'"]),
        ({"tokenizer": None}, ["`tokenizer` is missing"]),
        (
            {"serving": {"args": ["--chat-template=a", "--chat-template=b"]}},
            ["`serving.args`", "--chat-template twice"],
        ),
        ({"variants": [{"id": "baseline"}, {"id": "e", "args": ["--tp=4"]}]}, ["'e'", "--tp twice"]),
        ({"project": 5}, ["`project`", "5", "string"]),
        ({"repeats": 0}, ["`repeats`", "0"]),
        ({"max_failure_rate": 1.5}, ["`max_failure_rate`", "1.5"]),
        ({"price_per_hour": -1.0}, ["`price_per_hour`", "-1.0"]),
        ({"price_per_hour": float("nan")}, ["`price_per_hour`", "nan"]),
        ({"price_per_hour": 1e308}, ["`price_per_hour`", "less than or equal to 1000000"]),
        ({"slo": {"ttft_ms": "fast"}}, ["`slo.ttft_ms`", "'fast'"]),
    ],
)
def test_bad_input_is_refused_with_field_value_and_what_is_allowed(fields, words):
    message = refused(changed(**fields))
    assert message.startswith("bench.yaml: ")
    for word in words:
        assert word in message, message


def test_each_problem_is_named_once():
    lines = refused(changed(concurrency=["a", 0], repeats=0)).splitlines()
    assert len(lines) == 3, lines


def test_a_secret_in_place_of_its_name_is_not_repeated():
    message = refused(changed(hf_token_secret="hf_planted_secret_value"))
    assert "`hf_token_secret`" in message
    assert "planted" not in message


@pytest.mark.parametrize(
    "fields",
    [
        {"hf_token_secret": ["hf_planted"]},
        {"hf_token_secret": {"a": "hf_planted"}},
        {"serving": {"env": "HF=hf_planted"}},
        {"serving": {"env": {"X": ["hf_planted"]}}},
        {"serving": {"env": {"HF_TOKEN": "hf_planted"}}},
        {"serving": {"args": "--api-key=hf_planted"}},
        {"serving": {"args": ["--api-key=hf_planted"]}},
        {"variants": [{"id": "baseline"}, {"id": "x", "env": ["hf_planted"]}]},
        {"variants": [{"id": "baseline"}, {"id": "x", "url": "hf_planted"}]},
        {"variants": [{"id": "baseline"}, {"id": "x", "url": "https://user:planted@host/v1"}]},
        {"variants": [{"id": "baseline"}, {"id": "x", "url": "httpx://user:planted@host/v1"}]},
        {"workload": {"dataset": "https://user:planted@host/f.json"}},
        {"variants": [{"id": "baseline"}, {"id": "x", "url": "https://host/v1?api_key=planted"}]},
        {"variants": [{"id": "baseline"}, {"id": "x", "url": "https://host/v1#planted"}]},
        {"variants": [{"id": "baseline"}, {"id": "x", "url": "httpx://host/v1?api_key=planted"}]},
        {"workload": {"dataset": "https://host/f.json?a=b&X-Amz-Signature=planted"}},
        {"workload": {"dataset": "https://host/f.json?X-Goog-Signature=planted"}},
        {"workload": {"dataset": "https://host/f.json?sv=1&sig=planted"}},
        {"workload": {"dataset": "https://host/f.json?accessToken=planted"}},
        {"workload": {"dataset": "https://host/f.json?api%5Fkey=planted"}},
        {"workload": {"dataset": "https://host/f.json?key=planted"}},
        {"workload": {"dataset": "https://host/f.json#token=planted"}},
        {"hf_thisisasecret_planted_by_the_test_here": 1},
    ],
)
def test_secrets_in_wrong_places_are_refused_and_never_repeated(fields):
    assert "planted" not in refused(changed(**fields))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://h/v1?api_key=x", "a query"),
        ("http://h/v1?", "a query"),
        ("http://h/v1#f", "a fragment"),
        ("http://h /v1", "spaces"),
        ("http://h/v1\n\nx", "line breaks"),
        ("http://h/v1/chat/completions", "ends in /chat/completions: give the URL up to /v1"),
        ("http://h/v1/chat/completions/", "ends in /chat/completions: give the URL up to /v1"),
    ],
)
def test_a_url_that_no_request_could_be_sent_to_is_refused(url, words):
    message = refused(changed(variants=[{"id": "baseline"}, {"id": "x", "url": url}]))
    assert message.startswith("bench.yaml: `variants[1].url` ")
    assert words in message


def test_a_plain_query_of_a_data_set_is_taken():
    address = "https://host/f.jsonl?download=true&monkey=1&design=2"
    assert config_file.validate(changed(workload={"dataset": address})).workload.dataset == address


ENDPOINT = "projects/p/locations/l/endpoints/1"


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ({"url": "http://h/v1"}, {"url": "http://H/v1/"}, "url"),
        ({"url": "http://h/v1", "served_model": "m"}, {"url": "http://h/v1", "served_model": "m"}, "url"),
        ({"endpoint": ENDPOINT}, {"endpoint": ENDPOINT}, "endpoint"),
    ],
)
def test_a_server_is_no_two_variants_but_for_the_baseline_once_more(one, other, kind):
    twice = changed(variants=[{"id": "baseline", **one}, {"id": "eagle3", **other}])
    assert refused(twice).startswith(f"bench.yaml: `variants`: 'baseline' and 'eagle3' are the same {kind}: ")
    assert config_file.validate({**twice, "baseline_again": "eagle3"}).baseline_again == "eagle3"


def test_the_baseline_once_more_is_no_third_variant_s_server():
    same = [{"id": name, "url": "http://h/v1"} for name in ("eagle3", "again")]
    variants = [{"id": "baseline", "url": "http://b/v1"}, *same]
    assert "'eagle3' and 'again'" in refused(changed(variants=variants, baseline_again="again"))


def test_a_server_of_two_models_is_two_variants():
    variants = [{"id": name, "url": "http://h/v1", "served_model": name} for name in ("baseline", "eagle3")]
    assert len(config_file.validate(changed(variants=variants)).variants) == 2


def test_flags_of_models_are_no_secrets():
    args = ["--tokenizer=x", "--max-num-batched-tokens=4096", "--speculative-num-draft-tokens=8"]
    assert config_file.validate(changed(serving={"args": args})).serving.args == tuple(args)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\na: 2\n", "twice"),
        ("project: 2020-13-01\n", "not YAML"),
        (f"repeats: {'9' * 5000}\n", "not YAML"),
        ("[" * 3000, "not YAML"),
        ("a: 0x_\n", "not YAML"),
        ("? [1, 2]\n: 1\n", "line 1: not YAML: found unhashable key"),
        ("? {a: 1}\n: 1\n", "line 1: not YAML: found unhashable key"),
        (
            "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)),
            "more than",
        ),
    ],
)
def test_texts_that_break_parsers_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        config_file.parse(text)


def test_long_values_are_cut():
    assert len(refused(changed(location="x " * 10_000))) < 200


def test_numbers_that_arrive_as_doubles_are_whole():
    taken = config_file.validate(changed(concurrency=[4.0, 8.0], repeats=3.0, workload={"prompts_per_level": 100.0}))
    assert taken.concurrency == (4, 8)
    assert all(isinstance(level, int) for level in taken.concurrency)
    assert taken.workload.prompts_per_level == 100


def test_values_are_frozen():
    taken = config_file.validate(GOOD)
    with pytest.raises(ValueError, match="frozen"):
        taken.repeats = 5


@given(st.integers(1, 1000), st.integers(1, 5000))
def test_a_cell_never_has_fewer_requests_than_give_an_answer(level, asked):
    requests = config.Workload(prompts_per_level=asked).requests_at(level)
    assert requests >= 50
    assert requests >= 20 * level
    assert requests >= asked


def test_files_that_are_no_config(tmp_path: Path):
    missing = tmp_path / "missing.yaml"
    with pytest.raises(InputError, match="no such file"):
        config_file.load(missing)
    for text, words in (("{:", "line 1: not YAML"), ("- a\n", "mapping of fields"), ("", "mapping of fields")):
        path = tmp_path / "bench.yaml"
        path.write_text(text)
        with pytest.raises(InputError, match=words) as caught:
            config_file.load(path)
        assert str(path) in str(caught.value)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="can't be read"):
        config_file.load(path)
    path.write_text(yaml.safe_dump(GOOD))
    assert config_file.load(path).project == "my-project"


def test_yaml_that_would_run_code_is_no_config(tmp_path: Path):
    path = tmp_path / "bench.yaml"
    path.write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(InputError, match="not YAML"):
        config_file.load(path)
