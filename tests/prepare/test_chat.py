"""prepare.py --chat from outside: what is a target with each style of chat template, and which templates are refused.

Usage:

    PREPARE=input/prepare.py python3 test_chat.py
"""

import importlib.util
import json
import sys
import unittest

import chat_templates as templates
from chat_case import ChatCase, chat, read_documents, turn

FOUR = ("hello", "hello there", "what is a rank?", "A rank owns\na shard.")


class Targets(ChatCase):
    def test_each_turn_and_its_end_token_are_targets(self):
        self.template(templates.CHATML)
        system = turn("system", "The memory")
        ((text, targets),) = self.documents({"messages": [system, *chat(*FOUR)["messages"]]})
        self.assertEqual(
            text,
            "<|im_start|>system\nThe memory<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n"
            "<|im_start|>assistant\nhello there<|im_end|>\n<|im_start|>user\nwhat is a rank?<|im_end|>\n"
            "<|im_start|>assistant\nA rank owns\na shard.<|im_end|>\n",
        )
        self.assertEqual(targets, ["hello there<|im_end|>", "A rank owns\na shard.<|im_end|>"])

    def test_the_tokens_are_those_of_the_whole_text_with_special_tokens(self):
        self.template(templates.CHATML)
        ((text, _),) = self.documents(chat(*FOUR))
        ((tokens, _),) = read_documents(self.out / "text_train.docs")
        self.assertEqual(list(tokens), self.tokenizer.encode(text, add_special_tokens=False).ids)
        self.assertEqual(list(tokens).count(self.tokenizer.token_to_id("<|im_end|>")), 4)

    def test_generation_blocks_give_the_same_file(self):
        self.template(templates.CHATML)
        self.documents(chat(*FOUR), chat("hello", "\u4e2d\u6587 \U0001f600 e\u0301"))
        expected = (self.out / "text_train.docs").read_bytes()
        self.template(templates.GENERATION)
        self.documents(chat(*FOUR), chat("hello", "\u4e2d\u6587 \U0001f600 e\u0301"))
        self.assertEqual(expected, (self.out / "text_train.docs").read_bytes())

    def test_line_ends_and_spaces_around_blocks_are_removed(self):
        self.template(templates.CHATML)
        self.documents(chat(*FOUR))
        expected = (self.out / "text_train.docs").read_bytes()
        self.template(templates.CHATML_IN_LINES)
        self.documents(chat(*FOUR))
        self.assertEqual(expected, (self.out / "text_train.docs").read_bytes())

    def test_the_first_token_is_no_target(self):
        self.template(templates.WITHOUT_HEADERS)
        ((text, targets),) = self.documents({"messages": [turn("assistant", "hello there"), turn("user", "a")]})
        self.assertEqual((text, targets), ("hello there<|im_end|>a<|im_end|>", [" there<|im_end|>"]))

    def test_a_template_that_writes_the_first_token_and_the_date(self):
        self.template(templates.LLAMA3)
        ((text, targets),) = self.documents(chat("  hello ", " A rank\n"), options=("--date", "2026-02-03"))
        self.assertTrue(
            text.startswith("<s><|start_header_id|>system<|end_header_id|>\n\nToday is 03 Feb 2026\n\n<|eot_id|>"), text
        )
        self.assertEqual(text.count("<s>"), 1)
        self.assertEqual(targets, ["A rank<|eot_id|>"])
        self.assertIn("can write the date: 2026-02-03", self.run_it(self.lines(chat(*FOUR)), "--date", "2026-02-03"))

    def test_a_template_without_the_system_and_without_a_beginning_of_the_answer(self):
        self.template(templates.INST)
        ((text, targets),) = self.documents(chat(*FOUR))
        self.assertTrue(text.startswith("<s>[INST] hello [/INST] hello there<|endoftext|>[INST]"), text)
        self.assertEqual(targets, [" hello there<|endoftext|>", " A rank owns\na shard.<|endoftext|>"])
        self.out = self.folder / "other"
        said = self.refused({"messages": [turn("system", "a"), *chat(*FOUR)["messages"]]})
        self.assertIn("chats.jsonl:1: the chat template fails: only user and assistant", said)

    def test_an_end_token_that_takes_the_line_end_is_a_target(self):
        rules = json.loads((self.model / "tokenizer.json").read_text())
        for token in rules["added_tokens"]:
            token["rstrip"] = token["content"] == "<|im_end|>"
        (self.model / "tokenizer.json").write_text(json.dumps(rules))
        self.template(templates.CHATML)
        ((text, targets),) = self.documents(chat(*FOUR))
        self.assertTrue(text.startswith("<|im_start|>user\nhello<|im_end|><|im_start|>assistant"), text)
        self.assertEqual(targets, ["hello there<|im_end|>", "A rank owns\na shard.<|im_end|>"])

    def test_messages_after_the_last_answer_are_kept(self):
        self.template(templates.CHATML)
        ((text, targets),) = self.documents(chat("hello", "hello", "there"))
        self.assertTrue(text.endswith("user\nthere<|im_end|>\n"))
        self.assertEqual(targets, ["hello<|im_end|>"])

    def test_each_turn_alone(self):
        first, second = "<think>\nhello\n</think>\n\nA rank", "<think>\nthere\n</think>\n\na shard"
        self.template(templates.REASONING)
        documents = self.documents(chat("what", first, "is", second), chat("a", "b"), options=("--each-turn",))
        begin = "<|im_start|>user\nwhat<|im_end|>\n<|im_start|>assistant\n"
        between = "A rank<|im_end|>\n<|im_start|>user\nis<|im_end|>\n<|im_start|>assistant\n"
        self.assertEqual(
            documents[:2],
            [
                (f"{begin}{first}<|im_end|>\n", [f"{first}<|im_end|>"]),
                (f"{begin}{between}{second}<|im_end|>\n", [f"{second}<|im_end|>"]),
            ],
        )
        self.assertEqual(documents[2][1], ["<think>\n\n</think>\n\nb<|im_end|>"])

    def test_tokens_across_the_beginning_of_a_turn_are_no_targets(self):
        self.assertEqual(len(self.tokenizer.encode(" hello").ids), 1)
        ((text, targets),) = self.documents({"prompt": "there, hel", "completion": "lo there"})
        self.assertEqual((text, targets), ("there, hello there<|endoftext|>", [" there<|endoftext|>"]))
        self.assertEqual(
            self.documents({"prompt": "there, ", "completion": "hello"}), [("there, hello<|endoftext|>", ["<|endoftext|>"])]
        )
        said = self.run_it(self.lines({"prompt": "there, hel", "completion": "lo there"}))
        self.assertIn("\n1 tokens are only partly in a turn of the assistant, and are not targets\n", said)

    def test_a_completion_has_the_tokens_that_the_tokenizer_adds(self):
        rules = json.loads((self.model / "tokenizer.json").read_text())
        rules["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}},
        }
        (self.model / "tokenizer.json").write_text(json.dumps(rules))
        self.template(templates.CHATML)
        line, completion = chat("hello", "hello there"), {"prompt": "what is", "completion": " a rank?"}
        documents = self.documents(completion, line)
        self.assertEqual(documents[0], ("<s>what is a rank?<|endoftext|>", [" a rank?<|endoftext|>"]))
        self.assertFalse(documents[1][0].startswith("<s>"), "a template writes what it wants")
        documents = self.documents(completion, options=("--no-special-tokens",))
        self.assertEqual(documents, [("what is a rank?<|endoftext|>", [" a rank?<|endoftext|>"])])

    def test_prompts_and_completions(self):
        documents = self.documents({"prompt": "what is", "completion": " a rank?"}, {"prompt": "a", "completion": "b"})
        self.assertEqual(
            documents, [("what is a rank?<|endoftext|>", [" a rank?<|endoftext|>"]), ("ab<|endoftext|>", ["b<|endoftext|>"])]
        )
        documents = self.documents({"prompt": "a", "completion": "b"}, options=("--end-token", "<s>"))
        self.assertEqual(documents, [("ab<s>", ["b<s>"])])

    def test_of_a_prompt_of_messages_nothing_is_a_target(self):
        line = {"prompt": chat(*FOUR[:3])["messages"], "completion": [turn("assistant", FOUR[3])]}
        for template in (templates.CHATML, templates.GENERATION):
            self.template(template)
            ((text, targets),) = self.documents(line)
            self.assertIn("hello there<|im_end|>", text)
            self.assertEqual(targets, ["A rank owns\na shard.<|im_end|>"])

    def test_of_a_completion_every_answer_is_a_target(self):
        one, two, three, four = chat(*FOUR)["messages"]
        answers = [" hello there<|endoftext|>", " A rank owns\na shard.<|endoftext|>"]
        for template in (templates.INST, templates.GENERATION_AFTER_INST):
            self.template(template)
            ((_, targets),) = self.documents({"prompt": [one], "completion": [two, three, four]})
            self.assertEqual(targets, answers)
            ((_, targets),) = self.documents({"prompt": [one, two, three], "completion": [four]})
            self.assertEqual(targets, answers[1:])

    def test_tools(self):
        self.template(templates.TOOLS)
        call = [{"type": "function", "function": {"name": "rank", "arguments": {"of": "<b>"}}}]
        messages = [
            turn("user", "what is a rank?"),
            turn("assistant", None, tool_calls=call),
            turn("tool", "7", name="rank"),
            turn("assistant", "7", tool_calls=None),
        ]
        ((text, targets),) = self.documents({"messages": messages, "tools": [{"name": "rank"}]})
        self.assertTrue(text.startswith('[{"name": "rank"}]<|im_start|>user'), text)
        self.assertEqual(targets, [json.dumps(call) + "<|im_end|>", "7<|im_end|>"])
        documents = self.documents({"messages": messages, "tools": [{"name": "rank"}]}, options=("--each-turn",))
        self.assertEqual([one for _, (one,) in documents], targets)
        self.assertTrue(all(text.startswith('[{"name": "rank"}]<|im_start|>user') for text, _ in documents), documents)
        self.template("{{- tools | tojson if tools else '' }}" + templates.GENERATION)
        ((text, targets),) = self.documents(
            {"prompt": [turn("user", "a")], "completion": [turn("assistant", "b")], "tools": [{"c": 1}]}
        )
        self.assertEqual((text[:21], targets), ('[{"c": 1}]<|im_start|', ["b<|im_end|>"]))
        self.template(templates.CHATML)
        self.out = self.folder / "other"
        lost = "chats.jsonl:1: the chat template leaves out or changes text of message 2, of the assistant"
        self.assertIn(lost, self.refused({"messages": messages}))
        self.assertIn(lost, self.refused({"messages": [turn("user", "a"), turn("assistant", "b", reasoning_content="c")]}))


