"""input/prepare.py from outside: its files read back, and what it refuses. The program's own tokenizer reads its tokenizer.json.

Usage:

    PREPARE=input/prepare.py ENCODE_LINES=build/release/encode_lines python3 test_prepare.py
"""

import gzip
import importlib.util
import io
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from array import array
from collections import Counter
from pathlib import Path
from unittest import mock

from prepare_case import END, PREPARE, Prepared, documents, run, tokens_of

ENCODE_LINES = os.environ["ENCODE_LINES"]
TOKENIZERS = Path(__file__).resolve().parents[1] / "data/tokenizer"


def framed(before, after):
    """A post_processor that adds tokens around a text."""
    piece = lambda text: {"SpecialToken": {"id": text, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [*map(piece, before), {"Sequence": {"id": "A", "type_id": 0}}, *map(piece, after)],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {text: {"id": text, "ids": [one], "tokens": [text]} for text, one in {**before, **after}.items()},
    }


class Frames(Prepared):
    """A tokenizer that adds tokens around a text."""

    def setUp(self):
        super().setUp()
        run(self.lines(), "-o", self.folder / "plain", "--vocab", 300)
        self.rules = json.loads((self.folder / "plain/tokenizer.json").read_text())

    def use(self, before, after=(), **others):
        """Writes the tokenizer with such a post_processor; returns its folder."""
        ids = {token["content"]: token["id"] for token in self.rules["added_tokens"]} | self.rules["model"]["vocab"]
        frame = framed({text: ids[text] for text in before}, {text: ids[text] for text in after})
        folder = self.folder / "framed"
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps({**self.rules, "post_processor": frame, **others}))
        return folder

    def tokens(self, *options):
        path = self.lines(texts=["a rank", "the node"])
        run(path, "-o", self.out, "--tokenizer", self.folder / "framed", "--validation", 0, "--force", *options)
        return self.read("train")

    def test_text_has_them_around_each_document(self):
        from tokenizers import Tokenizer

        folder = self.use(["b", "c"])
        library = Tokenizer.from_file(str(folder / "tokenizer.json"))
        end, rank, node = library.token_to_id(END), library.encode("a rank").ids, library.encode("the node").ids
        self.assertEqual(self.tokens(), [end, *rank, end, *node])
        plain = [library.encode(text, add_special_tokens=False).ids for text in ("a rank", "the node")]
        self.assertEqual(self.tokens("--no-special-tokens"), [end, *plain[0], end, *plain[1]])
        for before, after in (([END], []), ([], [END]), ([END], ["d"])):
            folder = self.use(before, after)
            added = Tokenizer.from_file(str(folder / "tokenizer.json")).encode("").ids
            begin = [*added[len(before) :], *added[: len(before)]]
            self.assertEqual(self.tokens(), [*begin, *plain[0], *begin, *plain[1]], (before, after))

    def test_the_context_of_a_choice_begins_with_them(self):
        from tokenizers import Tokenizer

        truncation = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
        folder = self.use(["b", "c"], ["d"], truncation=truncation)
        (self.folder / "task.jsonl").write_text(json.dumps({"ctx": "A rank", "endings": ["a", "bc"], "label": 0}))
        run(self.folder / "task.jsonl", "-o", self.out, "--choices", "--tokenizer", folder)
        library = Tokenizer.from_file(str(folder / "tokenizer.json"))
        library.no_truncation()
        context = library.encode("A rank").ids[:-1]
        ending = library.encode(" a", add_special_tokens=False).ids
        stream = list(array("H", (self.out / "text_choices.bin").read_bytes()[1024:]))
        self.assertEqual(stream[5 : 6 + len(context)], [len(context), *context])
        self.assertEqual(stream[6 + len(context) :][: 1 + len(ending)], [len(ending), *ending])


