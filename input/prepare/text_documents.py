"""Makes document files of text for prepare.py: documents in which the tokens of the text and the end are targets.

A document begins with the tokens that the tokenizer adds before a text, or with the end token, which are not targets. One that is too
long is divided. Each further piece begins with the last token of the piece before it, so that each token is a target once.
"""

from array import array

from .document_file import TARGET, Documents, write_documents
from .documents import InputError
from .encoding import Encoder


class DocumentEncoder(Encoder):
    @classmethod
    def encode(cls, batch):
        """(side, [(whether it begins a document, its tokens)], bytes of text, characters of text)."""
        texts = [text for text, _, _ in batch]
        parts = [(is_start, array("I", ids)) for (_, is_start, _), ids in zip(batch, cls.ids_of(texts))]
        return batch[0][2], parts, sum(len(text.encode()) for text in texts), sum(map(len, texts))


def pieces(tokens, beginning, longest):
    """The pieces of a document of these tokens, with their targets marked. `beginning`: tokens at its beginning that are no targets.
    `longest`: the most tokens of a piece, above `beginning`."""
    marked = array("I", (token | TARGET for token in tokens))
    marked[:beginning] = tokens[:beginning]
    yield marked[:longest]
    for at in range(longest, len(tokens), longest - 1):
        yield tokens[at - 1 : at] + marked[at : at - 1 + longest]


class TextDocuments:
    """The documents of training or of validation, in memory until finish() writes them."""

    def __init__(self, output, name, around, end, longest):
        """`around`: the ids that the tokenizer adds before and after a text. `longest`: the most tokens of a document; None: any."""
        before, after = around
        self.output, self.name = output, f"{name}.docs"
        self.before, self.after = before or [end], after if after[-1:] == [end] else [*after, end]
        self.longest = longest
        if longest and longest <= len(self.before):
            raise InputError(f"--sequence {longest}: a document has at least {len(self.before) + 1} tokens")
        self.documents, self.open = Documents(), None
        self.divided = 0  # documents that were too long
        self.files = 0

    @property
    def count(self):
        return len(self.documents.tokens)

    def write(self, parts):
        """Appends [(whether it begins a document, tokens)]."""
        for is_start, tokens in parts:
            if is_start:
                self.close()
                self.open = array("I", self.before)
            self.open.extend(tokens)

    def close(self):
        """Ends the document that is open."""
        if self.open is None:
            return
        self.open.extend(self.after)
        length = len(self.open)
        self.divided += length > (self.longest or length)
        for piece in pieces(self.open, len(self.before), self.longest or length):
            self.documents.append(piece)
        self.open = None

    def finish(self):
        self.close()
        if len(self.documents):
            self.files = 1
            write_documents(self.output, self.name, self.documents, range(len(self.documents)))
