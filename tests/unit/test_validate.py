"""`validate` and `init` of what a config names on this machine: prompts that are too few, a tokenizer that is not there."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner

from eagle_bench import cli
from eagle_bench.adapters import hugging_face
from eagle_bench.commands import init

URLS = {name: f"http://{name}/v1" for name in ("baseline", "eagle3")}
CONFIG = {
    "variants": [{"id": name, "url": url} for name, url in URLS.items()],
    "workload": {"dataset": "builtin", "prompts_per_level": 50},
    "concurrency": [1, 2],
}


@pytest.fixture
def validate(tmp_path, capsys):
    path = tmp_path / "bench.yaml"

    def validate(**changes):
        path.write_text(yaml.safe_dump({**CONFIG, **changes}))
        with pytest.raises(SystemExit) as ended:
            cli.main(["validate", str(path)])
        said = capsys.readouterr()
        return ended.value.code, (said.out + said.err).replace(str(path), "bench.yaml")

    return validate


def test_levels_that_the_prompts_can_not_fill_are_named(validate, tmp_path):
    status, said = validate(concurrency=[1, 16, 20])
    assert status == 2
    # 50 and 2 to warm up; 320 and 32; 400 and 40
    assert "bench.yaml: builtin: 700 of the 700 conversations can be used, and 844 are needed" in said
    assert "Concurrency 20 is left with 296 of the 440 that it needs." in said
    mine = tmp_path / "mine.jsonl"
    mine.write_text("".join(json.dumps({"prompt": f"{i} ways to be told apart"}) + "\n" for i in range(30)))
    status, said = validate(workload={"dataset": str(mine)}, concurrency=[1])
    assert status == 2
    assert "30 of the 30 conversations can be used" in said
    assert "Concurrency 1 is left with 30 of the 1\u202f002 that it needs." in said
    assert validate() == (0, "bench.yaml: a config of 2 variants at 2 levels\n")
    assert validate(concurrency=[1]) == (0, "bench.yaml: a config of 2 variants at 1 level\n")


def test_what_is_not_on_this_machine_and_should_be_is_refused(validate, tmp_path):
    status, said = validate(tokenizer=str(tmp_path / "none"))
    assert status == 2 and f"bench.yaml: `tokenizer`: '{tmp_path}/none' is neither a folder nor a name" in said
    (tmp_path / "empty").mkdir()
    status, said = validate(tokenizer=str(tmp_path / "empty"))
    assert status == 2 and "holds no tokenizer" in said
    status, said = validate(workload={"dataset": "./none.jsonl"})
    assert status == 2 and "bench.yaml: `workload.dataset`: there is no file './none.jsonl'" in said


def test_what_is_elsewhere_is_not_asked_for(validate, monkeypatch):
    for name in ("check_dataset", "check_tokenizer"):
        monkeypatch.setattr(hugging_face, name, lambda *_: pytest.fail("asked"))
    for dataset in ("sharegpt", "hf://owner/name", "gs://bucket/x.jsonl", "https://host/x.jsonl"):
        assert validate(workload={"dataset": dataset}, tokenizer="owner/name")[0] == 0
    assert validate(tokenizer="gs://bucket/tokenizer")[0] == 0


def test_init_writes_the_file_and_warns(tmp_path):
    path = tmp_path / "b.yaml"
    urls = [word for name, url in URLS.items() for word in ("--url", f"{name}={url}")]
    done = CliRunner().invoke(init.command, [*urls, "--concurrency", "1,64", "-o", str(path)])
    assert done.exit_code == 0 and path.exists()
    assert "warning: builtin: 700 of the 700 conversations can be used" in done.output
    assert "Concurrency 64 is left with 498 of the 1\u202f408 that it needs." in done.output
    done = CliRunner().invoke(init.command, [*urls, "-o", str(path), "--force"])
    assert done.exit_code == 0 and "warning" not in done.output
