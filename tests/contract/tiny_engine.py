"""A tiny OpenAI-compatible server that stands for a serving image in tests. `tiny_engine.py HOST PORT [FLAGS]`.

--crash          end at once, with a line about why
--deaf           run without ever listening
--gate=FILE      before each content chunk, wait until FILE has one more byte
--words=N        answer N chunks (3)
--pause=S        between chunks
--dies-at=N      end at once as the Nth stream is asked for
Streams like vLLM: a role-only chunk, then content; usage last, as vLLM does when it is made to.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

STREAMS = itertools.count(1)
FLAGS = dict(flag.lstrip("-").partition("=")[::2] for flag in sys.argv[3:])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format, *args):
        print(format % args, flush=True)

    def answer(self, text, kind="application/json"):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/metrics":
            return self.answer("vllm:spec_decode_num_drafts_total 7\n", "text/plain")
        return self.answer("{}")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        seen = {"request": request, "headers": dict(self.headers), "argv": sys.argv[1:], "pid": os.getpid()}
        if not request.get("stream"):
            message = {"role": "assistant", "content": json.dumps(seen)}
            return self.answer(json.dumps({"model": request["model"], "choices": [{"message": message}]}))
        if next(STREAMS) == int(FLAGS.get("dies-at", 0)):
            print("the engine's worker died: CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(1)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for number in range(int(FLAGS.get("words", 3))):
            time.sleep(float(FLAGS.get("pause", 0)))
            while "gate" in FLAGS and Path(FLAGS["gate"]).stat().st_size <= number:
                time.sleep(0.01)
            self.event({"choices": [{"delta": {"content": f"word{number} "}}]})
        self.event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": int(FLAGS.get("words", 3))}})
        self.chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        return None

    def event(self, data):
        self.chunk(f"data: {json.dumps(data)}\n\n")

    def chunk(self, text):
        body = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
        self.wfile.flush()


if "crash" in FLAGS:
    sys.exit("the draft model does not fit the target: vocabulary 32000 against 49152")
while "deaf" in FLAGS:
    time.sleep(60)
ThreadingHTTPServer.request_queue_size = 256
ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
