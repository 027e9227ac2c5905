"""Brings chats of other forms into that of conversation.py: ShareGPT and Alpaca, contents in parts, and tool calls whose
arguments are JSON text, as in OpenAI's interface.
"""

import json

from .documents import InputError, shown

# ShareGPT's name of who speaks, and the role
SPEAKERS = {
    "system": "system",
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model", "chatgpt", "bing", "bard"), "assistant"),
    **dict.fromkeys(("tool", "observation", "function_response"), "tool"),
}


def text_under(value, key):
    """The text of an object under a key; empty if there is none."""
    text = value.get(key) or ""
    if not isinstance(text, str):
        raise InputError(f"{key} is {shown(text)}, but a text is needed there")
    return text


def system_messages(value):
    """The message of the system, in a list, if the object of a line has one outside its turns."""
    system = text_under(value, "system")
    return [{"role": "system", "content": system}] if system else []


def alpaca_messages(value):
    """The messages of {"instruction": .., "input": .., "output": ..}. The input follows the instruction after an empty line."""
    if value.get("history"):
        raise InputError("history has earlier turns, which are not read in Alpaca's form: give them as messages")
    asked, answer = (text_under(value, key) for key in ("instruction", "output"))
    for key, text in (("instruction", asked), ("output", answer)):
        if not text:
            raise InputError(f"{key} is empty")
    given = text_under(value, "input")
    asked += "\n\n" + given if given else ""
    return [*system_messages(value), {"role": "user", "content": asked}, {"role": "assistant", "content": answer}]


def message_of(value, key):
    """The message of {"from": .., "value": ..}; others as they are."""
    if not isinstance(value, dict) or "from" not in value:
        return value
    speaker = value["from"]
    if not isinstance(speaker, str) or speaker not in SPEAKERS:
        raise InputError(f"{key}.from is {shown(speaker)}; known are {', '.join(SPEAKERS)}")
    return {
        "role": SPEAKERS[speaker],
        "content": value.get("value"),
        **{k: v for k, v in value.items() if k not in ("from", "value")},
    }


def text_of_parts(content, key):
    """The text of a content that is a list of parts, {"type": "text", "text": ..}, one after the other; others as they are."""
    if not isinstance(content, list):
        return content
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text":
            found = f"of type {shown(kind)}" if kind else shown(part)
            raise InputError(f"{key}[{number}] is {found}, but only parts of type text are read")
        if not isinstance(part.get("text"), str):
            raise InputError(f"{key}[{number}].text is {shown(part.get('text'))}, but a text is needed there")
    return "".join(part["text"] for part in content)


def json_value(text, key, kind):
    """The value of a JSON text, of the type `kind`; what is not a text as it is."""
    value = text
    if isinstance(text, str):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{key} is {shown(text)}, which is not JSON: {error}") from error
        if not isinstance(value, kind):
            raise InputError(f"{key} is the JSON text of {shown(value)}, but that of {WORDS[kind]} is needed there")
    return value


WORDS = {dict: "an object", list: "a list"}


def calls_with_objects(calls, key):
    """Tool calls with arguments as objects."""
    changed = []
    for number, call in enumerate(calls):
        function = call.get("function", call) if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            where = f"{key}[{number}]" + (".function" if function is not call else "")
            # No arguments at all are often written as an empty text.
            function = {**function, "arguments": json_value(function["arguments"].strip() or "{}", f"{where}.arguments", dict)}
            call = {**call, "function": function} if "function" in call else function
        changed.append(call)
    return changed
