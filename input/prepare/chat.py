"""Makes document files of chats for prepare.py: reads lines, encodes them in several processes, cuts, and writes."""

import collections
import json
from pathlib import Path

from . import chat_parts, end_ids
from .chat_encoding import ChatEncoder, without_post_processor
from .conversation import Answers, Example, answers_need_template, needs_template, read_answers, read_example
from .document_file import PAIRS, PLAIN, WEIGHTED, Documents, count_targets, write_documents
from .documents import InputError
from .draw import COPY, TRAINING, VALIDATION, Draw, Population
from .encoding import encoded
from .files import printable
from .objects import objects
from .report import Problems, Progress
from .template import Template, find_source
from .tokenizer import configuration_of, tokenizer_file
from .turns import Turns, check_template, special_pattern

BATCH = 1 << 17  # characters that a process encodes at a time
PER_PROCESS = 1 << 20  # bytes of files for which another process is worth its start


class Chats:
    """The chats of all files, encoded, as documents."""

    def __init__(self, arguments, kept, end, around):
        """`kept`: the files of the tokenizer, by name. `end`: the id of the token after a completion. `around`: the ids before
        and after a text without a template."""
        self.arguments, self.kept, self.end, self.around = arguments, kept, end, around
        self.tokenizer = without_post_processor(kept["tokenizer.json"])
        self.special = special_pattern(self.tokenizer)
        self.problems, self.ignored = Problems("lines"), collections.Counter()
        self.documents, self.population = Documents(), Population()  # population: the conversations, by their tokens
        self.firsts = []  # the first document of each conversation
        self.straddling, self.cut, self.dropped = 0, 0, 0
        self.template, self.ending, self.draw = None, "", None
        self.kind = "pairs" if arguments.pairs else "conversations"
        self.parts, self.no_parts = None, ""  # the template's fixed texts, or why there are none

    def read(self, files):
        processes = min(self.arguments.processes, 1 + sum(path.stat().st_size for path in files) // PER_PROCESS)
        start = self.kept["tokenizer.json"], self.end, self.around, self.checked_source(files), self.arguments.each_turn
        progress = Progress("encoding")
        for results in encoded(self.batches(files, progress), processes, ChatEncoder, *start):
            for result in results:
                self.add(*result)
        progress.end()
        self.problems.report(self.arguments.skip_bad)
        if not len(self.documents):
            raise InputError(f"{', '.join(map(str, files[:3]))}{' ...' if len(files) > 3 else ''}: no document is left")

    def checked_source(self, files):
        """The Source of the chat template if a line needs one, otherwise None. Raises InputError if targets cannot be found."""
        values = (value for path in files for _, value in objects(path))
        needs = answers_need_template if self.arguments.pairs else needs_template
        if not any(needs(value) for value in values if isinstance(value, dict)):
            return None
        folder = tokenizer_file(self.arguments.tokenizer or self.arguments.output).parent
        source = find_source(folder, configuration_of(self.kept), self.arguments.template, self.arguments.date)
        self.template = Template(source)
        try:
            self.parts = chat_parts.parts_of_template(self.template)
        except ValueError as error:
            self.no_parts = str(error)
        turns = Turns(self.template, self.special, self.arguments.each_turn)
        self.ending = check_template(turns, lambda text: self.tokenizer.encode(text, add_special_tokens=False).ids)
        return source

    def batches(self, files, progress):
        batch, characters = [], 0
        for path in files:
            for where, value in objects(path):
                example = self.example_of(where, value)
                batch.append((where, example))
                characters += example.characters() if isinstance(example, (Example, Answers)) else 0
                if characters >= BATCH:
                    yield batch
                    progress.add(characters)
                    batch, characters = [], 0
        if batch:
            yield batch

    def example_of(self, where, value):
        """The Example of a line's object, or the problem, a text, of a bad one."""
        try:
            if isinstance(value, InputError):
                raise value
            if self.arguments.pairs:
                return read_answers(value, self.special, self.ignored)
            return read_example(value, self.special, self.ignored, self.arguments.weight_key)
        except InputError as error:
            return error.args[0]

    def add(self, where, key, weight, documents, straddling, problem):
        """Appends the documents of a conversation, by the rule for long ones."""
        longest, rule = self.arguments.sequence or float("inf"), self.arguments.long
        # Both answers of a pair are in one sequence.
        size = 0 if problem else (sum if self.arguments.pairs else max)(map(len, documents))
        if problem is None and rule == "refuse" and size > longest:
            way = "drop" if self.arguments.pairs else "cut or drop"
            problem = f"has {size} tokens, more than --sequence {longest} (--long {way})"
        if problem is not None:
            self.problems.add(InputError(f"{where}: {problem}"))
            return
        if self.arguments.pairs and size > longest:
            self.dropped += 1
            return
        self.straddling += straddling
        first, before = len(self.documents), len(self.documents.tokens)
        for tokens in documents:
            if len(tokens) > longest:
                tokens = tokens[:longest] if rule == "cut" else []
                if not count_targets(tokens):
                    self.dropped += 1
                    continue
                self.cut += 1
            self.documents.append(tokens, weight)
        if first < len(self.documents):
            self.firsts.append(first)
            self.population.add(key, len(self.documents.tokens) - before)

    def write(self, output):
        """Writes NAME_train.docs, and NAME_val.docs with conversations that are drawn. Returns [(file, documents, tokens)]."""
        self.draw = Draw(self.population, self.arguments.validation, self.arguments.unique, can_cut=False)
        chosen = {TRAINING: [], VALIDATION: [], COPY: []}
        for number, (first, after) in enumerate(zip(self.firsts, [*self.firsts[1:], len(self.documents)])):
            chosen[self.draw.side(number)].extend(range(first, after))
        files = (
            (f"{self.arguments.name}_train.docs", chosen[TRAINING]),
            (f"{self.arguments.name}_val.docs", chosen[VALIDATION]),
        )
        return [
            (file, len(numbers), write_documents(output, file, self.documents, numbers, self.file_kind()))
            for file, numbers in files
            if numbers
        ]

    def file_kind(self):
        return PAIRS if self.arguments.pairs else WEIGHTED if self.arguments.weight_key else PLAIN

    def generation_config(self):
        """The generation_config.json of a model that is trained on these documents."""
        folder = tokenizer_file(self.arguments.tokenizer or self.arguments.output).parent
        own = end_ids.model_end_ids(folder, configuration_of(self.kept), self.tokenizer)
        answer = end_ids.template_end_ids(self.tokenizer, self.special, self.ending) if self.template else [self.end]
        names = {f"{self.arguments.name}_{part}.docs" for part in ("train", "val")}
        former = end_ids.former_end_ids(Path(self.arguments.output), names)
        return end_ids.generation_config(folder, [*answer, *own, self.end, *former])

    def summary(self):
        """Lines for people."""
        tokens, targets = len(self.documents.tokens), count_targets(self.documents.tokens)
        yield (
            f"{len(self.firsts)} {self.kind}, {len(self.documents)} documents, {tokens} tokens, {100 * targets / tokens:.1f} % of "
            f"them targets, longest {max(map(self.documents.length, range(len(self.documents))))}"
        )
        if self.arguments.weight_key:
            weights = self.documents.weights
            yield f"weights from {min(weights):.6g} to {max(weights):.6g}, {sum(weights) / len(weights):.6g} on average"
        if line := self.draw.copies_line(self.kind, "tokens"):
            yield line
        if self.template:
            yield from self.template_summary()
        if self.arguments.sequence and self.arguments.long != "refuse":
            yield f"longer than {self.arguments.sequence} tokens: {self.cut} cut, {self.dropped} dropped"
        if self.straddling:
            yield f"{self.straddling} tokens are only partly in a turn of the assistant, and are not targets"
        if self.ignored:
            keys = ", ".join(f"{key} ({count})" for key, count in sorted(self.ignored.items())[:8])
            yield f"keys of lines that are not used: {keys}"
        if self.problems.count:
            yield f"{self.problems.count} lines are left out"
        if warning := self.draw.warning(self.kind):
            yield warning

    def template_summary(self):
        kind = "generation blocks" if self.template.has_generation else "renderings up to each turn"
        yield f"targets by {kind}, template: {self.template.where}"
        if self.no_parts:
            yield f"kzero generate --chat cannot use this template: {self.no_parts}"
        if self.special.search(self.ending):
            yield f"an answer ends with {json.dumps(self.ending, ensure_ascii=False)}"
        else:
            found = json.dumps(self.ending, ensure_ascii=False) if self.ending else "nothing"
            yield f"an answer ends with {found}, not with a special token of the tokenizer: is this template made for it?"
        if self.template.can_write_date:
            yield f"the chat template can write the date: {self.arguments.date} (--date)"


def write_chats(arguments, files, output, kept, end, around):
    """Writes the document files, without their names; returns (lines for people, the files as Chats.write gives them)."""
    chats = Chats(arguments, kept, end, around)
    chats.read(files)
    written = chats.write(output)
    if not arguments.training_only:
        output.write(end_ids.NAME, chats.generation_config())
        if chats.parts:
            output.write(chat_parts.NAME, chat_parts.as_bytes(chats.parts))
    return [printable(line) for line in chats.summary()], written