class RoundTrip(Prepared):
    def test_lines_come_back(self):
        texts = documents(self.text, 60)
        said = run(self.lines(texts=texts), "-o", self.out, "--vocab", 600, "--validation", 0.2)
        train, validation = self.split(self.read("train")), self.split(self.read("val"))
        self.assertEqual(train, [text for text in texts if text not in validation])
        self.assertEqual(validation, [text for text in texts if text not in train])
        self.assertIn("vocab = 600\n", said)
        self.assertIn(f'validation_files = ["{self.out}/text_val_*.bin"]', said)
        self.assertEqual(list(self.out.glob("*.partial")), [])

    def test_the_program_reads_the_tokenizer_alike(self):
        texts = [text for text in documents(self.text, 60) if END not in text]
        run(self.lines(texts=texts), "-o", self.out, "--vocab", 600, "--validation", 0)
        done = subprocess.run(
            [ENCODE_LINES, self.out, "keeps-text"],
            input="".join(json.dumps(text) + "\n" for text in texts),
            capture_output=True,
            text=True,
            check=True,
        )
        mine = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
        end = json.loads((self.out / "tokenizer.json").read_text())["model"]["vocab"][END]
        self.assertEqual(self.read("train"), [token for text in mine for token in [end, *text]])

    def test_a_long_text_is_cut_without_a_trace(self):
        text = self.text * (2**21 // len(self.text))
        path = self.folder / "long.txt"
        path.write_bytes(text.encode())
        run(path, "-o", self.out, "--vocab", 400, "--validation", 0, "--shard-tokens", "500K")
        done = subprocess.run(
            [ENCODE_LINES, self.out, "keeps-text"], input=json.dumps(text) + "\n", capture_output=True, text=True, check=True
        )
        self.assertEqual(self.read("train")[1:], [int(word) for word in done.stdout.split()])
        sizes = [len(tokens_of(file)) for file in sorted(self.out.glob("text_train_*.bin"))]
        self.assertGreater(len(sizes), 1)
        self.assertEqual(set(sizes[:-1]), {500000})

    def test_one_text_alone_is_cut_for_validation_at_a_line_end(self):
        (self.folder / "one.txt").write_text(self.text)
        run(self.folder / "one.txt", "-o", self.out, "--vocab", 400, "--validation", 0.1)
        train, validation = self.split(self.read("train")), self.split(self.read("val"))
        self.assertEqual("".join(train + validation), self.text)
        self.assertEqual((len(train), len(validation)), (1, 1))
        self.assertTrue(train[0].endswith("\n"))
        self.assertTrue(0 < len(validation[0]) <= 0.1 * len(self.text))

    def test_other_processes_give_the_same_bytes(self):
        texts = [text * 20 for text in documents(self.text, 300)[4:]]
        path = self.lines(texts=texts)
        for count in (1, 4):
            run(path, "-o", self.folder / str(count), "--vocab", 300, "--processes", count)
        names = sorted(file.name for file in (self.folder / "1").iterdir())
        self.assertEqual(names, ["text_train_000000.bin", "text_val_000000.bin", "tokenizer.json", "tokenizer_config.json"])
        for name in names:
            self.assertEqual((self.folder / "1" / name).read_bytes(), (self.folder / "4" / name).read_bytes(), name)

    def test_a_folder_compressed_files_and_another_key(self):
        inside = self.folder / "in/deep"
        inside.mkdir(parents=True)
        (inside / "b.txt").write_text("second\n")
        (inside.parent / "c.jsonl.gz").write_bytes(gzip.compress(b'{"body": "third"}\n\n{"body": "fourth"}\n'))
        (inside.parent / "ignored.png").write_bytes(b"\xff")
        run(inside.parent, "-o", self.out, "--vocab", 257, "--text-key", "body", "--validation", 0)
        self.assertEqual(self.split(self.read("train")), ["third", "fourth", "second\n"])

    def test_zstandard(self):
        if importlib.util.find_spec("zstandard") is None:
            self.skipTest("no zstandard")
        import zstandard

        (self.folder / "a.jsonl.zst").write_bytes(zstandard.compress(b'{"text": "one"}\n'))
        run(self.folder / "a.jsonl.zst", "-o", self.out, "--vocab", 257)
        self.assertEqual(self.split(self.read("train")), ["one"])
        whole = zstandard.compress(b'{"text": "one"}\n' * 1000)
        (self.folder / "cut.jsonl.zst").write_bytes(whole + whole[:-4])
        said = run(self.folder / "cut.jsonl.zst", "-o", self.folder / "cut", "--vocab", 257, code=4)
        self.assertIn("cut.jsonl.zst: the file ends within a frame", said)

    def test_parquet(self):
        path = self.folder / "a.parquet"
        if importlib.util.find_spec("pyarrow") is None:
            path.write_bytes(b"PAR1")
            for options in ((), ("--skip-bad",)):
                said = run(path, "-o", self.out, *options, code=4)
                self.assertRegex(
                    said, r"a\.parquet: reading it needs the module pyarrow: \S*python\S* -m pip install pyarrow\n"
                )
            return
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"text": ["one", "two"], "n": [1, 2]}), path)
        run(path, "-o", self.out, "--vocab", 257, "--validation", 0)
        self.assertEqual(self.split(self.read("train")), ["one", "two"])
        said = run(path, "-o", self.folder / "n", "--text-key", "n", code=4)
        self.assertIn("a.parquet: row 1 of column n is not text", said)
        self.assertIn("has no column x, only text, n", run(path, "-o", self.folder / "x", "--text-key", "x", code=4))

    def test_a_tokenizer_that_is_there(self):
        run(self.lines(), "-o", self.out, "--vocab", 300)
        before = (self.out / "tokenizer.json").read_bytes()
        run(self.lines("b.jsonl", ["one more"]), "-o", self.out, "--tokenizer", self.out, "--name", "more", "--end-token", END)
        self.assertEqual(before, (self.out / "tokenizer.json").read_bytes())
        self.assertEqual(self.split(self.read("train", name="more")), ["one more"])
        self.assertEqual(json.loads((self.out / "tokenizer_config.json").read_text())["eos_token"], END)

    def test_ids_above_16_bits_take_32(self):
        from tokenizers import Tokenizer

        run(self.lines(), "-o", self.out, "--vocab", 300)
        large = Tokenizer.from_file(str(self.out / "tokenizer.json"))
        large.add_tokens([f"<|{i}|>" for i in range(2**16)])
        large.save(str(self.folder / "large.json"))
        run(self.lines("b.jsonl", ["a<|65535|>b"]), "-o", self.folder / "large", "--tokenizer", self.folder / "large.json")
        tokens = self.read("train", self.folder / "large")
        self.assertEqual(tokens[2], 300 + 65535)
        self.assertEqual((self.folder / "large/text_train_000000.bin").stat().st_size, 1024 + 4 * 4)


