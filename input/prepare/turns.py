"""Finds what a model learns to write in a conversation that a chat template renders, and refuses templates that do not allow it.

A template with generation blocks says it by itself. Otherwise each turn of the assistant is found by rendering the conversation
twice: up to the turn with the beginning of an answer (`before`), and with the turn (`after`). `before` has to be the beginning of
`after`, and `after` that of the whole conversation. The turn is then what `after` has more.
"""

import re

from .conversation import Example
from .documents import InputError

TEST = [
    {"role": "system", "content": "You answer in one sentence."},
    {"role": "user", "content": "What does a rank own?"},
    {"role": "assistant", "content": "A rank owns a shard of the state."},
    {"role": "user", "content": "And what is a node?"},
    {"role": "assistant", "content": "A node is several ranks with one memory."},
]


def special_pattern(tokenizer):
    """A pattern that finds the text of any special token."""
    texts = [token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special and token.content]
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or r"(?!)")


class Turns:
    """Renders conversations and finds the ranges of characters that are targets."""

    def __init__(self, template, special, each_turn):
        self.template, self.each_turn = template, each_turn
        self.end_of_turn = re.compile(rf"(?:{special.pattern})(\s+)\Z")

    def documents(self, example):
        """[(text, ranges of characters)], one document for the conversation, or one for each turn."""
        if self.template.has_generation:
            found = [self.marked(example)]
            check_answer(example, example.turns()[-1], "".join(found[0][0][begin:end] for begin, end in found[0][1]))
        elif self.each_turn:
            found = [self.last_turn(example, turn) for turn in example.turns()]
        else:
            text = self.template.render(example.messages, example.tools)
            found = [(text, [self.range_of(example, turn, text) for turn in example.turns()])]
        check_contents(example, found[-1][0])
        return found

    def marked(self, example):
        text, ranges = self.template.render_marked(example.messages, example.tools)
        if example.first:
            prompt = self.template.render(example.messages[: example.first], example.tools)
            if not text.startswith(prompt):
                raise InputError("the chat template renders the prompt differently once a completion follows")
            ranges = [one for one in ranges if one[0] >= len(prompt)]
        return text, ranges

    def last_turn(self, example, turn):
        text = self.template.render(example.messages[: turn + 1], example.tools)
        return text, [self.range_of(Example(example.messages[: turn + 1], tools=example.tools), turn, text)]

    def range_of(self, example, turn, text):
        """The characters of a turn in the text of the conversation."""
        if turn == 0:
            raise InputError("the assistant speaks first, but this chat template needs a message before it")
        before = self.template.render(example.messages[:turn], example.tools, asks=True)
        is_last = turn + 1 == len(example.messages)
        after = text if is_last else self.template.render(example.messages[: turn + 1], example.tools)
        if not after.startswith(before):
            raise InputError(f"the chat template does not begin message {turn + 1} as it asks for it (add_generation_prompt)")
        if not text.startswith(after):
            raise InputError(
                f"the chat template renders message {turn + 1} differently once others follow (--each-turn makes a document of each turn)"
            )
        check_answer(example, turn, text[len(before) : len(after)])
        tail = self.end_of_turn.search(text, len(before), len(after))
        return len(before), tail.start(1) if tail else len(after)


def check_template(turns, encode):
    """Renders a test conversation and raises InputError, with the check that failed, if targets cannot be told from the rest.
    `encode`: text to tokens. A template need not accept a message of the system. Returns the text of targets after an answer,
    which tells that it is over, such as <|im_end|>."""
    template = turns.template
    if template.has_generation and turns.each_turn:
        raise InputError(
            f"{template.where}: --each-turn is for chat templates without generation blocks, but this one has some"
        )
    try:
        has_system = TEST[0]["content"] in template.render(TEST)
    except InputError:
        has_system = False
    example = Example(TEST if has_system else TEST[1:])
    try:
        documents = turns.documents(example)
        check_targets(example, documents)
        if not template.has_generation:
            check_beginnings(turns, example, documents, encode)
        text, ranges = documents[-1]
        return text[slice(*ranges[-1])].rpartition(example.messages[-1]["content"])[2]
    except InputError as error:
        raise InputError(f"{template.where}: fails on a test conversation: {error}") from error


def packed(text):
    """The text without white space, which templates remove and add."""
    return "".join(text.split())


def check_contents(example, text):
    """No template may leave out or change a message before the last answer, except earlier answers and what tools say."""
    rendered = packed(text)
    for number, message in enumerate(example.messages[: example.turns()[-1]]):
        if message["role"] not in ("assistant", "tool") and packed(message["content"]) not in rendered:
            raise InputError(f"the chat template leaves out or changes text of message {number + 1}, of the {message['role']}")


def check_answer(example, turn, targets):
    """The targets have all that an answer says: its text, its reasoning, and the names of the tools that it calls."""
    message, targets = example.messages[turn], packed(targets)
    calls = [call.get("function", call) for call in message.get("tool_calls", []) if isinstance(call, dict)]
    texts = [message["content"], message.get("reasoning_content", "")]
    texts += [call["name"] for call in calls if isinstance(call, dict) and isinstance(call.get("name"), str)]
    if not all(packed(text) in targets for text in texts):
        raise InputError(f"the chat template leaves out or changes text of message {turn + 1}, of the assistant")


def check_targets(example, documents):
    """Each answer is in a range of targets, and no other message is."""
    targets = "\n".join(text[begin:end] for text, ranges in documents for begin, end in ranges)
    for number, message in enumerate(example.messages):
        is_answer = message["role"] == "assistant"
        if (message["content"] in targets) != is_answer:
            among = "not among the targets" if is_answer else "among the targets"
            raise InputError(f"message {number + 1}, of the {message['role']}, is {among}")


def check_beginnings(turns, example, documents, encode):
    """An answer begins with its text, perhaps after text such as an empty <think></think>, and at a token of its own."""
    for number, turn in enumerate(example.turns()):
        text, ranges = documents[number if turns.each_turn else 0]
        begin, _ = ranges[0 if turns.each_turn else number]
        if turns.template.render(example.messages[:turn], asks=True) == turns.template.render(example.messages[:turn]):
            if text[begin:].lstrip().find(example.messages[turn]["content"]) != 0:
                raise InputError("the chat template ignores add_generation_prompt, and has text before an answer")
        tokens = encode(text[:begin])
        if encode(text)[: len(tokens)] != tokens:
            raise InputError(f"the first token of message {turn + 1} has text from before it")
