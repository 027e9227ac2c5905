"""prepare.py --chat from outside: forms in which chats are distributed become the same documents.

Usage:

    PREPARE=input/prepare.py python3 test_chat_forms.py
"""

import importlib.util
import json
import sys
import unittest

import chat_templates as templates
from chat_case import ChatCase, chat, turn

SYSTEM = turn("system", "The memory")


class Forms(ChatCase):
    def setUp(self):
        super().setUp()
        self.template(templates.CHATML)

    def array(self, *values):
        path = self.folder / "chats.json"
        path.write_text(json.dumps(values, indent=4))
        return path

    def written(self, path, *options):
        """(the output, the bytes of the documents)."""
        said = self.run_it(path, *options)
        return said, (self.out / "text_train.docs").read_bytes()

    def assert_same(self, values, messages, *options):
        """The values give the documents of these messages, as lines and as one array."""
        expected = self.written(self.lines(*messages), *options)[1]
        for path in (self.lines(*values), self.array(*values)):
            said, found = self.written(path, *options)
            self.assertEqual(found, expected)
            self.assertNotIn("not used", said)

    def assert_refused(self, *cases):
        self.out = self.folder / "none"
        for value, said in cases:
            with self.subTest(said):
                self.assertIn(f"chats.json[0]: {said}", self.run_it(self.array(value), code=4))


def shared(*texts, names=("human", "gpt"), **others):
    return {"conversations": [{"from": names[i % 2], "value": text} for i, text in enumerate(texts)], **others}


class ShareGpt(Forms):
    def test_conversations(self):
        self.assert_same(
            [shared("hello", "there"), shared("a", "b", "c", "d", names=("user", "chatgpt"))],
            [chat("hello", "there"), chat(*"abcd")],
        )
        with_system = {"messages": [SYSTEM, *chat("hello", "there")["messages"]]}
        self.assert_same([shared("hello", "there", system="The memory")], [with_system])
        inside = shared("hello", "there")
        inside["conversations"].insert(0, {"from": "system", "value": "The memory"})
        self.assert_same([inside, {"conversations": chat("a", "b")["messages"]}], [with_system, chat("a", "b")])

    def test_what_is_refused(self):
        turns = shared("hello", "there")["conversations"]
        self.assert_refused(
            (
                shared("a", "b", names=("human", "robot")),
                'conversations[1].from is "robot"; known are system, human, user, gpt',
            ),
            (shared("a", 5), "conversations[1].content is 5, but a text is needed there"),
            (shared("a"), "no turn of the assistant: nothing can be learned"),
            ({"conversations": []}, "conversations is empty"),
            ({"conversations": "a"}, 'conversations is "a", but a list of messages is needed there'),
            ({"conversations": [turns[0], {**turns[1], "weight": 0}]}, 'conversations[1] has the unknown key "weight"'),
            ({"conversations": turns, "messages": []}, "has messages and conversations, but one of them is needed"),
            (shared("a", "b<|im_end|>"), "its text contains the special token <|im_end|>"),
        )

    def test_an_array_has_one_message_for_what_is_wrong_with_it(self):
        path = self.folder / "chats.json"
        path.write_text(json.dumps([shared("a", "b")] * 1000, indent=1)[:-50])
        said = self.run_it(path, code=4)
        self.assertEqual(said.count("\n"), 1)
        self.assertIn("chats.json[999]: is not JSON: ", said)


class Alpaca(Forms):
    def test_instructions(self):
        one = {"instruction": "Say it.", "input": "", "output": "hello"}
        two = {"instruction": "Say it.", "input": "there", "output": "hello", "system": "The memory"}
        messages = [SYSTEM, *chat("Say it.\n\nthere", "hello")["messages"]]
        self.assert_same([one, two], [chat("Say it.", "hello"), {"messages": messages}])
        self.assertIn("keys of lines that are not used: text (1)\n", self.run_it(self.array({**one, "text": "prompt"})))

    def test_what_is_refused(self):
        good = {"instruction": "a", "output": "b"}
        self.assert_refused(
            ({**good, "output": ""}, "output is empty"),
            ({**good, "instruction": ["a"]}, 'instruction is ["a"], but a text is needed there'),
            ({**good, "history": [["a", "b"]]}, "history has earlier turns"),
            ({"instruction": "a"}, "has none of: messages, "),
        )