class Folders(Prepared):
    """Files that are used from a folder, and the message about the others."""

    def setUp(self):
        super().setUp()
        self.source = self.folder / "in"

    def put(self, name, data=b"text of its own\n"):
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def prepared(self, *options, texts):
        """The output. The documents have to be these, in any order."""
        said = run(self.source, "-o", self.out, "--vocab", 257, "--validation", 0, "--force", *options)
        self.assertEqual(sorted(self.split(self.read("train"))), sorted(texts))
        return said

    def test_sources_of_programs_are_text_and_the_rest_is_counted(self):
        for i in range(40):
            self.put(f"tree/f{i}.py", b"print(%d)\n" % i)
        for name in ("a.txt", "B.TXT", "c.md", "d.rst", "e.f90", "g.txt.gz"):
            self.put(name, gzip.compress(name.encode()) if name.endswith(".gz") else name.encode())
        programs = [f"print({i})\n" for i in range(40)] + ["a.txt", "B.TXT", "c.md", "d.rst", "e.f90", "g.txt.gz"]
        self.assertNotIn("skipped", self.prepared(texts=programs))
        for name in ("1.png", "2.png", "3.tar.gz", "README", ".hidden.txt", ".git/config.txt", "4.parquet.gz", "5.json"):
            self.put(name)
        os.mkfifo(self.source / "fifo.txt")
        (self.source / "gone.txt").symlink_to("nowhere")
        (self.source / "again").symlink_to(self.source / "tree")
        said = self.prepared(texts=programs)
        self.assertIn(
            "skipped 2 .png, 1 .json, 1 .parquet.gz, 1 .tar.gz, 1 FIFO, 1 broken link, 1 hidden, 1 hidden folder, 2 of 2 other kinds; "
            "--suffix chooses other suffixes\n",
            said,
        )

    def test_the_document_lists_what_is_taken(self):
        sys.path.insert(0, str(PREPARE.parent))
        self.addCleanup(sys.path.remove, str(PREPARE.parent))
        from prepare import files

        rows = [
            line
            for line in (PREPARE.parents[1] / "docs/data.md").read_text().splitlines()
            if line.startswith("  | ") and " ." in line
        ]
        self.assertEqual(
            sorted(word for row in rows for word in row.split() if word.startswith(".")), sorted(files.DEFAULT_SUFFIXES)
        )

    def test_suffixes_are_chosen(self):
        for name in ("a.txt", "b.py", "c.log", "d.LOG.gz", "Makefile", "lines.jsonl"):
            self.put(
                name,
                gzip.compress(b"d")
                if name.endswith(".gz")
                else b'{"text": "line"}'
                if name == "lines.jsonl"
                else name.encode(),
            )
        self.assertIn(
            "skipped 1 .jsonl, 1 .py, 1 .txt, 1 without suffix", self.prepared("--suffix", "log", texts=["c.log", "d"])
        )
        self.prepared("--suffix", "none", "--suffix", ".py,.TXT", texts=["Makefile", "a.txt", "b.py"])
        self.assertNotIn("skipped", self.prepared("--suffix", "all", texts=["a.txt", "b.py", "c.log", "d", "Makefile", "line"]))
        self.assertIn(
            "in: has no file of text: skipped 1 .jsonl, ", run(self.source, "-o", self.folder / "no", "--suffix", ".c", code=4)
        )

    def test_what_is_no_regular_file_is_refused_and_not_waited_for(self):
        self.source.mkdir()
        os.mkfifo(self.source / "fifo")
        said = run(self.source / "fifo", "-o", self.out, code=4, timeout=60)
        self.assertIn("fifo: is a FIFO, but text is read from regular files, more than once", said)
        self.assertIn("/dev/zero: is a device", run("/dev/zero", "-o", self.out, code=4, timeout=60))

    def test_names_are_shown_without_their_control_characters(self):
        self.put("\x1b[31mred\n.txt", b"\xff")
        self.put("\udcff.txt", b"\xff")
        self.put("plain.\x1b]0;title\x07")
        out = self.folder / "\x1b[2Jout"
        said = [run(self.source, "-o", out, "--vocab", 257, code=4), run(self.source / "\x1b[7mno", "-o", out, code=4)]
        self.assertIn("\\x1b[31mred\\n.txt: is not UTF-8", said[0])
        self.assertIn("\\xff.txt: is not UTF-8", said[0])
        self.assertIn("\\x1b[7mno: there is no such file", said[1])
        self.put("good.txt")
        said += [run(self.source, "-o", out, "--vocab", 257, "--skip-bad")]
        self.assertIn("skipped 1 .\\x1b]0;title\\x07;", said[2])
        self.assertIn(f'files = ["{json.dumps(str(out))[1:-1]}', said[2])
        for text in said:
            self.assertTrue(all(c.isprintable() or c == "\n" for c in text), repr(text))


