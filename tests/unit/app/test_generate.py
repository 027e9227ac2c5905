"""kzero generate from outside: prompts of every kind, the same text on any ranks, tokenizers, mistakes."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import termios
import time
import unittest
from pathlib import Path

from launch import KZERO, LAUNCHER, PATIENCE, LaunchTest, ranks_of

TOKENIZER = Path(__file__).parents[2] / "data/tokenizer/gpt2/tokenizer.json"
PROMPTS = ("12 bo", "b", "of beer", "9 ", "tles")


FEW = ("--top-k", "4")  # of a model that has seen little text: printable ones


class GenerateTest(LaunchTest):
    overrides = ("train.steps=40",)

    def setUp(self):
        super().setUp()
        self.expect(self.train(*self.overrides), 0)

    def generate(self, *arguments, ranks=None, text="", source="saved"):
        return subprocess.run(
            self.command(["generate", source, *arguments], ranks),
            cwd=self.folder,
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def lines(self, *arguments, **options):
        """The output of --json."""
        result = self.expect(self.generate("--json", *arguments, **options), 0)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def prompts_file(self):
        (self.folder / "prompts.jsonl").write_text("".join(json.dumps({"prompt": p}) + "\n" for p in PROMPTS))
        return "prompts.jsonl"


class Library(GenerateTest):
    def test_the_example_prints_the_token_that_the_program_takes(self):
        example = str(Path(KZERO).with_name("next_token"))
        prompt = PROMPTS[0]
        (line,) = self.lines("--prompt", prompt, "--temperature", "0")

        def next_token(*tokens, ranks=1):
            command = [*LAUNCHER, str(ranks), example, "saved", *tokens]
            return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)

        tokens = [str(byte) for byte in prompt.encode()]
        for ranks in (1, 3):
            found = next_token(*tokens, ranks=ranks)
            self.assertEqual((found.stdout, found.returncode), (f"{line['tokens'][0]}\n", 0), found.stderr)
        refused = next_token("256")
        self.assertEqual(refused.returncode, 2)
        self.assertIn('"256" is not a token: tokens are numbers from 0 to 255', refused.stderr)


class Texts(GenerateTest):
    def test_prompts_of_every_kind_are_continued_alike(self):
        file = self.prompts_file()
        expected = self.lines("--prompts", file, *FEW)
        self.assertEqual([line["prompt"] for line in expected], list(PROMPTS))
        for line in expected:
            self.assertEqual(set(line), {"prompt", "text", "tokens", "reason"})
            self.assertEqual(len(line["tokens"]), 11 - len(line["prompt"]), "the model's sequence is full")
            self.assertEqual(line["text"], bytes(line["tokens"]).decode(errors="replace"))
            self.assertEqual(line["reason"], "length")
        self.assertEqual(self.lines("--prompts", "-", *FEW, text=(self.folder / file).read_text()), expected)
        self.assertEqual(self.lines(*(a for p in PROMPTS for a in ("--prompt", p)), *FEW), expected)
        first = self.expect(self.generate(*FEW, text=PROMPTS[0] + "\n"), 0, "note        read 5 tokens", "parameters")
        self.assertEqual(first.stdout, expected[0]["text"] + "\n", "text alone")
        blocks = self.expect(self.generate("--prompts", file, *FEW), 0).stdout
        self.assertEqual(
            blocks, "".join(f"--- prompt {i + 1}: {line['prompt']}\n{line['text']}\n" for i, line in enumerate(expected))
        )

    def test_neither_ranks_nor_batches_nor_the_cache_show(self):
        file = self.prompts_file()
        for sampling in (
            ("--temperature", "0"),
            ("--temperature", "0.8", "--top-k", "50", "--top-p", "0.9", "--min-p", "0.01"),
        ):
            arguments = ("--prompts", file, *sampling)
            expected = self.lines(*arguments)
            self.assertEqual(self.lines(*arguments, "--batch", 2), expected)
            self.assertEqual(self.lines(*arguments, "--no-cache"), expected)
            self.assertEqual(self.lines(*arguments, "--tensor", 1, ranks=2), expected, "two data ranks")
            self.assertEqual(self.lines(*arguments, ranks=3), expected, "three tensor ranks")
        self.assertNotEqual(self.lines("--prompts", file, "--seed", 2), self.lines("--prompts", file))

    def test_every_seed_of_64_bits_is_its_own_draw(self):
        drawn = {seed: self.lines("--prompt", "1", "--seed", seed)[0]["tokens"] for seed in (1, 8, 10, 2**63 + 1, 2**64 - 1)}
        self.assertEqual(len({tuple(tokens) for tokens in drawn.values()}), len(drawn))
        for same, seed in (("010", 10), ("1e1", 10), ("8.0", 8)):
            self.assertEqual(self.lines("--prompt", "1", "--seed", same)[0]["tokens"], drawn[seed])

    def test_stop_texts_and_numbers_of_tokens(self):
        (whole,) = self.lines("--prompt", "1", "--seed", 5, *FEW)
        stop = whole["text"][3:5]
        (line,) = self.lines("--prompt", "1", "--seed", 5, *FEW, "--stop", "no such text", "--stop", stop)
        self.assertEqual((line["text"], line["reason"]), (whole["text"][: whole["text"].index(stop)], "stop"))
        (line,) = self.lines("--prompt", "1", "--seed", 5, *FEW, "--max-tokens", 4)
        self.assertEqual(line["tokens"], whole["tokens"][:4])
        text = '{"prompt": "1", "max_tokens": 3}\n\n{"prompt": "1"}\n'
        self.assertEqual([len(line["tokens"]) for line in self.lines("--prompts", "-", "--max-tokens", 5, text=text)], [3, 5])

    def test_other_precisions_and_bytes_that_are_no_text(self):
        for precision in ("fp32", "bf16", "fp16"):
            result = self.expect(self.generate("--prompt", "1", "--precision", precision), 0, f" in {precision}, ")
        result = subprocess.run(
            self.command(["generate", "saved", "--json"], None),
            cwd=self.folder,
            input=b"\xff\xfe",
            capture_output=True,
            timeout=PATIENCE,
        )
        self.assertEqual((result.returncode, json.loads(result.stdout)["prompt"]), (0, "\ufffd\ufffd"))


class Inputs(GenerateTest):
    def test_idle_threads_spin_for_a_short_time(self):
        def spins(command, **variables):
            kept = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
            shown = subprocess.run(  # libgomp prints its settings when it is loaded
                self.command([command, "--help"], None),
                env=kept | variables | {"OMP_DISPLAY_ENV": "verbose"},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            return re.findall("GOMP_SPINCOUNT = '(.*)'", self.expect(shown, 0).stderr)

        usual = spins("evaluate")
        self.assertEqual(spins("generate"), ["3000"])
        self.assertEqual(spins("compare"), ["3000"])
        self.assertEqual(spins("generate", GOMP_SPINCOUNT="7"), ["7"])
        self.assertNotIn(spins("generate", OMP_WAIT_POLICY="active"), (["3000"], usual))
        self.assertEqual(len(usual), 1)
        self.assertNotEqual(usual, ["3000"])

    def test_standard_input_is_read_while_mpi_starts(self):
        """Rank 0 meets the others in MPI once they start: after more has been read than a pipe holds."""
        generate = [KZERO, "generate", "saved", "--prompts", "-", "--json", "--max-tokens", "1"]
        late = ["sh", "-c", 'while [ ! -e gate ]; do sleep 0.05; done; exec "$@"', "sh", *generate]
        launch = subprocess.Popen(
            [*LAUNCHER, "1", *generate, ":", *LAUNCHER[1:], "2", *late],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(lambda: [pipe.close() for pipe in (launch.stdin, launch.stdout, launch.stderr)])
        self.addCleanup(lambda: (launch.kill(), launch.wait()))
        self.wait_until(launch, lambda: 0 in ranks_of(launch))
        chunks = 12
        with open(f"/proc/{ranks_of(launch)[0]}/fd/0", "rb", buffering=0) as pipe:
            unread = bytearray(4)
            for i in range(chunks):
                launch.stdin.write(b'{"prompt": "%x"%s}\n' % (i, b" " * (1 << 14)))
                launch.stdin.flush()
                time.sleep(0.05)
                self.wait_until(launch, lambda: fcntl.ioctl(pipe, termios.FIONREAD, unread) == 0 and not any(unread))
        launch.stdin.close()
        (self.folder / "gate").touch()
        self.wait_until(launch, lambda: launch.poll() is not None, ends=True)
        self.assertEqual((launch.returncode, launch.stdout.read().count(b'"prompt"')), (0, chunks), launch.stderr.read())

    def wait_until(self, launch, is_reached, ends=False):
        end = time.monotonic() + PATIENCE
        while not is_reached():
            self.assertTrue(ends or launch.poll() is None, "it ended early")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_an_input_without_end_is_refused(self):
        for arguments, source in (
            (["--prompts", "/dev/zero"], "/dev/null"),
            (["--prompts", "-"], "/dev/zero"),
            ([], "/dev/zero"),
        ):
            with self.subTest(arguments), open(source, "rb") as stdin:
                result = subprocess.run(
                    self.command(["generate", "saved", *arguments], None),
                    cwd=self.folder,
                    stdin=stdin,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                )
                self.expect(result, 4, ": is larger than 256.00 MiB, the most that one launch reads as prompts")

    def test_an_input_that_cannot_be_read_has_its_reason(self):
        self.expect(self.generate("--prompts", "."), 4, "kzero: .: cannot be read: Is a directory")
        for arguments in ([], ["--prompts", "-"]):
            result = subprocess.run(
                ["sh", "-c", 'exec "$@" <&-', "sh", *self.command(["generate", "saved", *arguments], None)],
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            self.expect(result, 4, "standard input: cannot be read: Bad file descriptor")


class Mistakes(GenerateTest):
    def test_each_is_one_message(self):
        (self.folder / "bad.jsonl").write_text('{"prompt": "a"}\n{"prompt": 7}\n')
        (self.folder / "key.jsonl").write_text('{"prompt": "a", "stop": "b"}\n')
        (self.folder / "none.jsonl").write_text("\n")
        (self.folder / "list.jsonl").write_text("[1]\n")
        (self.folder / "many.jsonl").write_text('{"prompt": "a", "max_tokens": 0}\n')
        for code, arguments, *texts in (
            (2, ("--prompt", "more than eleven tokens"), "prompt 1 has 23 tokens, but the model has positions for 11"),
            (2, ("--prompt", ""), "prompt 1 is empty"),
            (4, ("--prompts", "gone.jsonl"), "gone.jsonl: cannot be opened"),
            (4, ("--prompts", "bad.jsonl"), "bad.jsonl:2: prompt must be a text, found 7"),
            (4, ("--prompts", "key.jsonl"), 'key.jsonl:1: unknown key "stop"'),
            (4, ("--prompts", "none.jsonl"), "none.jsonl: has no prompts"),
            (4, ("--prompts", "list.jsonl"), "list.jsonl:1: must be a JSON object"),
            (4, ("--prompts", "many.jsonl"), "many.jsonl:1: max_tokens must be", "found 0"),
            (2, ("--prompt", "a", "--prompts", "bad.jsonl"), "--prompts"),
            (2, ("--temperature", "-1"), "--temperature"),
            (2, ("--top-p", "2"), "--top-p"),
            (2, ("--min-p", "-0.1"), "--min-p"),
            (2, ("--top-k", "-1"), "--top-k"),
            (2, ("--seed", "x"), "--seed"),
            *(
                (2, (option, "nan"), f"{option}: must be a number from 0 to", "found nan")
                for option in ("--temperature", "--top-p", "--min-p")
            ),
            *(
                (2, ("--seed", seed), f"--seed: must be a whole number from 0 to {2**64 - 1}, found {seed or 'an empty text'}")
                for seed in ("-1", str(2**64), "0x10", "1.5", "")
            ),
            (2, ("--max-tokens", "0"), "--max-tokens"),
            (2, ("--batch", "0"), "--batch"),
            (2, ("--stop", ""), "--stop"),
            (2, ("--precision", "fp8"), "--precision"),
            (2, ("--prompt", "a", "--tensor", "2"), "2"),
            (4, ("--prompt", "a", "--tokenizer", "gone.json"), "gone.json"),
        ):
            with self.subTest(arguments=arguments):
                result = self.generate(*arguments)
                self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
                for text in texts:
                    self.assertIn(text, result.stderr)
        self.expect(self.generate("--prompt", "a", source="gone"), 4, "gone: does not exist")
        self.expect(self.generate("--prompt", "much too long a text", ranks=3), 2, "has 20 tokens")


class Tokenizers(GenerateTest):
    overrides = ("train.steps=40", "model.vocab=768")

    def setUp(self):
        super().setUp()
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)

    def test_of_a_folder_of_hugging_face(self):
        arguments = ("--prompt", "bottles of", "--temperature", "0")
        self.expect(self.generate(*arguments, source="hf"), 4, "no tokenizer.json was found", "--tokenizer bytes")
        (given,) = self.lines(*arguments, "--tokenizer", TOKENIZER, source="hf")
        shutil.copy(TOKENIZER, self.folder / "hf/tokenizer.json")
        self.assertEqual(self.lines(*arguments, source="hf"), [given])
        self.assertEqual(self.lines(*arguments, "--tokenizer", "hf"), [given], "a checkpoint, and the tokenizer's folder")
        self.assertNotEqual(self.lines(*arguments, "--tokenizer", "bytes", source="hf"), [given])

        config = self.folder / "hf/generation_config.json"
        config.write_text(json.dumps({"eos_token_id": [767, given["tokens"][0]]}))
        (ended,) = self.lines(*arguments, source="hf")
        self.assertEqual((ended["tokens"], ended["text"], ended["reason"]), (given["tokens"][:1], "", "end_token"))
        config.write_text(json.dumps({"eos_token_id": "x"}))
        self.expect(self.generate(*arguments, source="hf"), 4, "eos_token_id must be")

        config.unlink()
        (self.folder / "hf/tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<|endoftext|>"}}))
        model = json.loads((self.folder / "hf/config.json").read_text())
        (self.folder / "hf/config.json").write_text(json.dumps({**model, "eos_token_id": None}))
        self.assertEqual(len(self.lines("--prompt", "", source="hf")), 1, "an empty text begins after the end token")

    def test_the_tokens_that_it_adds_come_before_a_prompt_once(self):
        rules = json.loads(TOKENIZER.read_text())
        piece = {"Sequence": {"id": "A", "type_id": 0}}
        rules["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, piece],
            "pair": [piece, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}},
        }
        tokens = lambda prompt, *options: self.lines("--prompt", prompt, "--temperature", "0", *options)[0]["tokens"]
        plain, begun = tokens("bo", "--tokenizer", TOKENIZER), tokens("<|endoftext|>bo", "--tokenizer", TOKENIZER)
        (self.folder / "begins.json").write_text(json.dumps(rules))
        self.assertEqual(tokens("bo", "--tokenizer", "begins.json"), begun)
        self.assertEqual(tokens("<|endoftext|>bo", "--tokenizer", "begins.json"), begun)
        self.assertEqual(tokens("bo", "--tokenizer", "begins.json", "--no-special-tokens"), plain)
        self.assertEqual(len(tokens("", "--tokenizer", "begins.json")), 10, "an empty text begins with that token")

    def test_messages_are_written_as_the_chat_template_does(self):
        (self.folder / "model").mkdir()
        shutil.copy(TOKENIZER, self.folder / "model/tokenizer.json")
        chat = lambda *options, **others: self.generate("--chat", "--tokenizer", "model", "--json", *options, **others)
        self.expect(chat("--prompt", "a"), 4, "there is no model/chat_parts.json; `python3 input/prepare_chat_parts.py model`")
        between = {"start": {"user": "u:", "system": "s:"}, "system": {"user": ",u:"}, "user": {"ask": ";", "assistant": ";"}}
        parts = {"version": 1, "between": {**between, "assistant": {"user": ".u:"}}, "strips": ["user"]}
        (self.folder / "model/chat_parts.json").write_text(json.dumps(parts))
        turns = [{"role": role, "content": text} for role, text in (("user", "1"), ("assistant", " 2"), ("user", " 3\u3000\n"))]
        lines = [{"prompt": " bo "}, {"messages": turns}, {"messages": [{"role": "system", "content": " x"}, turns[0]]}]
        (self.folder / "chat.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        shown = self.expect(chat("--prompts", "chat.jsonl", "--max-tokens", "2", ranks=3), 0).stdout
        texts = [json.loads(line)["prompt"] for line in shown.splitlines()]
        self.assertEqual(texts, ["u:bo;", "u:1; 2.u:3;", "s: x,u:1;"])
        first = json.loads(shown.splitlines()[0])
        self.assertEqual(self.lines("--prompt", "u:bo;", "--tokenizer", TOKENIZER, "--max-tokens", "2"), [first])
        for line, text in (
            ({"messages": turns[:2]}, 'has no text between "assistant" and "ask"'),
            ({"messages": [{"role": "user"}]}, "chat.jsonl:1: messages must be a list of"),
            ({"messages": turns, "prompt": "a"}, 'has both "prompt" and "messages"'),
        ):
            (self.folder / "chat.jsonl").write_text(json.dumps(line))
            self.expect(chat("--prompts", "chat.jsonl"), 2 if "between" in text else 4, text)
        self.expect(self.generate("--prompts", "chat.jsonl", "--tokenizer", "model"), 4, "unknown key", "with --chat")
        (self.folder / "model/chat_parts.json").write_text("{}")
        self.expect(chat("--prompt", "a"), 4, "model/chat_parts.json: is not a file of input/prepare_chat_parts.py")

    def test_one_of_another_vocabulary_is_refused(self):
        self.expect(self.train("model.vocab=300", "checkpoint.folder=small", "run.metrics="), 0)
        self.expect(self.generate("--prompt", "a", "--tokenizer", TOKENIZER, source="small"), 4, "has 768 tokens")

    def test_one_beside_the_data_of_a_checkpoint(self):
        (self.folder / "data").mkdir()
        header = [20240520, 1, 400] + [0] * 253
        (self.folder / "data/text_000000.bin").write_bytes(
            b"".join(n.to_bytes(4, "little") for n in header)
            + b"".join((i * 7 % 700).to_bytes(2, "little") for i in range(400))
        )
        shutil.copy(TOKENIZER, self.folder / "data/tokenizer.json")
        self.expect(
            self.train(
                'data.files=["data/text_000000.bin"]',
                "data.format=llmc",
                "checkpoint.folder=tokens",
                "model.vocab=768",
                "run.metrics=",
            ),
            0,
        )
        self.assertEqual(
            self.lines("--prompt", "bottles", source="tokens"),
            self.lines("--prompt", "bottles", "--tokenizer", TOKENIZER, source="tokens"),
        )


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
