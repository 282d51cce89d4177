"""Each form is read as what it says, and what can't be read is refused by file, line, finding and remedy."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle_bench.errors import InputError
from eagle_bench.workload import readers
from eagle_bench.workload.conversations import EMPTY, NO_USER, NOT_TEXT


def read(path: Path, content: str | bytes, **options: str) -> list[readers.Entry]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(readers.read(path, **options))


def sent(entry: readers.Entry) -> list[tuple[str, str]]:
    assert entry.prompt is not None, entry.problem
    return [(message.role, message.content) for message in entry.prompt.messages]


def turns(*values: tuple[str, str]) -> str:
    return json.dumps([{"id": "x", "conversations": [{"from": who, "value": text} for who, text in values]}])


def test_one_turn_of_sharegpt_is_a_prompt(tmp_path: Path) -> None:
    (entry,) = read(tmp_path / "f", turns(("human", "Why?")))
    assert sent(entry) == [("user", "Why?")]
    assert entry.prompt is not None
    assert entry.prompt.id == "x"


def test_a_recorded_conversation_gives_its_opening_question(tmp_path: Path) -> None:
    (entry,) = read(
        tmp_path / "f", turns(("system", "Be kind."), ("human", "A?"), ("gpt", "a"), ("human", "B?"), ("gpt", "b"))
    )
    assert sent(entry) == [("system", "Be kind."), ("user", "A?")]


def test_a_conversation_that_ends_with_the_user_is_sent_whole(tmp_path: Path) -> None:
    (entry,) = read(tmp_path / "f", turns(("human", "A?"), ("gpt", "a"), ("user", "B?")))
    assert sent(entry) == [("user", "A?"), ("assistant", "a"), ("user", "B?")]


def test_answers_before_the_first_question_are_left_out(tmp_path: Path) -> None:
    (entry,) = read(tmp_path / "f", turns(("gpt", "…goes on"), ("human", "A?"), ("gpt", "a")))
    assert sent(entry) == [("user", "A?")]


@pytest.mark.parametrize(
    ("conversation", "problem"),
    [
        ([], EMPTY),
        ([("human", "  \n")], EMPTY),
        ([("gpt", "Hello.")], NO_USER),
        ([("human", "A?"), ("tool", "{}")], NOT_TEXT),
    ],
)
def test_what_holds_no_question_is_named(tmp_path: Path, conversation: list[tuple[str, str]], problem: str) -> None:
    (entry,) = read(tmp_path / "f", turns(*conversation))
    assert (entry.prompt, entry.problem) == (None, problem)


def test_openai_messages_go_up_to_the_users_last_turn(tmp_path: Path) -> None:
    row = {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "C"},
            {"role": "assistant", "content": "c"},
        ]
    }
    (entry,) = read(tmp_path / "f", json.dumps(row))
    assert sent(entry) == [("system", "Be brief."), ("user", "A\nB"), ("assistant", "a"), ("user", "C")]


def test_a_picture_in_the_messages_is_not_text(tmp_path: Path) -> None:
    content = [{"type": "image_url", "image_url": {"url": "data:"}}]
    (entry,) = read(tmp_path / "f", json.dumps({"messages": [{"role": "user", "content": content}]}))
    assert entry.problem == NOT_TEXT


def test_json_lines_with_lengths_ids_and_kinds(tmp_path: Path) -> None:
    rows = [{"prompt": "A", "output_tokens": 7, "id": 12, "kind": "code"}, {"prompt": "B", "output_tokens": 8.0}]
    first, second = read(tmp_path / "f", "\n\n".join(json.dumps(row) for row in rows) + "\n")
    assert first.prompt is not None
    assert second.prompt is not None
    assert (first.prompt.id, first.prompt.kind, first.prompt.max_tokens) == ("12", "code", 7)
    assert (second.prompt.id, second.prompt.kind, second.prompt.max_tokens) == ("3", None, 8)


def test_a_column_of_csv_with_line_breaks_in_cells(tmp_path: Path) -> None:
    entries = read(tmp_path / "f", 'id,text\r\na,"two\nlines, and a comma"\r\nb,one\r\n', prompt_column="text")
    assert [sent(entry) for entry in entries] == [[("user", "two\nlines, and a comma")], [("user", "one")]]
    assert [entry.place for entry in entries] == ["line 3", "line 4"]


def test_a_byte_order_mark_is_no_part_of_the_content(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    assert len(read(tmp_path / "a", mark + b'[{"prompt": "A"}]')) == 1
    assert len(read(tmp_path / "b", mark + b'{"prompt": "A"}')) == 1
    assert len(read(tmp_path / "c", mark + b"prompt\nA\n")) == 1


def test_half_of_a_surrogate_pair_becomes_a_character_that_can_be_sent(tmp_path: Path) -> None:
    (entry,) = read(tmp_path / "f", '{"prompt": "so \\ud83d", "id": "x\\ud800", "kind": "\\udfff"}')
    assert sent(entry)[0][1].encode() == "so \N{REPLACEMENT CHARACTER}".encode()
    assert entry.prompt is not None
    assert (entry.prompt.id, entry.prompt.kind) == ("x\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}")


@settings(deadline=None, max_examples=50)
@given(texts=st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=8))
def test_every_form_gives_back_the_same_texts(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("forms")
    texts = [f"q{text}" for text in texts]
    forms = {
        "array": json.dumps([{"conversations": [{"from": "human", "value": text}]} for text in texts]),
        "messages": "\n".join(json.dumps({"messages": [{"role": "user", "content": text}]}) for text in texts),
        "prompts": "\n".join(json.dumps({"prompt": text}, ensure_ascii=False) for text in texts),
    }
    for name, content in forms.items():
        assert [sent(entry) for entry in read(folder / name, content)] == [[("user", text)] for text in texts], name
    table = folder / "table"
    # Carriage returns and NUL can't travel in every CSV: the form's limit, not the reader's.
    plain = [text.replace("\r", " ").replace("\0", " ") for text in texts]
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["prompt"], *([text] for text in plain)])
    assert [sent(entry) for entry in readers.read(table)] == [[("user", text)] for text in plain]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ["is empty", "ShareGPT", "OpenAI", "CSV"]),
        (b"[]", ["empty array"]),
        (b"PAR1\x00\x00", ["binary file"]),
        (b'[{"prompt": "A"},\n {"prompt": "B",}]', ["line 2", "not JSON"]),
        (b'[{"prompt": "A"}', ["not JSON"]),
        (b'{"prompt": "A"}\n{"prompt": oops}\n', ["line 2", "not a JSON object", "oops", "allowed|must hold"]),
        (b'{\n "prompt": "A"\n}', ["line 1", "on one line"]),
        (b'[{"prompt": "A"}, {"question": "B", "answer": "C"}]', ["entry 2", "`question`, `answer`", "`prompt`"]),
        (b'[{"prompt": 3}]', ["entry 1", "`prompt` is 3"]),
        (b'["A"]', ["entry 1", '"A"', "not an object"]),
        (b'[{"conversations": "A"}]', ["entry 1", "`conversations`", '"from"']),
        (b'[{"conversations": [{"role": "user"}]}]', ["entry 1", "a turn", '"from"']),
        (b'{"prompt": "A", "output_tokens": 0}', ["line 1", "`output_tokens` is 0", "at least 1"]),
        (b'{"prompt": "A", "output_tokens": "many"}', ["line 1", '"many"']),
        (b"question,answer\nA,B\n", ["line 1", "no column is named", "question, answer", "--prompt-column"]),
        (b"prompt\n\xff\xfe\n", ["UTF-8"]),
        ("prompt\nA\n".encode("utf-16"), ["UTF-16", "must be UTF-8"]),
        (b"prompt\n", ["has no rows"]),
        (b'prompt\nA\n"B\nC\nD\n', ["line 3", "quote"]),
        (b'prompt\nA\n"B\nC\n"D"\n', ["line 3", "quote"]),
        (b'id,prompt\n1,"A,\nB,"\n2,A, B\n', ["line 4", "3 cells", "comma"]),
        (b"prompt,prompt\nA,B\n", ["line 1", "2 columns"]),
        (gzip.compress(b"prompt\nA\n", mtime=0), ["is compressed", "Unpack"]),
        (b"PK\x03\x04 a sheet", ["is compressed"]),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", ["Git LFS", "git lfs pull"]),
        (b"\n<!DOCTYPE HTML><title>Sign in</title>", ["is a web page"]),
        (b'{"prompt": "A", "output_tokens": 1e30}', ["line 1", "1e+30", "1\u202f000\u202f000"]),
        (b'{"prompt": ' + b"[" * 20_000, ["line 1", "nested too deeply"]),
        (b'[{"prompt": ' + b"[" * 20_000 + b"]" * 20_000 + b"}]", ["entry 1", "nested too deeply"]),
        (b"[" * 200_000, ["entry 1", "nested too deeply"]),
        (b'[{"prompt": "A", "output_tokens": ' + b"9" * 5000 + b"}]", ["output_tokens|not JSON"]),
    ],
)
def test_what_is_wrong_where_and_what_is_allowed(tmp_path: Path, content: bytes, said: list[str]) -> None:
    path = tmp_path / "mine.txt"
    with pytest.raises(InputError) as refused:
        read(path, content)
    message = str(refused.value)
    assert str(path) in message
    for words in said:
        assert any(word in message for word in words.split("|")), (words, message)


def test_a_column_that_is_not_there_is_named_beside_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column 'text'.*question, answer"):
        read(tmp_path / "f", "question,answer\nA,B\n", prompt_column="text")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.json: there is no such file"):
        list(readers.read(tmp_path / "nowhere.json"))


def test_a_folder_is_called_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        list(readers.read(tmp_path))


def test_an_empty_cell_beyond_the_header_is_nothing(tmp_path: Path) -> None:
    assert [sent(entry) for entry in read(tmp_path / "f", "prompt\nA,\n")] == [[("user", "A")]]


def test_quotes_inside_of_cells_are_content(tmp_path: Path) -> None:
    entries = read(tmp_path / "f", 'prompt\nsay "A"\n"say ""B"""\n')
    assert [sent(entry) for entry in entries] == [[("user", 'say "A"')], [("user", 'say "B"')]]


def test_a_broken_array_too_large_to_hold_is_placed_by_its_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "LARGEST_LOCATED_BYTES", 10)
    whole = json.dumps([{"prompt": f"{number}?"} for number in range(5000)])
    with pytest.raises(InputError, match=r"after entry 4\d\d\d: not JSON"):
        read(tmp_path / "f", whole[:-5])
    with pytest.raises(InputError, match=r"after entry 0: not JSON.*UTF"):
        read(tmp_path / "f", b'[{"prompt": "\xff"}]')


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """One that nobody writes to: to open it would be to wait for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"is a pipe, which can be read only once\. Write it to a file"):
        list(readers.read(pipe))