class Bad(Prepared):
    """Files that cannot be read."""

    def setUp(self):
        super().setUp()
        self.source = self.folder / "in"
        self.source.mkdir()
        (self.source / "good.txt").write_bytes(b"good")

    def test_all_are_named_at_once(self):
        for i in range(3):
            (self.source / f"latin{i}.txt").write_bytes(b"caf\xe9 %d" % i)
        (self.source / "odd.jsonl").write_bytes(b'{"text": "so far"}\n{oops')
        said = run(self.source, "-o", self.out, "--vocab", 257, code=4).splitlines()
        self.assertEqual(
            [line.split("/")[-1].split(":")[0] for line in said], ["latin0.txt", "latin1.txt", "latin2.txt", "odd.jsonl"]
        )
        self.assertIn("latin2.txt: is not UTF-8: byte 3 is 0xe9", said[2])
        self.assertTrue(said[3].endswith("(--skip-bad leaves out such files, --encoding NAME reads another encoding)"), said[3])
        self.assertFalse(self.out.exists())

    def test_they_may_be_left_out(self):
        for i in range(30):
            (self.source / f"{i:02}.txt").write_bytes(b"the begin" * 200000 + b"\xff")
        (self.source / "odd.jsonl").write_bytes(b'{"text": "so far"}\n{oops')
        said = run(self.source, "-o", self.out, "--vocab", 257, "--validation", 0, "--skip-bad")
        self.assertEqual(self.split(self.read("train")), ["good"])
        self.assertEqual(said.count("left out: "), 6)
        self.assertIn("04.txt: is not UTF-8: byte 1800000 is 0xff\nleft out: and 26 more files\n", said)
        self.assertIn("\n1 files, 1 documents, ", said)
        (self.source / "good.txt").unlink()
        self.assertIn("there is no text", run(self.source, "-o", self.folder / "no", "--vocab", 257, "--skip-bad", code=4))

    def test_another_encoding(self):
        text = "\u00c4rger, caf\u00e9, na\u00efve\n" * 60000
        (self.source / "good.txt").write_bytes(text.encode("latin-1"))
        (self.source / "lines.jsonl").write_text(json.dumps({"text": "\u4e2d"}, ensure_ascii=False), encoding="utf-8")
        run(self.source, "-o", self.out, "--vocab", 300, "--validation", 0, "--encoding", "Latin-1")
        self.assertEqual(self.split(self.read("train")), [text, "\u4e2d"])
        (self.source / "good.txt").write_bytes(text.encode("utf-16"))
        run(self.source, "-o", self.out, "--vocab", 300, "--validation", 0, "--encoding", "utf-16", "--force")
        self.assertEqual(self.split(self.read("train")), [text, "\u4e2d"])
        (self.source / "good.txt").write_bytes(text.encode("utf-16")[2:-1])
        said = run(self.source, "-o", self.out, "--vocab", 300, "--encoding", "utf-16", "--force", code=4)
        self.assertIn("good.txt: is not UTF-16: ", said)
        (self.source / "good.txt").write_bytes(b"half a pair: +2AA-")
        said = run(self.source / "good.txt", "-o", self.out, "--vocab", 300, "--encoding", "utf-7", "--force", code=4)
        self.assertIn("good.txt: its text has half a surrogate pair, \\ud800", said)
        for wrong in (
            ["--encoding", "no-such"],
            ["--encoding", "base64"],
            ["--choices", "--encoding", "latin-1"],
            ["--choices", "--skip-bad"],
        ):
            run(self.source, "-o", self.out, *wrong, code=2)


