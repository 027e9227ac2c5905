"""The possible contents of a folder after a crash, from the calls that file_calls.c recorded.

POSIX promises only what was synced. Of what was not, each change of a folder's names may be there or not, whatever came before
or after it, and of a file's writes some, none, parts, or only the size that they gave it; a renaming is there as a whole. What
one rank wrote, only that rank can sync: on a network file system it may lie in the memory of the rank's node.

A state that can be met after some call can also be met after any later one, until something is synced or more is asked for
because a checkpoint is reported. The states before each of these therefore stand for those after every call.
"""

import itertools
import json
from pathlib import Path

MAX_NAME_CHANGES = 6  # in one folder, of which all subsets are tried
MAX_FOLDER_STATES = 256  # at one point, of all folders together
MAX_DROPPED_WRITES = 6  # of one file, one at a time
CONTENTS_OF_PARTIAL = 10  # of folders that are being written or removed, for one state of the others: nobody looks into them


def read_log(path):
    """(rank, call, words, bytes) of each record."""
    log, records, at = Path(path).read_bytes(), [], 0
    while at < len(log):
        end = log.index(b"\n", at)
        rank, call, rest = log[at:end].decode().split(" ", 2)
        at = end + 1
        words = rest.split(" ", 1) if call in ("create", "mkdir") else [rest] if call in ("rename", "unlink") else rest.split()
        count = int(words[-1]) if call in ("write", "report") else 0
        records.append((int(rank), call, words, log[at : at + count]))
        at += count
    return records


class Contents:
    """Numbers for the contents of files, so that states compare fast."""

    def __init__(self):
        self.numbers, self.bytes = {}, []

    def number(self, content):
        content = bytes(content)
        if content not in self.numbers:
            self.numbers[content] = len(self.bytes)
            self.bytes.append(content)
        return self.numbers[content]


def changed(content, changes):
    content = bytearray(content)
    for call, offset, data in changes:
        if call == "truncate":
            del content[offset:]
        content.extend(bytes(max(0, offset + len(data) - len(content))))
        content[offset : offset + len(data)] = data
    return content


