"""The fixed texts of chat templates: they give what the template gives, or are not written.

Usage:

    PREPARE=input/prepare.py python3 test_chat_parts.py
"""

import datetime
import importlib.util
import json
import subprocess
import sys
import unittest

import chat_templates as templates
from chat_case import PREPARE, ChatCase, chat

DATE = datetime.date(2026, 2, 3)
FIRST_HAS_MORE = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if loop.length == 5 and loop.last %}{{ 'again: ' }}{% endif %}\
{{ m.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


class FixedTexts(ChatCase):
    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(PREPARE.parent))
        self.addCleanup(sys.path.remove, str(PREPARE.parent))

    def parts(self, text):
        """(parts, the compiled template)."""
        from prepare.chat_parts import parts_of_template
        from prepare.template import Source, Template

        template = Template(Source(text, "here", {"bos_token": "<s>", "eos_token": "</s>"}, DATE))
        return parts_of_template(template), template

    def test_they_give_what_the_template_gives(self):
        from prepare.chat_parts import written

        for name in ("CHATML", "CHATML_IN_LINES", "GENERATION", "LLAMA3", "INST", "TOOLS", "WITHOUT_SYSTEM", "OPENS_A_THOUGHT"):
            parts, template = self.parts(getattr(templates, name))
            for contents in (("a",), (" a ", "b\n", "\tc d\u3000"), ("1", "2", "3", "4", "5", "6", "7", "8", "9")):
                messages = chat(*contents)["messages"]
                with self.subTest(name, contents=contents):
                    self.assertEqual(written(parts, messages), template.render(messages, asks=True))
                    if "system" in parts["between"]["start"]:
                        messages = [{"role": "system", "content": " be brief\n"}, *messages]
                        self.assertEqual(written(parts, messages), template.render(messages, asks=True))
        self.assertNotIn("system", self.parts(templates.WITHOUT_SYSTEM)[0]["between"])

    def test_a_template_that_is_more_than_fixed_texts_has_none(self):
        for text, reason in (
            (FIRST_HAS_MORE, "depends on the message's place"),
            (templates.CHATML.replace("message.content", "message.content | upper"), "changes or moves messages"),
            (templates.CHATML.replace("message.content", "message.content | replace('node', 'x')"), "do not give a test"),
        ):
            with self.assertRaisesRegex(ValueError, reason):
                self.parts(text)

    def test_prepare_writes_them_next_to_the_data(self):
        self.template(templates.CHATML)
        said = self.run_it(self.lines(chat("hello", "hello there")))
        self.assertNotIn("--chat", said)
        self.assertEqual(json.loads((self.out / "chat_parts.json").read_text()), self.parts(templates.CHATML)[0])
        self.template(templates.CHATML.replace("message.content", "(message.content)[:50]"))
        self.out = self.folder / "none"
        said = self.run_it(self.lines(chat("hello", "hello there")))
        self.assertIn("\nkzero generate --chat cannot use this template: fixed texts do not give a test conversation\n", said)
        self.assertFalse((self.out / "chat_parts.json").exists())

    def test_a_model_gets_them(self):
        program = [sys.executable, "-B", PREPARE.parent / "prepare_chat_parts.py", self.model]
        self.template(templates.CHATML.replace("message.content", "message.content | upper"))
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertIn("chat_template.jinja: cannot be written as fixed texts: it changes or moves messages", done.stderr)
        self.template(templates.CHATML)
        done = subprocess.run(program, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, f"wrote {self.model}/chat_parts.json\n")
        self.assertEqual(json.loads((self.model / "chat_parts.json").read_text()), self.parts(templates.CHATML)[0])


if __name__ == "__main__":
    if importlib.util.find_spec("tokenizers") is None or importlib.util.find_spec("jinja2") is None:
        print(f"{sys.executable} has no tokenizers or jinja2: bash cmake/debian.sh installs them in .deps/venv")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
