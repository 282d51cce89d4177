"""Nothing of Local Vertex survives it, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from eagle_bench.adapters import vertex
from eagle_bench.errors import ServiceError
from eagle_bench.local_vertex import keeper
from eagle_bench.local_vertex.server import LocalVertex
from eagle_bench.serving import Serving
from eagle_bench.variants import VariantSpec

# A command that starts a child, which leaves its process group and its session and hears no signal but KILL.
ESCAPE = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
mark = sys.argv[1]
if len(sys.argv) == 2:
    subprocess.Popen([sys.executable, __file__, mark, "child"], start_new_session=True)
time.sleep(600)
"""


def deploy(mark):
    spec = VariantSpec(id="base", model="owner/name", serving=Serving(image="tiny", args=(mark,)))
    return vertex.deploy(vertex.Place("p", "us-central1"), "run", spec)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_engine_survives_the_server(server, number, processes_with, until):
    deploy("--mark-survivor")
    assert processes_with("--mark-survivor")
    os.kill(server.pid, number)
    until(lambda: not processes_with("--mark-survivor"))


def test_stopping_leaves_nothing(server, processes_with):
    deploy("--mark-stopped")
    server.stop()
    assert not processes_with("--mark-stopped")
    assert not processes_with(str(server.settings.state_dir))


def test_the_server_ends_with_the_process_that_started_it(settings, processes_with, until):
    settings.state_dir.mkdir(parents=True)
    (settings.state_dir / "given.json").write_text(settings.model_dump_json())
    program = textwrap.dedent(f"""
        import os, time
        from pathlib import Path
        from eagle_bench.local_vertex.server import LocalVertex
        from eagle_bench.local_vertex.settings import Settings
        server = LocalVertex(Settings.model_validate_json(Path({str(settings.state_dir / "given.json")!r}).read_text()))
        server.start()
        print(server.pid, flush=True)
        time.sleep(600)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout.readline().strip().isdigit()
        assert processes_with(str(settings.state_dir / "settings.json"))
        owner.kill()
    until(lambda: not processes_with(str(settings.state_dir / "settings.json")))


@pytest.mark.parametrize("end", ["closed", "terminated", "killed-child"])
def test_a_keeper_leaves_no_descendant(tmp_path, end, processes_with, until):
    program, mark = tmp_path / "escape.py", f"mark-{end}-{os.getpid()}"
    program.write_text(ESCAPE)
    command = [sys.executable, "-I", keeper.__file__, "0.2", sys.executable, str(program), mark]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as kept:
        until(lambda: len(processes_with(f"{program} {mark}")) == 3)  # the keeper has the command in its own line
        if end == "closed":
            kept.stdin.close()
        elif end == "terminated":
            kept.terminate()
        else:
            (parent,) = [
                pid
                for pid in processes_with(f"{program} {mark}")
                if pid != kept.pid and os.getpgid(pid) == pid and os.getsid(pid) != pid
            ]
            os.kill(parent, signal.SIGKILL)
        kept.wait(timeout=60)
    assert not processes_with(f"{program} {mark}")


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(0)", 0), ("raise SystemExit(7)", 7)])
def test_a_keeper_ends_as_its_command_did(code, status):
    command = [sys.executable, "-I", keeper.__file__, "1", sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as kept:
        assert kept.wait(timeout=60) == status


def test_a_command_that_is_not_there_is_named():
    command = [sys.executable, "-I", keeper.__file__, "1", "/no/such/command"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as kept:
        assert kept.wait(timeout=60) == 127
        assert "/no/such/command" in kept.stderr.read()


def test_a_port_that_is_taken_is_said(server, settings, tmp_path):
    port = int(server.url.rsplit(":", 1)[1])
    other = LocalVertex(settings.model_copy(update={"state_dir": tmp_path / "other", "port": port}))
    with pytest.raises(ServiceError, match="Address already in use"):
        other.start()