class File:
    def __init__(self, content=b""):
        self.durable, self.pending = bytes(content), []  # (rank, change)
        self.known = None

    def change(self, rank, change):
        self.pending.append((rank, change))
        self.known = None

    def sync(self, rank):
        self.durable = bytes(changed(self.durable, [c for r, c in self.pending if r == rank]))
        self.pending = [(r, c) for r, c in self.pending if r != rank]
        self.known = None

    def variants(self, contents):
        """Numbers of its possible contents: none of the pending writes, all, half of them, only their size; then others."""
        if self.known is None:
            changes = [c for _, c in self.pending]
            full, half = changed(self.durable, changes), len(changes) // 2
            if not changes:
                self.known = [contents.number(self.durable)] * 4
                return self.known
            call, offset, data = changes[half]
            cut = changed(self.durable, [*changes[:half], (call, offset, data[: len(data) // 2])])
            size = self.durable[: len(full)] + bytes(max(0, len(full) - len(self.durable)))
            dropped = sorted({round(i * (len(changes) - 1) / (MAX_DROPPED_WRITES - 1)) for i in range(MAX_DROPPED_WRITES)})
            others = [changed(self.durable, changes[:i] + changes[i + 1 :]) for i in dropped]
            self.known = [contents.number(c) for c in (self.durable, full, cut, size, *others)]
        return self.known


class Folder:
    def __init__(self):
        self.durable, self.now, self.pending = {}, {}, []  # name: inode; changes {name: inode or None}

    def apply(self, change):
        self.pending.append(change)
        self.now = self.after([change], self.now)

    def sync(self, _):
        self.durable, self.pending = dict(self.now), []

    @staticmethod
    def after(changes, names):
        names = dict(names)
        for change in changes:
            names.update(change)
        return {name: inode for name, inode in names.items() if inode is not None}

    def variants(self):
        """All its names that a crash may leave; the first are what was synced, the second what is there now."""
        count = len(self.pending)
        if count <= MAX_NAME_CHANGES:
            chosen = itertools.product((False, True), repeat=count)
        else:
            first = [[i < n for i in range(count)] for n in range(count + 1)]
            chosen = [
                *first,
                *([i == n for i in range(count)] for n in range(count)),
                *([i != n for i in range(count)] for n in range(count)),
            ]
        found = [self.durable, self.now]
        for choice in chosen:
            names = self.after([c for c, there in zip(self.pending, choice) if there], self.durable)
            if names not in found:
                found.append(names)
        return found


class Disk:
    """Follows a log from a folder that is durable. A record (0, "launch", [], {inode's number: path}) says that the folder was written
    again as it was, "" being the folder itself."""

    def __init__(self, start, contents):
        """`start`: {path: bytes, or None for a folder}, parents first."""
        self.contents, self.inodes, self.by_number = contents, [Folder()], {}
        for path, content in start.items():
            self.add(path, Folder() if content is None else File(content))
        for inode in self.inodes:
            inode.sync(None)

    def find(self, path):
        inode = 0
        for name in path.split("/"):
            inode = self.inodes[inode].now[name]
        return inode

    def parent(self, path):
        folder, _, name = path.rpartition("/")
        return self.inodes[self.find(folder) if folder else 0], name

    def add(self, path, node):
        self.inodes.append(node)
        folder, name = self.parent(path)
        folder.apply({name: len(self.inodes) - 1})
        return len(self.inodes) - 1

    def follow(self, rank, call, words, data):
        if call in ("create", "mkdir"):
            self.by_number[words[0]] = self.add(words[1], File() if call == "create" else Folder())
        elif call == "unlink":
            folder, name = self.parent(words[0])
            folder.apply({name: None})
        elif call == "rename":
            old, new = words[0].split("\t")
            (folder, name), (target, fresh) = self.parent(old), self.parent(new)
            assert folder is target, "a renaming from one folder to another"
            folder.apply({name: None, fresh: folder.now[name]})
        elif call == "launch":
            self.by_number = {number: self.find(path) if path else 0 for number, path in data.items()}
        elif call != "report":
            node = self.inodes[self.by_number[words[0]]]
            if call == "fsync":
                node.sync(rank)
            else:
                # Growing is writing nothing at the end.
                node.change(rank, (call, int(words[1]), data))

    def tree(self, names, contents):
        """{path: content's number, or None for a folder} as `names` (of a folder's inode) and `contents` (of a file's) have it."""
        found, todo = {}, [("", 0)]
        while todo:
            above, inode = todo.pop()
            for name, child in names(inode).items():
                path = above + name
                if isinstance(self.inodes[child], Folder):
                    found[path] = None
                    todo.append((path + "/", child))
                else:
                    found[path] = contents(child)
        return found

    def now(self):
        return self.tree(lambda i: self.inodes[i].now, lambda i: self.inodes[i].variants(self.contents)[1])

    def states(self):
        """Trees that a crash may leave, some of them twice."""
        folders = {i: node.variants() for i, node in enumerate(self.inodes) if isinstance(node, Folder) and node.pending}
        files = {i: node.variants(self.contents) for i, node in enumerate(self.inodes) if isinstance(node, File)}
        count = 1
        for variants in folders.values():
            count *= len(variants)
        if count <= MAX_FOLDER_STATES:
            choices = [dict(zip(folders, choice)) for choice in itertools.product(*folders.values())]
        else:  # one folder at a time, the others as synced or as they are
            choices = [
                {i: variants[others] for i, variants in folders.items()} | {one: variant}
                for others in (0, 1)
                for one in folders
                for variant in folders[one]
            ]
        now = {i: variants[1] for i, variants in folders.items()}
        one_back = [now, *(now | {i: variant} for i, variants in folders.items() for variant in variants[2:] or variants[:1])]

        def tree(choice, content):
            return self.tree(lambda i: choice[i] if i in choice else self.inodes[i].now, content)

        for choice in choices:
            for way in range(4):
                yield tree(choice, lambda i: files[i][way])
        for one, variants in files.items():
            if self.inodes[one].pending:
                for choice in one_back[:8]:
                    for variant in set(variants):
                        yield tree(choice, lambda i: variant if i == one else files[i][1])


def reported(data):
    """The step of a checkpoint that a record of the metrics reports; None for other records."""
    for line in data.splitlines():
        record = json.loads(line)
        if record["event"] == "checkpoint":
            return record["step"]
    return None