class Templates(ChatCase):
    def test_templates_that_do_not_tell_targets_are_refused(self):
        for template, options, said in (
            ("REASONING", (), "renders message 3 differently once others follow (--each-turn makes a document of each turn)"),
            ("OPENS_A_THOUGHT", (), "does not begin message 3 as it asks for it (add_generation_prompt)"),
            ("OPENS_A_THOUGHT", ("--each-turn",), "does not begin message 3 as it asks for it"),
            ("ASKS_FOR_NOTHING", (), "ignores add_generation_prompt, and has text before an answer"),
            ("ENDS_WITH_A_SPACE", (), "the first token of message 3 has text from before it"),
            ("MARKS_EVERYTHING", (), "message 1, of the system, is among the targets"),
            ("CHANGES_ITS_BLOCKS", (), "changes the text of its generation blocks after they end"),
            ("GENERATION", ("--each-turn",), "--each-turn is for chat templates without generation blocks"),
        ):
            with self.subTest(template):
                self.template(getattr(templates, template))
                answer = self.refused(chat("hello", "hello"), options=options)
                self.assertIn(f"prepare.py: {self.model}/chat_template.jinja: ", answer)
                self.assertIn(said, answer)
                self.assertEqual(answer.count("\n"), 1)

    def test_programs_that_are_not_templates_or_misbehave(self):
        for template, said in (
            ("{% if %}", "line 1 of the template: "),
            ("{{ messages.__class__.__mro__ }}", "the chat template fails: access to attribute '__class__'"),
            ("{{ cycler.__init__.__globals__.os.system('true') }}", "the chat template fails: access to attribute"),
            ("{{ messages.append(1) }}", "the chat template fails: "),
            ("{% for i in range(10 ** 9) %}{% endfor %}", "the chat template fails: Range too big"),
            ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "the chat template fails: "),
            ("{{ raise_exception('two\nlines') }}", "the chat template fails: two\n"),
            ("{{ 1 / 0 }}", "the chat template fails: division by zero"),
            ("{{ messages[0].content }}", "leaves out or changes text of message 3"),
            ("{{ '\\ud800' }}", "the chat template fails: its text has half a surrogate pair, \\ud800"),
            (templates.GENERATION + "{{ '\\ud800' }}", "the chat template fails: its text has half a surrogate pair, \\ud800"),
        ):
            with self.subTest(template):
                self.template(template)
                answer = self.refused(chat("hello", "hello"))
                self.assertIn(said, answer)
                self.assertEqual(answer.count("\n"), 1)
        (self.model / "chat_template.jinja").write_bytes(b"\xff")
        self.assertIn("chat_template.jinja: is not UTF-8: byte 0 is 0xff", self.refused(chat("hello", "hello")))

    def test_a_template_that_leaves_out_a_message_is_refused_where_there_is_one(self):
        self.template(templates.WITHOUT_SYSTEM)
        self.documents(chat(*FOUR))
        self.out = self.folder / "other"
        said = self.refused(chat(*FOUR), {"messages": [turn("system", "a b c"), *chat(*FOUR)["messages"]]})
        self.assertIn("chats.jsonl:2: the chat template leaves out or changes text of message 1, of the system", said)
        self.template(templates.WITHOUT_SYSTEM.replace("'system'", "'developer'"))
        self.out = self.folder / "developer"
        said = self.refused({"messages": [turn("developer", "a b c"), *chat(*FOUR)["messages"]]})
        self.assertIn("chats.jsonl:1: the chat template leaves out or changes text of message 1, of the developer", said)
        self.template(templates.CHATML.replace("message.content +", "message.content | replace('drop', '') +"))
        self.documents(chat(*FOUR))
        self.out = self.folder / "second"
        said = self.refused(chat(*FOUR), chat("a", "b", "drop", "c"))
        self.assertIn("chats.jsonl:2: the chat template leaves out or changes text of message 3, of the user", said)
        self.template(templates.REASONING)
        self.documents(chat("a", "<think>\nb\n</think>\n\nc"), options=("--each-turn",))
        self.template(templates.REASONING.replace("'<think>\\n' + thought", "'<think>\\n'"))
        self.out = self.folder / "third"
        said = self.refused(chat("a", "<think>\nb\n</think>\n\nc"), options=("--each-turn",))
        self.assertIn("leaves out or changes text of message 2, of the assistant", said)

    def test_where_templates_are_found(self):
        line = self.lines(chat("hello", "hello"))
        self.assertIn("model: has no chat template; --template names one of several", self.run_it(line, code=4))
        self.configure(chat_template=templates.CHATML)
        self.assertIn(f"template: {self.model}/tokenizer_config.json: chat_template\n", self.run_it(line))
        several = [{"name": "default", "template": templates.INST}, {"name": "tools", "template": templates.CHATML}]
        self.configure(chat_template=several)
        self.run_it(line)
        ((_, targets),) = self.documents(chat("hello", "hello"))
        self.assertEqual(targets, [" hello<|endoftext|>"])
        ((_, targets),) = self.documents(chat("hello", "hello"), options=("--template", "tools"))
        self.assertEqual(targets, ["hello<|im_end|>"])
        self.assertIn("has only default, tools", self.run_it(line, "--template", "other", code=4))
        self.template(templates.LLAMA3)
        self.assertIn("template: " + str(self.model / "chat_template.jinja"), self.run_it(line))
        self.assertEqual((self.out / "chat_template.jinja").read_text(), templates.LLAMA3)
        (self.model / "additional_chat_templates").mkdir()
        (self.model / "additional_chat_templates/short.jinja").write_text(templates.CHATML)
        self.assertIn("additional_chat_templates/short.jinja\n", self.run_it(line, "--template", "short"))
        (self.folder / "mine.jinja").write_text(templates.INST)
        self.assertIn("mine.jinja\n", self.run_it(line, "--template", self.folder / "mine.jinja"))

    def test_what_ends_an_answer_is_shown(self):
        line = self.lines(chat("hello", "hello"))
        for template, said in (
            (templates.CHATML, 'an answer ends with "<|im_end|>"\n'),
            (templates.GENERATION, 'an answer ends with "<|im_end|>"\n'),
            (templates.CHATML.replace("im_end", "end"), 'ends with "<|end|>\\n", not with a special token of the tokenizer'),
            (
                templates.GENERATION.replace(
                    "message.content + '<|im_end|>' }}\n        {%- end", "message.content }}\n        {%- end"
                ),
                "ends with nothing, not",
            ),
        ):
            self.template(template)
            self.assertIn(said, self.run_it(line))

    def test_special_tokens_that_are_not_unicode(self):
        line = self.lines(chat("hello", "hello"))
        self.template(templates.INST)
        self.configure(bos_token="\ud800")
        self.assertIn("the chat template fails: its text has half a surrogate pair, \\ud800", self.run_it(line, code=4))
        self.configure(eos_token="\ud800")
        self.assertIn("the chat template fails: its text has half a surrogate pair", self.run_it(line, code=4))
        self.configure(eos_token="\ud800", bos_token=None)
        self.template(templates.CHATML)
        self.run_it(line)

    def test_configurations_that_are_not_understood(self):
        line = self.lines(chat("hello", "hello"))
        named = lambda name: {"name": name, "template": templates.CHATML}
        for value in (5, [{"name": "default"}], {"default": None}, [["default", "x"]], [named({}), named("a")], [named(1)]):
            self.configure(chat_template=value)
            self.assertIn("chat_template is neither a text nor a list of templates with names", self.run_it(line, code=4))
        for text, said in (("{", "is not JSON"), ("[1]", "is not a JSON object")):
            (self.model / "tokenizer_config.json").write_text(text)
            self.assertIn(f"tokenizer_config.json of the tokenizer: {said}", self.run_it(line, code=4))


if __name__ == "__main__":
    if missing := [name for name in ("tokenizers", "jinja2") if importlib.util.find_spec(name) is None]:
        print(f"{sys.executable} has no {' and '.join(missing)}: bash cmake/debian.sh installs them in .deps/venv")
        sys.exit(77)
    unittest.main()
