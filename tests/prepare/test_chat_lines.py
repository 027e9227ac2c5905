"""prepare.py --chat from outside: lines that are refused, long conversations, the files that are written.

Usage:

    PREPARE=input/prepare.py python3 test_chat_lines.py
"""

import gzip
import importlib.util
import json
import re
import resource
import subprocess
import sys
import unittest

import chat_templates as templates
from chat_case import PREPARE, ChatCase, chat, read_documents, read_weights, turn

QUESTIONS = PREPARE.parent / "questions.jsonl"
GOOD = chat("hello", "hello there")


class Lines(ChatCase):
    def setUp(self):
        super().setUp()
        self.template(templates.CHATML)

    def test_each_bad_line_is_named(self):
        cases = (
            (b"{oops", "is not JSON: "),
            (b"[1]", "is not a JSON object but [1]"),
            (b'{"messages": "\xff"}', "is not UTF-8 at byte 14 of the line"),
            (b'{"messages": ' + b"[" * 100000, "nests too deep"),
            (
                {"text": "a", "id": 1},
                "has none of: messages, conversations, prompt and completion, instruction and output; only [\"text\", \"id\"]",
            ),
            (
                {"prompt": "a", "completion": None},
                'has none of: messages, conversations, prompt and completion, instruction and',
            ),
            ({**GOOD, "completion": "a"}, "has messages and completion, but one of them is needed"),
            ({"messages": []}, "messages is empty"),
            ({"messages": "hello"}, 'messages is "hello", but a list of messages is needed there'),
            ({"messages": ["hello"]}, 'messages[0] is "hello", but an object'),
            ({"messages": [turn("user", "hello")]}, "no turn of the assistant: nothing can be learned"),
            ({"prompt": [turn("assistant", "a")], "completion": [turn("user", "b")]}, "no turn of the assistant in completion"),
            (
                {"messages": [turn("human", "a"), turn("gpt", "b")]},
                'messages[0].role is "human"; known are system, developer, user',
            ),
            ({"messages": [turn("user", "a"), {"role": ["assistant"]}]}, 'messages[1].role is ["assistant"]'),
            ({"messages": [turn("user", "a"), turn("assistant", "b", weight=0)]}, 'messages[1] has the unknown key "weight"'),
            ({"messages": [turn("user", "a"), turn("assistant", None)]}, "messages[1].content is null"),
            ({"messages": [turn("user", [{"type": "text"}])]}, "messages[0].content[0].text is null, but a text is needed"),
            ({"messages": [turn("user", "a"), turn("assistant", "")]}, "messages[1].content is empty"),
            ({"messages": [turn("user", "a", tool_calls=[1])]}, "messages[0].tool_calls is [1], but"),
            ({"messages": [turn("assistant", "a")]}, "the assistant speaks first"),
            ({"messages": [turn("user", "a", name=["b"])]}, 'messages[0].name is ["b"], but a text is needed there'),
            ({**GOOD, "tools": {"a": 1}}, 'tools is {"a": 1}, but a list of objects'),
            ({"prompt": "a", "completion": [turn("assistant", "b")]}, "completion is [{"),
            ({"prompt": "", "completion": "b"}, 'prompt is "", but'),
            ({"prompt": "a", "completion": ""}, 'completion is "", but'),
            (chat("hello\ud800", "hello"), "its text has half a surrogate pair, \\ud800"),
            (chat("a<|im_end|>\n<|im_start|>system\nb", "c"), "its text contains the special token <|im_end|>, which only the"),
            (chat("a", "b<|endoftext|>"), "its text contains the special token <|endoftext|>"),
            ({"prompt": "<s>a", "completion": "b"}, "its text contains the special token <s>"),
            ({**GOOD, "tools": [{"x": {"<|eot_id|>": 1}}]}, "its text contains the special token <|eot_id|>"),
        )
        said = []
        for begin in range(0, len(cases), 5):
            said += self.refused(GOOD, *(line for line, _ in cases[begin : begin + 5])).splitlines()
        self.assertEqual(len(said), len(cases))
        for number, ((_, text), line) in enumerate(zip(cases, said)):
            with self.subTest(text):
                self.assertTrue(line.startswith(f"prepare.py: {self.folder}/chats.jsonl:{number % 5 + 2}: {text}"), line)
        self.assertTrue(said[4].endswith("(--skip-bad leaves out such lines)"), said[4])

    def test_they_may_be_left_out(self):
        path = self.lines(*[b"{oops"] * 30, GOOD, chat("a", "b<s>"), GOOD, {"messages": [turn("assistant", "a")]})
        said = self.run_it(path, "--skip-bad")
        self.assertEqual(said.count("left out: "), 6)
        self.assertIn("5: is not JSON: ", said)
        self.assertIn("left out: and 27 more lines\n", said)
        self.assertIn("\n2 conversations, 2 documents, ", said)
        self.assertIn("\n32 lines are left out\n", said)
        self.assertEqual(len(read_documents(self.out / "text_train.docs")), 2)
        self.assertIn("no document is left", self.run_it(self.lines(b"{oops"), "--skip-bad", code=4))
        self.assertIn("no document is left", self.run_it(self.lines(), code=4))

    def test_the_marks_of_generation_blocks_within_a_text(self):
        self.documents(chat("a\ufdd0b", "c\ufdd1d"))
        self.template(templates.GENERATION)
        self.out = self.folder / "other"
        self.assertIn("chats.jsonl:1: has the character U+FDD0 or U+FDD1", self.refused(chat("a\ufdd0b", "c")))

    def test_generation_blocks_without_text(self):
        said = "chats.jsonl:2: the chat template leaves out or changes text of message 2, of the assistant"
        self.template(
            templates.GENERATION.replace("message.content + '<|im", "(message.content if loop.index != 2 else '') + '<|im")
        )
        self.assertIn("message 2", self.refused(GOOD))
        self.template(
            templates.GENERATION.replace("{%- generation %}", "{%- if message.content == 'b' %}b{% endif %}{%- generation %}")
        )
        self.assertEqual(self.documents(GOOD)[0][1], ["hello there<|im_end|>"])
        self.template(templates.GENERATION.replace("{{- message.content +", "{{- message.content | replace('bad', '') +"))
        self.out = self.folder / "other"
        self.assertIn(said, self.refused(GOOD, chat("a", "bad")))

    def test_keys_that_are_not_used_are_named(self):
        said = self.run_it(self.lines({**GOOD, "prompt": "hello", "id": 7}, {**GOOD, "id": 8}))
        self.assertIn("keys of lines that are not used: id (2), prompt (1)\n", said)
        self.assertNotIn("not used", self.run_it(self.lines(GOOD)))

    def test_files_that_are_not_read(self):
        bad = self.folder / "chats.txt"
        bad.write_text("hello")
        self.assertIn("chats.txt: objects are read from files that end in .jsonl, .json, .csv", self.run_it(bad, code=4))
        path = self.folder / "chats.jsonl.gz"
        path.write_bytes(gzip.compress(json.dumps(GOOD).encode() * 100)[:-9])
        self.assertIn("chats.jsonl.gz: ", self.run_it(path, code=4))
        self.assertIn("absent.jsonl: there is no such file", self.run_it(self.folder / "absent.jsonl", code=4))

    def test_command_lines(self):
        path = self.lines(GOOD)
        for options in (
            ("--choices",),
            ("--text-key", "a"),
            ("--encoding", "latin-1"),
            ("--long", "cut"),
            ("--long", "no"),
            ("--sequence", "0"),
            ("--date", "today"),
        ):
            self.run_it(path, *options, code=2)
        for options in (("--each-turn",), ("--sequence", "8"), ("--template", "x"), ("--date", "2026-01-01")):
            command = [sys.executable, "-B", PREPARE, path, "-o", self.out, *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{options[0]} is for --chat", done.stderr)


class Files(ChatCase):
    def setUp(self):
        super().setUp()
        self.template(templates.CHATML)

    def lengths(self, part="train"):
        return [len(tokens) for tokens, _ in read_documents(self.out / f"text_{part}.docs")]

    def test_long_conversations(self):
        values = [GOOD, chat("hello", "hello there" * 20), chat("hello there" * 20, "hello"), GOOD]
        self.run_it(self.lines(*values))
        short, long_answer, long_question, _ = self.lengths()
        tokens = read_documents(self.out / "text_train.docs")[1]
        self.assertLess(short, 30)
        path = self.lines(*values)
        out, self.out = self.out, self.folder / "none"
        said = self.refused(*values, options=("--sequence", 30)).splitlines()
        self.assertIn(f"chats.jsonl:2: has {long_answer} tokens, more than --sequence 30 (--long cut or drop)", said[0])
        self.assertIn(f"chats.jsonl:3: has {long_question} tokens", said[1])
        self.out = out
        self.run_it(path, "--sequence", max(long_answer, long_question))
        self.assertEqual(self.lengths(), [short, long_answer, long_question, short])
        self.assertIn("\nlonger than 30 tokens: 1 cut, 1 dropped\n", self.run_it(path, "--sequence", 30, "--long", "cut"))
        cut = read_documents(self.out / "text_train.docs")
        self.assertEqual([len(one) for one, _ in cut], [short, 30, short])
        self.assertEqual(cut[1], (tokens[0][:30], tokens[1][:30]))
        said = self.run_it(path, "--sequence", 30, "--long", "drop")
        self.assertIn("\nlonger than 30 tokens: 0 cut, 2 dropped\n", said)
        self.assertEqual(self.lengths(), [short, short])

    def test_what_ends_an_answer_is_written_next_to_the_tokenizer(self):
        end, answer_end = (self.tokenizer.token_to_id(text) for text in ("<|endoftext|>", "<|im_end|>"))
        found = lambda: json.loads((self.out / "generation_config.json").read_text())
        self.run_it(self.lines(GOOD))
        self.assertEqual(found(), {"eos_token_id": [answer_end, end]})
        (self.model / "config.json").write_text(json.dumps({"eos_token_id": 7}))
        self.run_it(self.lines(GOOD))
        self.assertEqual(found(), {"eos_token_id": [answer_end, 7, end]})
        (self.model / "generation_config.json").write_text(json.dumps({"eos_token_id": [end, answer_end], "top_p": 0.9}))
        self.run_it(self.lines(GOOD))
        self.assertEqual(found(), {"eos_token_id": [answer_end, end], "top_p": 0.9})
        self.run_it(self.lines({"prompt": "a", "completion": "b"}))
        self.assertEqual(found(), {"eos_token_id": [end, answer_end], "top_p": 0.9})
        (self.model / "generation_config.json").write_text(json.dumps({"eos_token_id": end}))
        self.run_it(self.lines(GOOD))
        self.run_it(self.lines({"prompt": "a", "completion": "b"}), "--name", "more")
        self.assertEqual(found(), {"eos_token_id": [end, answer_end]}, "of the chats that are there")
        (self.out / "more_train.docs").unlink()
        self.template(
            "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
        )
        (self.model / "generation_config.json").write_text(json.dumps({"eos_token_id": None}))
        (self.model / "config.json").unlink()
        self.run_it(self.lines(GOOD))
        self.assertEqual(found(), {"eos_token_id": end}, "no special token ends an answer")
        (self.model / "generation_config.json").write_text(json.dumps({"eos_token_id": "x"}))
        self.assertIn('generation_config.json: eos_token_id is "x", but', self.run_it(self.lines(GOOD), code=4))

    def test_the_summary_counts(self):
        said = self.run_it(self.lines(GOOD, {"prompt": "a", "completion": "b"}))
        documents = read_documents(self.out / "text_train.docs")
        tokens, targets = sum(len(one) for one, _ in documents), sum(sum(flags) for _, flags in documents)
        share = f"{100 * targets / tokens:.1f}"
        self.assertIn(
            f"2 conversations, 2 documents, {tokens} tokens, {share} % of them targets, longest {self.lengths()[0]}\n", said
        )

    def test_other_processes_give_the_same_bytes(self):
        path = self.lines(*[chat("hello " * (i % 400), f"a rank {i}", "there", "a shard") for i in range(2700)])
        self.assertGreater(path.stat().st_size, 3 << 20)
        for count in (1, 3):
            self.out = self.folder / str(count)
            self.run_it(path, "--processes", count, "--validation", 0.01)
        for name in ("text_train.docs", "text_val.docs"):
            self.assertEqual((self.folder / "1" / name).read_bytes(), (self.folder / "3" / name).read_bytes())

    def test_what_is_there_is_replaced_only_with_force(self):
        path = self.lines(GOOD)
        self.run_it(path)
        command = [sys.executable, "-B", PREPARE, path, "-o", self.out, "--chat", "--validation", "0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # with the tokenizer and template of -o
        self.assertEqual(done.returncode, 4)
        self.assertIn("text_train.docs: is there already: --force replaces it", done.stderr)
        subprocess.run([*command, "--name", "more"], capture_output=True, check=True)
        self.assertEqual((self.out / "text_train.docs").read_bytes(), (self.out / "more_train.docs").read_bytes())
        (self.model / "tokenizer.json").write_text(
            (self.model / "tokenizer.json").read_text().replace('"<think>"', '"<thing>"')
        )
        self.assertIn("more_train.docs was made with it", self.run_it(path, code=4))

    def test_a_write_that_fails(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        self.assertIn("File too large", self.run_it(self.lines(GOOD), code=4, preexec_fn=limit))
        self.assertFalse(self.out.exists())


class Questions(ChatCase):
    """input/questions.jsonl, the example of data for tuning."""

    def test_all_of_them_are_used(self):
        self.template(templates.CHATML)
        self.run_it(QUESTIONS, "--sequence", 512)
        self.assertEqual(len(read_documents(self.out / "text_train.docs")), 200)
        self.assertEqual(len(set(QUESTIONS.read_text().splitlines())), 200)

    def test_the_keys_that_they_name_exist(self):
        deck = (PREPARE.parents[1] / "docs/deck.md").read_text()
        table, keys = "", set()
        for line in deck.splitlines():
            if heading := re.fullmatch(r"## \[+([a-z.]+)\]+", line):
                table = heading.group(1)
                keys.add(table)
            elif key := re.match(r"\| `(\w+)`", line):
                keys.add(f"{table}.{key.group(1)}")
        tables = "|".join({key.partition(".")[0] for key in keys})
        named = set(re.findall(rf"`((?:{tables})\.[a-z_]+)", QUESTIONS.read_text()))
        self.assertGreater(len(named), 60)
        self.assertEqual(named - keys, set())


class Weights(ChatCase):
    """Lines with a weight."""

    KEY = ("--weight-key", "advantage")

    def setUp(self):
        super().setUp()
        self.template(templates.CHATML)

    def test_documents_have_the_weights_of_their_lines(self):
        lines = [{**chat(f"hello {i}", "hello there"), "advantage": weight} for i, weight in enumerate((0.1, -2, 0, 1e3))]
        said = self.run_it(self.lines(*lines), *self.KEY)
        self.assertIn("weights from -2 to 1000, 249.525 on average", said)
        self.assertNotIn("not used", said)
        out = self.out / "text_train.docs"
        self.assertEqual(read_weights(out), [0.10000000149011612, -2, 0, 1000])
        weighted = read_documents(out)
        without = self.run_it(self.lines(*lines))
        self.assertIn("keys of lines that are not used: advantage (4)", without)
        self.assertEqual(read_documents(out), weighted)
        self.assertEqual(out.read_bytes()[12:16], b"\0\0\0\0")

    def test_every_form_and_each_turn_has_them(self):
        values = (
            {"prompt": "what is a rank?", "completion": " A shard.", "advantage": 2},
            {"prompt": [turn("user", "hello")], "completion": [turn("assistant", "hello")], "advantage": 3},
            {"instruction": "hello", "output": "hello", "advantage": 4.5},
            {**chat("hello", "a", "hello", "b"), "advantage": 0.25},
        )
        self.run_it(self.lines(*values), "--each-turn", *self.KEY)
        self.assertEqual(read_weights(self.out / "text_train.docs"), [2, 3, 4.5, 0.25, 0.25])

    def test_validation_is_drawn_with_them(self):
        lines = [{**chat(f"hello {i}", "hello there"), "advantage": i} for i in range(40)]
        self.run_it(self.lines(*lines), "--validation", "0.3", *self.KEY)
        of_sides = []
        for side in ("train", "val"):
            path = self.out / f"text_{side}.docs"
            texts = [self.text(tokens) for tokens, _ in read_documents(path)]
            numbers = [int(text.split("hello ")[1].split("<")[0]) for text in texts]
            self.assertEqual(read_weights(path), numbers)
            of_sides.append(numbers)
        self.assertEqual(sorted(of_sides[0] + of_sides[1]), list(range(40)))
        self.assertGreater(len(of_sides[1]), 5)

    def test_a_table_has_them_as_text(self):
        path = self.folder / "chats.csv"
        path.write_text("prompt,completion,advantage\nhello, hello,-0.5\nhello, there,2\n")
        self.run_it(path, *self.KEY)
        self.assertEqual(read_weights(self.out / "text_train.docs"), [-0.5, 2])

    def test_bad_weights_are_named(self):
        bad = ('"much"', "true", "[1]", "NaN", "-Infinity", "1e39", '"inf"')
        good = json.dumps({**GOOD, "advantage": 1})
        lines = [good] + [good.replace('"advantage": 1', f'"advantage": {value}') for value in bad]
        for begin in range(1, len(lines), 4):
            said = self.run_it(self.lines(*(line.encode() for line in lines[begin : begin + 4])), *self.KEY, code=4)
            for number, value in enumerate(bad[begin - 1 : begin + 3], 1):
                found = "1e+39" if value == "1e39" else value
                text = f"chats.jsonl:{number}: advantage is {found}, but a weight is a finite number in float32, such as 0.5"
                self.assertIn(text, said)
        self.assertIn(
            "chats.jsonl:1: has no advantage, the weight that --weight-key names; only", self.refused(GOOD, options=self.KEY)
        )
        self.assertIn("has no advantage", self.refused({**GOOD, "advantage": None}, options=self.KEY))
        self.assertIn("--weight-key is for --chat", self.run_text("--weight-key", "a"))

    def run_text(self, *options):
        command = [sys.executable, "-B", PREPARE, "corpus", "-o", self.out, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr


if __name__ == "__main__":
    if missing := [name for name in ("tokenizers", "jinja2") if importlib.util.find_spec(name) is None]:
        print(f"{sys.executable} has no {' and '.join(missing)}: bash cmake/debian.sh installs them in .deps/venv")
        sys.exit(77)
    unittest.main()
