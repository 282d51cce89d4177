"""What a run on this machine notes of what it measured with."""

from __future__ import annotations

import os
import re
from pathlib import Path

from eagle_bench.local_vertex.settings import Engine, Settings
from eagle_bench.runs import equipment as module
from eagle_bench.runs.equipment import equipment, machine
from eagle_bench.serving import Serving
from eagle_bench.variants import VariantSpec

COMMAND = ("serve", "{model}", "--port", "{port}", "--api-key", "sk-planted-1", "--hf-token=sk-planted-2", "--fast")
ENV = {"OMP_NUM_THREADS": "1", "ENGINE_TOKEN": "sk-planted-3"}
SETTINGS = Settings(
    state_dir=Path("x"),
    engines={"tiny": Engine(command=COMMAND, env=ENV)},
    models={"a/b": Path("/models/b"), "a/head": Path("/models/head")},
)


def test_an_engine_is_its_command_its_environment_and_its_models_without_secrets():
    serving = Serving(image="tiny", args=["--tp=1", "--draft=a/head"])
    variants = [
        VariantSpec(id="base", model="a/b", serving=serving),
        VariantSpec(id="elsewhere", url="http://127.0.0.1:1/v1"),
    ]
    found = equipment(variants, SETTINGS)
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert {name for name in found if name.startswith("engines.")} == {"engines.base"}
    command = ["serve", "/models/b", "--port", "{port}", "--api-key", "[token]", "--hf-token=[token]", "--fast"]
    assert found["engines.base"] == ["OMP_NUM_THREADS=1", *command, "--draft=/models/head"]
    assert "sk-planted" not in str(found)


def test_the_processor_is_called_as_the_system_calls_it(tmp_path, monkeypatch):
    names = tmp_path / "cpuinfo"
    names.write_text("processor\t: 0\nmodel name\t: Slow(R) CPU @ 1.00GHz\nflags\t: a b\n" * 2)
    monkeypatch.setattr(module, "PROCESSORS", names)
    assert equipment((), SETTINGS)["processor"] == "Slow(R) CPU @ 1.00GHz"
    assert re.fullmatch(r"\d+ CPU cores \(Slow\(R\) CPU @ 1.00GHz\), \d+ GB memory, Linux \w+", machine())
    names.write_text("processor\t: 0\n")  # not every kind of processor has a name there
    assert equipment((), SETTINGS)["processor"]