class Refusals(Prepared):
    def refused(self, content, *parts, name="bad.jsonl", options=()):
        path = self.folder / name
        path.write_bytes(content)
        said = run(path, "-o", self.out, "--vocab", 300, *options, code=4)
        for part in parts:
            self.assertIn(part, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertFalse(self.out.exists())

    def test_lines(self):
        good = b'{"text": "good"}\n'
        self.refused(good + b"\n{oops\n", "bad.jsonl:3: is not JSON")
        self.refused(good + b"[1]\n", "bad.jsonl:2: is not a JSON object but [1]")
        self.refused(good + b'{"body": "x"}\n', "bad.jsonl:2: has no text, only body", "--text-key")
        self.refused(b'{"text": 5}\n', "bad.jsonl:1: text is 5")
        self.refused(b'{"text": "\\ud800"}\n', "bad.jsonl:1: its text has half a surrogate pair")
        self.refused(good + b'{"text": "\xff"}\n', "bad.jsonl:2: is not UTF-8 at byte 10")
        self.refused(gzip.compress(good * 1000)[:-9], "bad.jsonl.gz: ", name="bad.jsonl.gz")

    def test_text_that_is_not_utf8(self):
        self.refused(b"ab\xffc", "bad.txt: is not UTF-8: byte 2 is 0xff", name="bad.txt")
        self.refused(b"a" * (2**20 - 1) + b"\xe2\x82", f"byte {2**20 - 1} is 0xe2", name="bad.txt")
        self.refused(b"a" * (2**20 - 1) + b"\xe2\x82(", f"byte {2**20 - 1} is 0xe2", name="bad.txt")

    def test_nothing_to_read(self):
        self.refused(b"", "bad.txt: there is no text", name="bad.txt")
        self.assertIn("absent: there is no such file", run(self.folder / "absent", "-o", self.out, code=4))
        (self.folder / "empty").mkdir()
        self.assertIn(
            "empty: has no file of text; --suffix chooses other suffixes", run(self.folder / "empty", "-o", self.out, code=4)
        )

    def test_tokenizers(self):
        self.refused(b"text", "--vocab 256", name="a.txt", options=("--vocab", 256))
        (self.folder / "no.json").write_text("{}")
        said = run(self.lines(), "-o", self.out, "--tokenizer", self.folder / "no.json", code=4)
        self.assertIn("no.json: ", said)
        run(self.lines(), "-o", self.folder / "other", "--vocab", 300)
        said = run(self.lines(), "-o", self.out, "--tokenizer", self.folder / "other", "--end-token", "<x>", code=4)
        self.assertIn("the tokenizer has no token '<x>'", said)

    def test_a_tokenizer_that_kzero_does_not_read(self):
        from tokenizers import normalizers

        self.changed_tokenizer().save(str(self.folder / "same.json"))
        self.changed_tokenizer(normalizers.Lowercase()).save(str(self.folder / "lower.json"))
        task = self.lines("task.jsonl", ["task"])
        task.write_text(json.dumps({"ctx": "A rank", "endings": ["sends.", "reads it."], "label": 1}))
        for path, options in ((self.lines(), ()), (task, ("--choices",))):
            given = (path, "-o", self.out, *options, "--tokenizer")
            said = run(*given, self.folder / "lower.json", code=4)
            self.assertIn(
                'lower.json: kzero generate would refuse it: normalizer is {"type": "Lowercase"}, but kzero reads only '
                'null or {"type": "NFC"} there',
                said,
            )
            self.assertEqual(list(self.out.glob("*")), [])
            self.assertIn("lower.json is not copied", run(*given, self.folder / "lower.json", "--training-only"))
            self.assertEqual([file.name for file in self.out.iterdir() if file.suffix == ".json"], [])
            run(*given, self.folder / "same.json", "--force")
            self.assertTrue((self.out / "tokenizer.json").exists())
            for file in self.out.iterdir():
                file.unlink()
        run(self.lines(), "-o", self.out, "--training-only", code=2)

    def test_tokenizers_that_fail(self):
        from tokenizers import Tokenizer, models, pre_tokenizers

        small = Tokenizer(models.WordLevel({END: 0, "a": 1}, unk_token="missing"))
        small.pre_tokenizer = pre_tokenizers.Sequence([])
        small.save(str(self.folder / "small.json"))
        given = (self.lines(texts=["a b"]), "-o", self.out, "--tokenizer", self.folder / "small.json", "--training-only")
        self.assertIn("the tokenizer cannot encode the text: ", run(*given, code=4))
        Tokenizer(models.BPE()).save(str(self.folder / "small.json"))
        self.assertIn("the tokenizer has none of ", run(*given, code=4))
        self.assertIn("the tokenizer has no token ", run(*given, "--end-token", "\udcff", code=4))

    def changed_tokenizer(self, normalizer=None):
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(TOKENIZERS / "gpt2/tokenizer.json"))
        if normalizer:
            tokenizer.normalizer = normalizer
        return tokenizer

    def test_command_lines(self):
        for arguments in (
            ["--validation", "0.6"],
            ["--shard-tokens", "3G"],
            ["--name", "a/b"],
            ["--vocab", "0"],
            ["--vocab", "300", "--tokenizer", "x"],
        ):
            run(self.lines(), "-o", self.out, *arguments, code=2)

    def test_a_second_run_needs_force_and_leaves_nothing_stale(self):
        path = self.lines()
        run(path, "-o", self.out, "--vocab", 300, "--shard-tokens", 1000)
        many = len(list(self.out.glob("text_train_*.bin")))
        self.assertGreater(many, 1)
        self.assertIn("is there already: --force", run(path, "-o", self.out, "--vocab", 300, code=4))
        run(path, "-o", self.out, "--vocab", 400, "--force")
        self.assertEqual(len(list(self.out.glob("text_train_*.bin"))), 1)

    def test_a_tokenizer_in_use_is_never_replaced(self):
        run(self.lines(), "-o", self.out, "--vocab", 300)
        said = run(self.lines(), "-o", self.out, "--vocab", 300, "--name", "more", "--force", code=4)
        self.assertIn("text_train_000000.bin was made with it", said)

    def test_folders_that_were_made_are_removed(self):
        inside = self.folder / "a/b/c"
        run(self.folder / "absent", "-o", inside, code=4)
        self.assertFalse((self.folder / "a").exists())
        (self.folder / "a").mkdir()
        bad = self.folder / "bad.jsonl"
        bad.write_text("{oops")
        run(bad, "-o", inside, code=4)
        self.assertEqual(list((self.folder / "a").iterdir()), [])
        run(bad, "-o", inside, "--choices", "--tokenizer", TOKENIZERS / "gpt2/tokenizer.json", code=4)
        self.assertEqual(list((self.folder / "a").iterdir()), [])

    def test_a_signal_leaves_nothing(self):
        path = self.lines(texts=[self.text] * 2000)
        for kind, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            command = [sys.executable, "-B", PREPARE, path, "-o", self.out, "--processes", "1"]
            running = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                preexec_fn=lambda kind=kind: signal.signal(kind, signal.SIG_DFL),  # a shell may have had it ignored
            )
            running.stdout.readline()  # the text is read, and the tokenizer is trained
            running.send_signal(kind)
            running.communicate()
            self.assertEqual(running.returncode, code)
            self.assertFalse(self.out.exists())

    def test_a_write_that_fails(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

        said = run(self.lines(), "-o", self.out, "--vocab", 300, code=4, preexec_fn=limit)
        self.assertIn("File too large", said)
        self.assertFalse(self.out.exists())

    def test_what_somebody_else_has_made_is_not_written_into(self):
        """Where others may write, they can make the file first and keep it open, or link another file to its name."""
        precious = self.folder / "precious"
        precious.write_text("precious")
        self.out.mkdir()
        partial = self.out / "text_train_000000.bin.partial"
        partial.hardlink_to(precious)
        said = run(self.lines(), "-o", self.out, "--vocab", 300, code=4)
        self.assertIn(f"{partial}: Is in the way, and has 2 names (hard links); remove it", said)
        self.assertEqual(list(self.out.iterdir()), [partial])
        partial.unlink()
        partial.symlink_to(precious)
        with (self.out / "tokenizer.json.partial").open("w") as kept_open:
            run(self.lines(), "-o", self.out, "--vocab", 300)
            kept_open.write("bad")
        self.assertEqual(precious.read_text(), "precious")
        json.loads((self.out / "tokenizer.json").read_text())
        if os.geteuid() == 0:
            partial.touch()
            os.chown(partial, 12345, 12345)
            said = run(self.lines(), "-o", self.out, "--vocab", 300, "--force", code=4)
            self.assertIn(f"{partial}: Is in the way, and belongs to user 12345; remove it", said)


class Reports(unittest.TestCase):
    """Progress without a terminal: a line every minute."""

    def setUp(self):
        sys.path.insert(0, str(PREPARE.parent))
        self.addCleanup(sys.path.remove, str(PREPARE.parent))

    def test_a_line_every_minute(self):
        from prepare import report

        error, now = io.StringIO(), [0.0]
        with mock.patch("sys.stderr", error), mock.patch("time.monotonic", lambda: now[0]):
            progress = report.Progress("encoding", 7_200_000_000)
            for _ in range(150):
                now[0] += 1
                progress.add(1_000_000)
            progress.end()
        self.assertEqual(
            error.getvalue(),
            "encoding: 0 %, 60 M characters, 1.0 M/s, 1:59:00 left\nencoding: 1 %, 120 M characters, 1.0 M/s, 1:58:00 left\n",
        )

    def test_work_that_shows_no_progress(self):
        from prepare import report

        error = io.StringIO()
        with mock.patch("sys.stderr", error), mock.patch("prepare.report.MINUTE", 0.01), report.Minutes("training"):
            while error.getvalue().count("training: 0 min\n") < 2:
                time.sleep(0.01)


class Rules(unittest.TestCase):
    """prepare/rules.py refuses what the program's own reader does, and names the same key."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        sys.path.insert(0, str(PREPARE.parent))
        self.addCleanup(sys.path.remove, str(PREPARE.parent))

    def refusal_here(self, rules):
        from prepare import rules as program

        try:
            program.check(rules)
        except program.InputError as error:
            return str(error)
        return ""

    def refusal_there(self, rules):
        file = self.folder / "tokenizer.json"
        file.write_text(json.dumps(rules))
        done = subprocess.run(
            [ENCODE_LINES, file, "words"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode != 0, done.stderr != "")
        return done.stderr.removeprefix(f"{file}: ").rstrip("\n")

    def test_each_change_is_judged_alike(self):
        accepted, refused = 0, 0
        few = (None, 1, "missing", "one more")
        for split, values in (("gpt2", few), ("llama3", VALUES), ("qwen2", few), ("llama2", VALUES), ("metaspace", VALUES)):
            name = "llama2" if split == "metaspace" else split
            rules = json.loads((TOKENIZERS / name / "tokenizer.json").read_text())
            if split == "metaspace":
                rules.update(normalizer=None, pre_tokenizer=METASPACE)
            if split == "gpt2":
                rules.update(OTHER_PARTS)
            self.assertEqual((self.refusal_here(rules), self.refusal_there(rules)), ("", ""))
            for change, path, value in changes(rules, values):
                with self.subTest(split=split, path=path, value=value):
                    here, there = self.refusal_here(change), self.refusal_there(change)
                    self.assertEqual(bool(here), bool(there), f"{here!r} {there!r}")
                    self.assertEqual(here.partition(" is ")[0], there.partition(" is ")[0])
                    accepted, refused = accepted + (not here), refused + bool(here)
        self.assertGreater(accepted, 50)
        self.assertGreater(refused, 200)

    def test_each_pattern_is_judged_alike(self):
        from prepare import patterns

        rules = json.loads((TOKENIZERS / "llama3" / "tokenizer.json").read_text())
        split = rules["pre_tokenizer"]["pretokenizers"][0]
        known = [patterns.GPT2, *patterns.ENDING_AT_LINES]
        # Parts of patterns in any order: more are refused than read.
        parts = [
            *"ab|()[]-^.*+?{},&$\\'",
            "(?:",
            "(?i:",
            "(?!",
            ")?",
            "[^",
            "{1,3}",
            "\\p{L}",
            "\\P{Lu}",
            "\\p{",
            "\\s",
            "\\n",
            "ss",
            "\u00e4",
        ]
        draw = random.Random(5)
        some = ["".join(draw.choices(parts, k=draw.randint(1, 7))) for _ in range(400)]
        outcomes = Counter()
        for pattern in [*known, *some]:
            with self.subTest(pattern=pattern):
                split["pattern"] = {"Regex": pattern}
                here, there = (refusal(rules).partition(", but ")[2] for refusal in (self.refusal_here, self.refusal_there))
                self.assertEqual(here, there)
                outcomes[bool(here), pattern in known] += 1
        self.assertEqual(outcomes[False, True], len(known))
        self.assertGreater(outcomes[False, False], 20)
        self.assertGreater(outcomes[True, False], 100)


METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False, "add_prefix_space": True}
OTHER_PARTS = {
    "truncation": {"direction": "Right", "max_length": 32, "strategy": "LongestFirst", "stride": 0},
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
    "pre_tokenizer": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "ByteLevel", "add_prefix_space": False}],
    },
    "post_processor": {
        "type": "Sequence",
        "processors": [
            {"type": "ByteLevel", "trim_offsets": False},
            {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
            },
        ],
    },
}
VALUES = (
    None,
    False,
    True,
    0,
    0.0,
    -1,
    2.5,
    2_000_001,
    "",
    "x",
    "BPE",
    "ByteLevel",
    "#version: 1",
    "a b",
    [],
    ["a", "b"],
    {},
    {"type": "NFC"},
    "missing",
    "one more",
)


def changes(rules, values):
    """(changed rules, where, new value): other values everywhere, and keys that are missing, or too many."""

    def places(value, path):
        yield path
        items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
        for key, inner in items if len(items) < 20 else [items[0], items[-1]]:
            yield from places(inner, (*path, key))

    for path in places(rules, ()):
        for value in values:
            changed = json.loads(json.dumps(rules))
            owner, holder = changed, [changed]
            for key in path[:-1]:
                owner = owner[key]
            here = owner[path[-1]] if path else changed
            if value == "missing" and path:
                owner.pop(path[-1])
            elif value == "one more" and isinstance(here, dict):
                here["another"] = 1
            elif value == "one more" and isinstance(here, list):
                here.append(here[-1] if here else "a")
            elif path:
                owner[path[-1]] = value
            else:
                holder = [value]
            yield holder[0], path, value


class Choices(Prepared):
    def test_the_layout(self):
        from tokenizers import Tokenizer

        run(self.lines(), "-o", self.out, "--vocab", 300)
        examples = [
            {"ctx": "A rank", "endings": ["sends.", "reads it.", "waits", "\u00e9"], "label": 2},
            {"ctx": "Bytes", "endings": ["a", "b", "c", "d"], "label": "0"},
        ]
        (self.folder / "task.jsonl").write_text("".join(json.dumps(example) + "\n" for example in examples))
        run(self.folder / "task.jsonl", "-o", self.out, "--choices")
        data = (self.out / "text_choices.bin").read_bytes()
        header, stream = struct.unpack("<256i", data[:1024]), list(array("H", data[1024:]))
        tokenizer = Tokenizer.from_file(str(self.out / "tokenizer.json"))
        longest = 0
        for index, example in enumerate(examples):
            numbers = [index, int(example["label"]), 4]
            for text in (example["ctx"], *(" " + ending for ending in example["endings"])):
                tokens = tokenizer.encode(text).ids
                numbers += [len(tokens), *tokens]
            longest = max(longest, 2 * len(numbers) + 4)
            self.assertEqual(stream[: len(numbers) + 2], [65535, 2 * len(numbers) + 4, *numbers])
            stream = stream[len(numbers) + 2 :]
        self.assertEqual(stream, [])
        self.assertEqual(header[:4], (20240522, 1, 2, longest))
        self.assertFalse(any(header[4:]))

    def examples(self, *values):
        """[(label, texts of the context and of each ending)] of the file that prepare.py makes of these objects."""
        from tokenizers import Tokenizer

        (self.folder / "task.json").write_text(json.dumps(values))
        run(self.folder / "task.json", "-o", self.out, "--choices", "--force")
        data = (self.out / "text_choices.bin").read_bytes()
        version, count, longest = struct.unpack("<4i", data[:16])[1:]
        numbers = list(array("I" if version == 2 else "H", data[1024:]))
        tokenizer = Tokenizer.from_file(str(self.out / "tokenizer.json"))
        found, width = [], 2 * version
        for index in range(count):
            size, label, texts = numbers[1] // width, numbers[3], []
            self.assertEqual((numbers[0], numbers[2]), (256**width - 1, index))
            at = 5
            while at < size:
                texts.append(tokenizer.decode(numbers[at + 1 : at + 1 + numbers[at]], skip_special_tokens=False))
                at += 1 + numbers[at]
            self.assertEqual((at, len(texts) - 1), (size, numbers[4]))
            self.assertLessEqual(numbers[1], longest)
            found.append((label, texts))
            numbers = numbers[size:]
        self.assertEqual(numbers, [])
        return version, found

    def test_an_ending_has_the_tokens_that_it_has_after_its_context(self):
        from tokenizers import Tokenizer

        path = TOKENIZERS / "llama2/tokenizer.json"  # it puts a space before a text
        tokenizer, task = Tokenizer.from_file(str(path)), self.folder / "task.jsonl"
        task.write_text(json.dumps({"ctx": "A rank", "endings": ["sends.", "reads the memory."], "label": 1}))
        run(task, "-o", self.out, "--choices", "--tokenizer", path)
        numbers, at, found = list(array("H", (self.out / "text_choices.bin").read_bytes()[1024:])), 5, []
        while at < len(numbers):
            found.append(numbers[at + 1 : at + 1 + numbers[at]])
            at += 1 + numbers[at]
        context, *endings = found
        for ending, text in zip(endings, ("sends.", "reads the memory."), strict=True):
            self.assertEqual(context + ending, tokenizer.encode(f"A rank {text}").ids)
        task.write_text(json.dumps({"ctx": "Thou ", "endings": ["sands", "x"], "label": 1}))
        said = run(task, "-o", self.out, "--choices", "--tokenizer", path, "--force", code=4)
        self.assertIn("the context's last token differs before the ending 'sands'", said)

    def test_the_forms_of_published_tasks(self):
        run(self.lines(), "-o", self.out, "--vocab", 300)
        version, found = self.examples(
            {"ind": 4, "ctx": "A rank", "endings": ["waits.", "sends."], "label": "1", "source_id": "x"},
            {
                "id": "M",
                "question": "Which?",
                "choices": {"text": ["heat", "cold", "ice"], "label": ["A", "B", "C"]},
                "answerKey": "C",
            },
            {"id": "N", "question": "Which?", "choices": {"text": ["heat", "cold"], "label": ["1", "2"]}, "answerKey": "1"},
            {"question": " What? ", "subject": "high_school_physics", "choices": ["a", "b", "c", "d"], "answer": 3},
            {"question": "What?", "choices": ["a", "b"], "answer": "B"},
            {"goal": "Wait", "sol1": "Stand still", "sol2": "Run", "label": 0},
        )
        intro = "The following are multiple choice questions (with answers)"
        question = " about high school physics.\n\nWhat?\nA. a\nB. b\nC. c\nD. d\nAnswer:"
        self.assertEqual(version, 1)
        self.assertEqual(
            found,
            [
                (1, ["A rank", " waits.", " sends."]),
                (2, ["Question: Which?\nAnswer:", " heat", " cold", " ice"]),
                (0, ["Question: Which?\nAnswer:", " heat", " cold"]),
                (3, [intro + question, " A", " B", " C", " D"]),
                (1, [f"{intro}.\n\nWhat?\nA. a\nB. b\nAnswer:", " A", " B"]),
                (0, ["Question: Wait\nAnswer:", " Stand still", " Run"]),
            ],
        )

    def test_no_space_where_none_is_written(self):
        run(self.lines(), "-o", self.out, "--vocab", 300)
        cases = (
            ("\u6c34\u662f", "\u51b7\u7684", ""),
            ("The water is", "\u51b7\u7684", ""),
            ("\u7b54\u6848\uff1a", "A", ""),
            ("\u6c34\u662f", "cold", ""),
            ("\u304a\u6e6f", "\u306f\u71b1\u3044", ""),
            ("\u0e19\u0e49\u0e33", "\u0e23\u0e49\u0e2d\u0e19", ""),
            ("\ubb3c\uc740", "\ucc28\uac11\ub2e4", " "),
            ("\u0432\u043e\u0434\u0430", "\u0442\u0451\u043f\u043b\u0430\u044f", " "),
            ("line\n", "next", ""),
            ("word", " spaced", ""),
            ("word", "plain", " "),
        )
        _, found = self.examples(
            *({"ctx": context, "endings": [ending, ending + "b"], "label": 0} for context, ending, _ in cases)
        )
        self.assertEqual(found, [(0, [context, space + ending, space + ending + "b"]) for context, ending, space in cases])

    def test_what_does_not_fit_into_16_bits_takes_32(self):
        from tokenizers import Tokenizer

        run(self.lines(), "-o", self.out, "--vocab", 300)
        long = {"ctx": "\x01" * 40000, "endings": ["a", "b"], "label": 0}
        self.assertEqual(self.examples(long), (2, [(0, ["\x01" * 40000, " a", " b"])]))
        large = Tokenizer.from_file(str(self.out / "tokenizer.json"))
        large.add_tokens([f"<|{i}|>" for i in range(70000)])
        large.save(str(self.folder / "large.json"))
        self.out = self.folder / "large"
        self.out.mkdir()
        (self.out / "tokenizer.json").write_bytes((self.folder / "large.json").read_bytes())
        wide = {"ctx": "a<|65235|>", "endings": ["<|69999|>", "b"], "label": 1}
        self.assertEqual(self.examples(wide), (2, [(1, ["a<|65235|>", " <|69999|>", " b"])]))
        self.assertEqual(self.examples({**wide, "ctx": "a<|65234|>", "endings": ["c", "b"]})[0], 1)

    def test_what_is_refused(self):
        run(self.lines(), "-o", self.out, "--vocab", 300)
        for line, said in (
            ('{"endings": ["a", "b"], "label": 0}', "task.jsonl:1: has neither ctx and endings (HellaSwag), nor question and "),
            ('{"ctx": "", "endings": ["a", "b"], "label": 0}', "task.jsonl:1: the context has to be a text"),
            ('{"ctx": "a", "endings": ["a"], "label": 0}', "task.jsonl:1: the endings have to be a list"),
            ('{"ctx": "a", "endings": ["a", ""], "label": 0}', "task.jsonl:1: the endings have to be a list"),
            (
                '{"ctx": "a", "endings": ["a", "b"], "label": 2}',
                "task.jsonl:1: the label has to be the number of an ending, from 0 to 1",
            ),
            ('{"ctx": "a", "endings": ["a", "b"], "label": ""}', "task.jsonl:1: the label"),
            ('{"question": "a", "choices": {"text": ["a"]}}', "task.jsonl:1: choices has to have two lists of one length"),
            (
                '{"question": "a", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"}',
                'task.jsonl:1: answerKey is "C", but the labels are ["A", "B"]',
            ),
            ('{"question": 5, "choices": ["a", "b"], "answer": 0}', "task.jsonl:1: question is 5, but a text is needed there"),
            ('{"question": "a", "choices": ["a", 5], "answer": 0}', "task.jsonl:1: choices has to be a list of up to 26 texts"),
            ('{"question": "a", "choices": ["a", "b"], "answer": "E"}', "task.jsonl:1: the label has to be"),
            ('{"goal": "a", "sol1": "b", "label": 0}', "task.jsonl:1: the endings have to be a list"),
            ("", "there is no example"),
        ):
            (self.folder / "task.jsonl").write_text(line)
            self.assertIn(said, run(self.folder / "task.jsonl", "-o", self.out, "--choices", code=4))
        self.assertIn(
            "tokenizer.json: there is no such file", run(self.lines(), "-o", self.folder / "new", "--choices", code=4)
        )


class WithoutTheLibrary(unittest.TestCase):
    def test_an_old_jinja_is_refused(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        command = [sys.executable, "-B", PREPARE, folder / "a.jsonl", "-o", folder / "out", "--chat"]
        for version, said in (("3.1.5", "has jinja2 3.1.5: "), ("3.2", "a.jsonl: there is no such file")):
            (folder / f"{version}/jinja2-{version}.dist-info").mkdir(parents=True)
            (folder / f"{version}/jinja2-{version}.dist-info/METADATA").write_text(f"Name: jinja2\nVersion: {version}\n")
            others = {"PYTHONPATH": str(folder / version), "KZERO_TREE_PYTHON": "1"}
            done = subprocess.run(command, env={**os.environ, **others}, capture_output=True, text=True, check=False)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.returncode, 1 if version == "3.1.5" else 4)

    def test_the_python_of_the_tree_takes_over(self):
        tree = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (tree / "input").mkdir()
        shutil.copy(PREPARE, tree / "input")
        shutil.copytree(PREPARE.with_suffix(""), tree / "input/prepare")
        (tree / "a.txt").write_text("some text")
        command = [sys.executable, "-B", "-S", tree / "input/prepare.py", tree / "a.txt", "-o", tree / "out", "--vocab", "257"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertIn("has no tokenizers: cmake/debian.sh installs it", done.stderr)
        self.assertEqual(done.returncode, 1)
        python = tree / ".deps/venv/bin/python3"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        subprocess.run(command, capture_output=True, check=True)
        self.assertTrue((tree / "out/text_train_000000.bin").exists())


if __name__ == "__main__":
    if importlib.util.find_spec("tokenizers") is None:
        print(f"{sys.executable} has no tokenizers: bash cmake/debian.sh installs it in .deps/venv")
        sys.exit(77)
    unittest.main()
