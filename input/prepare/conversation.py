"""Reads chats for prepare.py: {"messages": [{"role": .., "content": ..}, ...]} and other forms of it, or a prompt and its completion."""

import contextlib
import dataclasses
import json
import math
import struct
from collections import Counter

from .chat_forms import alpaca_messages, calls_with_objects, json_value, message_of, system_messages, text_of_parts
from .documents import InputError, shown, surrogate_problem
from .draw import hasher, key_of

ROLES = ("system", "developer", "user", "assistant", "tool")
KEYS = ("role", "content", "name", "reasoning_content", "tool_calls", "tool_call_id")


MAX_DEPTH = 100
# Forms of lines, by the key that tells them: the other keys that they need. Those of ShareGPT and Alpaca may have more.
FORMS = {"messages": (), "conversations": (), "prompt": ("completion",), "instruction": ("output",)}
MORE_KEYS = {"conversations": ("system",), "instruction": ("input", "system")}


@dataclasses.dataclass(frozen=True)
class Example:
    """A line: a conversation, or a prompt and a completion as they are. Only turns of the assistant from `first` on are targets."""

    messages: list | None
    first: int = 0
    tools: list | None = None
    prompt: str = ""
    completion: str = ""
    weight: float = 1.0  # of its documents

    def turns(self):
        """The numbers of the messages that the model learns to write."""
        return [i for i, one in enumerate(self.messages) if i >= self.first and one["role"] == "assistant"]

    def key(self):
        """A number for its content, from which validation is drawn. Neither the chat template, its date nor the weight change
        it."""
        content = hasher()
        content.update(
            json.dumps([self.messages, self.first, self.tools, self.prompt, self.completion], sort_keys=True).encode()
        )
        return key_of(content)

    def characters(self):
        """About the length of its text."""
        return sum(len(one["content"]) for one in self.messages or []) + len(self.prompt) + len(self.completion)


@dataclasses.dataclass(frozen=True)
class Answers:
    """A line with a chosen and a rejected answer to the same prompt."""

    chosen: Example
    rejected: Example

    def key(self):
        content = hasher()
        content.update(json.dumps([self.chosen.key(), self.rejected.key()]).encode())
        return key_of(content)

    def characters(self):
        return self.chosen.characters() + self.rejected.characters()


def form_of(value):
    """The key that tells the form of a line's object, one of FORMS; None: it has no form that is known."""
    return next((form for form, others in FORMS.items() if all(value.get(key) is not None for key in (form, *others))), None)


def needs_template(value):
    """Whether the object of a line is a chat that a template renders."""
    form = form_of(value)
    return form is not None and (form != "prompt" or isinstance(value["prompt"], list))


def answers_need_template(value):
    """Whether the answers of a line are messages."""
    return isinstance(value.get("chosen"), list)


def check_texts(value, special):
    """Refuses texts, at any depth, that UTF-8 cannot represent or that contain a special token. `special`: their pattern. Bounds
    the depth, as what reads the value later calls itself for each level."""
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InputError(f"nests too deep, by more than {MAX_DEPTH} levels")
        if isinstance(one, str):
            if problem := surrogate_problem(one):
                raise InputError(problem)
            if found := special.search(one):
                raise InputError(f"its text contains the special token {found.group()}, which only the chat template may write")
        elif isinstance(one, dict):
            waiting += [(inner, depth + 1) for pair in one.items() for inner in pair]
        elif isinstance(one, list):
            waiting += [(inner, depth + 1) for inner in one]


def read_message(value, key):
    """The message without keys that are null, its content as one text, and arguments as objects. `key` is its place in the line,
    such as messages[0]."""
    value = message_of(value, key)
    if not isinstance(value, dict):
        raise InputError(f'{key} is {shown(value)}, but an object {{"role": .., "content": ..}} is needed there')
    message = {name: one for name, one in value.items() if one is not None}
    if unknown := [name for name in message if name not in KEYS]:
        raise InputError(f"{key} has the unknown key {shown(unknown[0])}; known are {', '.join(KEYS)}")
    role, content = message.get("role"), text_of_parts(message.get("content"), f"{key}.content")
    if role not in ROLES:
        raise InputError(f"{key}.role is {shown(role)}; known are {', '.join(ROLES)}")
    for name in ("name", "reasoning_content", "tool_call_id"):
        if not isinstance(message.get(name, ""), str):
            raise InputError(f"{key}.{name} is {shown(message[name])}, but a text is needed there")
    calls = message.get("tool_calls")
    if calls is not None and (role != "assistant" or not isinstance(calls, list) or not calls):
        raise InputError(f"{key}.tool_calls is {shown(calls)}, but it has to be a list, of the assistant, that is not empty")
    if calls:
        message["tool_calls"] = calls_with_objects(calls, f"{key}.tool_calls")
        content = "" if content is None else content
    if not isinstance(content, str):
        raise InputError(f"{key}.content is {shown(content)}, but a text is needed there")
    if role == "assistant" and not content and not calls:
        raise InputError(f"{key}.content is empty: there is nothing that the assistant says")
    return {**message, "content": content}


