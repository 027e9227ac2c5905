"""The chat template of a model: finds it, and renders conversations with it as transformers does (apply_chat_template).

A template is a Jinja program of the model's publisher. It runs in Jinja's sandbox, with what transformers offers it: the filter
tojson, the functions raise_exception and strftime_now, {% break %} and {% continue %}, and {% generation %} around what the
assistant writes.
"""

import dataclasses
import datetime
import functools
import json
import re
from pathlib import Path

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

from .documents import InputError, surrogate_problem
from .tokenizer import text_of_token

BEGIN, END = "\ufdd0", "\ufdd1"  # around generation blocks; Unicode keeps these two for the inner use of programs
TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclasses.dataclass(frozen=True)
class Source:
    """The parts of a Template, for other processes: its text, where that is from, the variables of special tokens, the date."""

    text: str
    where: str
    tokens: dict
    date: datetime.date


def read_text(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from error


def pairs_of(value):
    """[(name, template)] of a chat_template in a tokenizer_config.json: a text, or a list of {"name": .., "template": ..}. What is
    not as it should be is None."""
    if isinstance(value, str):
        return [("default", value)]
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list):
        return [(one.get("name"), one.get("template")) if isinstance(one, dict) else (None, None) for one in value]
    return [] if value is None else [(None, None)]


def named_templates(folder, configuration):
    """{name: (text, where it is from)} of a model folder. Files take precedence over tokenizer_config.json, as in transformers."""
    where = f"{folder / 'tokenizer_config.json'}: chat_template"
    pairs = pairs_of(configuration.get("chat_template"))
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise InputError(f"{where} is neither a text nor a list of templates with names")
    found = {name: (text, where) for name, text in pairs}
    files = [("default", folder / "chat_template.jinja")]
    files += [(path.stem, path) for path in sorted(folder.glob("additional_chat_templates/*.jinja"))]
    return {**found, **{name: (read_text(path), str(path)) for name, path in files if path.is_file()}}


def find_source(folder, configuration, wanted, date):
    """The Source of a model folder with the given tokenizer_config.json. `wanted` is the name of a template, or a file with one."""
    if wanted and Path(wanted).is_file():
        text, where = read_text(Path(wanted)), wanted
    else:
        found = named_templates(folder, configuration)
        if (wanted or "default") not in found:
            names = f"only {', '.join(sorted(found))}" if found else "no chat template"
            raise InputError(f"{folder}: has {names}; --template names one of several, or a file with one")
        text, where = found[wanted or "default"]
    tokens = {key: text_of_token(configuration.get(key)) for key in TOKENS}
    return Source(text, where, {key: token for key, token in tokens.items() if token is not None}, date)


class Generation(jinja2.ext.Extension):
    """The tag {% generation %} ... {% endgeneration %}: its text is what the assistant writes."""

    tags = {"generation"}

    def __init__(self, environment):
        super().__init__(environment)
        environment.extend(has_generation=False, marks_generation=False)

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        self.environment.has_generation = True
        return jinja2.nodes.CallBlock(self.call_method("marked"), [], [], body).set_lineno(line)

    def marked(self, caller):
        return f"{BEGIN}{caller()}{END}" if self.environment.marks_generation else caller()


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """Unlike Jinja's own filter tojson, does not escape HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def with_text(message):
    """The message with arguments of tool calls as JSON text."""

    def changed(call):
        function = call.get("function", call) if isinstance(call, dict) else {}
        if not isinstance(function, dict) or not isinstance(function.get("arguments"), dict):
            return call
        function = {**function, "arguments": to_json(function["arguments"])}
        return {**call, "function": function} if "function" in call else function

    calls = message.get("tool_calls")
    return {**message, "tool_calls": [changed(call) for call in calls]} if calls else message


def raise_exception(message):
    raise jinja2.TemplateError(message)


class Template:
    """A compiled chat template. Its functions raise InputError if it fails."""

    def __init__(self, source):
        self.where, self.tokens = source.where, source.tokens
        self.can_write_date = "strftime_now" in source.text
        self.environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
        )
        self.environment.filters["tojson"] = to_json
        self.environment.globals.update(raise_exception=raise_exception, strftime_now=self.strftime_now)
        self.moment = datetime.datetime.combine(source.date, datetime.time())
        try:
            self.compiled = self.environment.from_string(source.text)
        except jinja2.TemplateSyntaxError as error:
            raise InputError(f"{self.where}: line {error.lineno} of the template: {error.message}") from error
        except Exception as error:  # of Jinja's compiler, such as a RecursionError
            raise InputError(f"{self.where}: is not a template: {error}") from error

    @property
    def has_generation(self):
        return self.environment.has_generation

    def strftime_now(self, format):
        return self.moment.strftime(format)

    def render(self, messages, tools=None, asks=False):
        """The text of a conversation. With `asks` it ends with the beginning of the assistant's turn."""
        if any("tool_calls" in message for message in messages) and self.takes_text:
            messages = [with_text(message) for message in messages]
        return self.rendered(messages, tools, asks)

    @functools.cached_property
    def takes_text(self):
        """Whether it writes arguments of tool calls only as JSON text. With objects, as most templates take them, it then fails, or
        writes them as Python does."""

        def written(arguments):
            call = {"id": "probe1234", "type": "function", "function": {"name": "probe", "arguments": arguments}}
            asked, answer = {"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [call]}
            try:
                return self.rendered([asked, answer])
            except InputError:
                return ""

        arguments = {"probe": "value"}
        from_object, text = written(arguments), json.dumps(arguments)
        return text in written(text) and (not from_object or str(arguments) in from_object)

    def rendered(self, messages, tools=None, asks=False):
        try:
            text = self.compiled.render(
                **{**self.tokens, "messages": messages, "tools": tools, "documents": None, "add_generation_prompt": asks}
            )
        except Exception as error:  # a template may raise anything
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(f"the chat template fails: {lines[0]}") from error
        if problem := surrogate_problem(text):
            raise InputError(f"the chat template fails: {problem}")
        return text

    def render_marked(self, messages, tools=None):
        """(text, ranges of characters that are in generation blocks) of a conversation."""
        text = self.render(messages, tools)
        if BEGIN in text or END in text:
            raise InputError("has the character U+FDD0 or U+FDD1, which prepare.py needs to mark generation blocks")
        self.environment.marks_generation = True
        try:
            marked = self.render(messages, tools)
        finally:
            self.environment.marks_generation = False
        ranges, open_blocks = [], []
        for removed, mark in enumerate(re.finditer(f"[{BEGIN}{END}]", marked)):
            at = mark.start() - removed
            if mark.group() == BEGIN:
                open_blocks.append(at)
            elif open_blocks and (begin := open_blocks.pop()) < at and not open_blocks:
                ranges.append((begin, at))
        if open_blocks or marked.replace(BEGIN, "").replace(END, "") != text:
            raise InputError("the chat template changes the text of its generation blocks after they end")
        return text, ranges