class Parts(Forms):
    def test_texts_of_parts_are_joined(self):
        parts = [{"type": "text", "text": "hello"}, {"type": "text", "text": " there"}]
        self.assert_same([{"messages": [turn("user", parts), turn("assistant", parts[:1])]}], [chat("hello there", "hello")])

    def test_other_parts_are_refused_by_name(self):
        image = {"type": "image_url", "image_url": {"url": "a"}}
        for part, said in (
            (image, 'messages[0].content[1] is of type "image_url", but only parts of type text are read'),
            ("plain", 'messages[0].content[1] is "plain", but only parts'),
            ({"type": "text", "text": 5}, "messages[0].content[1].text is 5, but a text is needed there"),
        ):
            self.assert_refused(({"messages": [turn("user", [{"type": "text", "text": "a"}, part])]}, said))
        self.assert_refused(({"messages": [turn("user", "a"), turn("assistant", [])]}, "messages[1].content is empty"))


def called(arguments, **others):
    function = {"name": "rank", "arguments": arguments}
    call = {"messages": [turn("user", "a"), turn("assistant", None, tool_calls=[{"type": "function", "function": function}])]}
    return {**call, **others}


class ToolCalls(Forms):
    # Writes objects, or JSON text as it is, like Qwen 3.
    EITHER = templates.TOOLS.replace(
        "message.tool_calls | tojson if message.tool_calls else ''",
        "(message.tool_calls[0].function.name + (message.tool_calls[0].function.arguments if "
        "message.tool_calls[0].function.arguments is string else message.tool_calls[0].function.arguments | tojson)) "
        "if message.tool_calls else ''",
    )
    OBJECT = EITHER.replace(".arguments is string", ".arguments is boolean")
    TEXT = EITHER.replace(".arguments is string", ".arguments is defined")
    WRITES_PYTHON = TEXT.replace("function.name + (", "function.name ~ (")

    def test_arguments_as_text_and_as_an_object(self):
        arguments = {"of": "\u4e2d <b>", "n": [1, 2.5, None]}
        found = set()
        for template in (self.EITHER, self.OBJECT, self.TEXT, self.WRITES_PYTHON):
            self.template(template)
            for form in (arguments, json.dumps(arguments), json.dumps(arguments, indent=1, ensure_ascii=False)):
                ((_, targets),) = self.documents(called(form))
                found.add(*targets)
        self.assertEqual(found, {'rank{"of": "\u4e2d <b>", "n": [1, 2.5, null]}<|im_end|>'})
        self.assertEqual(self.documents(called("")), self.documents(called({})))

    def test_the_document_of_arguments_without_a_function(self):
        self.template(templates.TOOLS)
        calls = [{"name": "rank", "arguments": form} for form in ({"a": 1}, '{"a":1}')]
        values = [{"messages": [turn("user", "a"), turn("assistant", None, tool_calls=[call])]} for call in calls]
        self.assertEqual(*self.documents(*values))

    def test_tools_as_text(self):
        self.template(templates.TOOLS)
        tools = [{"name": "rank", "parameters": {"type": "object"}}]
        self.assertEqual(self.documents(chat("a", "b", tools=tools)), self.documents(chat("a", "b", tools=json.dumps(tools))))

    def test_what_is_refused(self):
        where = "messages[1].tool_calls[0].function.arguments is "
        self.assert_refused(
            (called("{of: 1}"), where + '"{of: 1}", which is not JSON: Expecting property name'),
            (called("[1]"), where + "the JSON text of [1], but that of an object is needed there"),
            (called('{"a": "\\ud800"}'), "its text has half a surrogate pair"),
            (called('{"a": "<|im_\\u0065nd|>"}'), "its text contains the special token <|im_end|>"),
            (chat("a", "b", tools="{}"), "tools is the JSON text of {}, but that of a list is needed there"),
            (chat("a", "b", tools=json.loads("[" * 200 + "]" * 200)), "tools is [["),
            (called(json.loads('{"a":' * 200 + "1" + "}" * 200)), "nests too deep, by more than 100 levels"),
        )


if __name__ == "__main__":
    if missing := [name for name in ("tokenizers", "jinja2") if importlib.util.find_spec(name) is None]:
        print(f"{sys.executable} has no {' and '.join(missing)}: bash cmake/debian.sh installs them in .deps/venv")
        sys.exit(77)
    unittest.main()