def read_messages(value, key):
    if not isinstance(value, list):
        raise InputError(f"{key} is {shown(value)}, but a list of messages is needed there")
    if not value:
        raise InputError(f"{key} is empty: there is no message")
    return [read_message(one, f"{key}[{i}]") for i, one in enumerate(value)]


def read_pair(value, tools):
    """A line with prompt and completion, both texts or both messages."""
    prompt, completion = value["prompt"], value["completion"]
    if isinstance(prompt, list) and isinstance(completion, list):
        before = read_messages(prompt, "prompt")
        return Example(before + read_messages(completion, "completion"), len(before), tools)
    for key, text in (("prompt", prompt), ("completion", completion)):
        if not isinstance(text, str) or not text:
            raise InputError(
                f"{key} is {shown(text)}, but prompt and completion have to be two texts, or two lists of messages"
            )
    return Example(None, prompt=prompt, completion=completion)


def read_weight(value, key):
    """The weight of a line's object, which is a number under `key`, or its text as tables have it. Rounded to float32."""
    if key not in value:
        raise InputError(f"has no {key}, the weight that --weight-key names; only {shown(list(value))}")
    found, weight = value[key], math.nan
    if isinstance(found, (int, float, str)) and not isinstance(found, bool):
        with contextlib.suppress(ValueError, OverflowError):
            (weight,) = struct.unpack("<f", struct.pack("<f", float(found)))
    if not math.isfinite(weight):
        raise InputError(f"{key} is {shown(found)}, but a weight is a finite number in float32, such as 0.5")
    return weight


def read_example(value, special, ignored, weight_key=None):
    """The Example of a line's object. Counts its keys that say nothing about the conversation in `ignored`, a Counter."""
    value = {key: one for key, one in value.items() if one is not None}
    form = form_of(value)
    if form is None:
        known = ", ".join(" and ".join((form, *others)) for form, others in FORMS.items())
        raise InputError(f"has none of: {known}; only {shown(list(value))}")
    for key in ("conversations", "completion"):
        if form in ("messages", "conversations") and key != form and key in value:
            raise InputError(f"has {form} and {key}, but one of them is needed")
    tools = json_value(value.get("tools") or None, "tools", list)
    if tools is not None and (not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools)):
        raise InputError(f"tools is {shown(tools)}, but a list of objects is needed there")
    is_pair = form == "prompt"
    example = read_pair(value, tools or None) if is_pair else Example(messages_of(value, form), 0, tools or None)
    if example.messages is not None and not example.turns():
        raise InputError("no turn of the assistant" + (" in completion" if is_pair else "") + ": nothing can be learned")
    check_texts([example.messages, example.tools, example.prompt, example.completion], special)
    known = ("tools", weight_key, form, *FORMS[form], *MORE_KEYS.get(form, ()))
    ignored.update(key for key in value if key not in known)
    return dataclasses.replace(example, weight=read_weight(value, weight_key)) if weight_key else example


def read_answers(value, special, ignored):
    """The Answers of a line's object. Without a prompt of messages, the prompt is what both conversations begin with."""
    value = {key: one for key, one in value.items() if one is not None}
    if missing := [key for key in ("chosen", "rejected") if key not in value]:
        raise InputError(f"has no {missing[0]}; only {shown(list(value))}")
    prompt, answers = value.get("prompt"), [value["chosen"], value["rejected"]]
    if all(isinstance(answer, list) for answer in answers) and not isinstance(prompt, list):
        shared = min(map(len, answers))
        common = next((i for i in range(shared) if answers[0][i] != answers[1][i]), shared)
        prompt, answers = answers[0][:common], [answer[common:] for answer in answers]
    if answers[0] == answers[1]:
        raise InputError("chosen and rejected are the same")
    ignored.update(key for key in value if key not in ("prompt", "chosen", "rejected", "tools"))
    tools = {"tools": value["tools"]} if "tools" in value else {}
    return Answers(
        *(
            read_answer(name, {"prompt": prompt, "completion": answer, **tools}, special)
            for name, answer in zip(("chosen", "rejected"), answers)
        )
    )


def read_answer(name, value, special):
    try:
        if value["prompt"] == []:  # the conversations differ from their first message on
            return read_example(
                {**value, "prompt": None, "messages": value["completion"], "completion": None}, special, Counter()
            )
        return read_example(value, special, Counter())
    except InputError as error:
        raise InputError(f"{name}: {error.args[0]}") from error


def messages_of(value, form):
    """The messages of a line that is not a pair."""
    if form == "instruction":
        return alpaca_messages(value)
    messages = read_messages(value[form], form)
    return system_messages(value) + messages if "system" in MORE_KEYS.get(form, ()) else messages
