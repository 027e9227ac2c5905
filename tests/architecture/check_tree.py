"""Checks that src/ keeps to its levels and rules; prints every breach and exits with 1 if there is one.

    python3 check_tree.py SRC ALLOWED_EDGES

ALLOWED_EDGES: a line "without Kokkos: folders", then "level N" lines, and under each "folder: what it may include" (folders, or
single headers).
"""

import re
import sys
from pathlib import Path

from includes import reached

LONGEST_FUNCTION = 60
GENERATED = {"version_info.hpp"}
WITHOUT_KOKKOS = "without Kokkos:"
WORLD_USERS = {"runtime", "grid"}
DEVICE_NAMES = re.compile(
    r"\b(cuda[A-Z_]|cublas[A-Z_]|cudnn[A-Z_]|nccl[A-Z]|__CUDA|KOKKOS_ENABLE_CUDA\b|Kokkos::Cuda"
    r"|hip[A-Z]|hipblas[A-Z]|__HIP|KZERO_HIP|KOKKOS_ENABLE_HIP\b|Kokkos::HIP)\w*"
)
DEVICE_FILES = re.compile(r"cuda|cublas|cudnn|nccl|_hip\.|^host_device\.hpp$")
LAUNCH = re.compile(r"\b(?:parallel_(?:for|reduce|scan)|fence)\s*\(\s*")
RANGE_POLICY = re.compile(r"\bKokkos::(?:MD)?RangePolicy\b")
NESTED_RANGE = re.compile(r"Kokkos::(?:Team|Thread)\w*Range\b")
DECLARATIONS = re.compile(r"[ \t]*\n(?:(?:class|struct) \w+;\n)+\}")  # what is left of a namespace that only declares types


def read_edges(path):
    """{folder: (level, set of folders and headers it may include)}, the folders without Kokkos, and the list's own mistakes."""
    edges, without_kokkos, problems, level = {}, set(), [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if line.startswith(WITHOUT_KOKKOS):
            without_kokkos |= set(line.removeprefix(WITHOUT_KOKKOS).split())
        elif line.startswith("level "):
            level = int(line.split()[1])
        elif line:
            folder, allowed = line.split(":", 1)
            edges[folder] = (level, set(allowed.split()))
            for target in sorted(edges[folder][1]):
                name = target.split("/")[0]
                if name not in edges or edges[name][0] >= level:
                    problems.append(f"{path.name}:{number}: {folder} (level {level}) may not use {target}: not a lower level")
    problems += [
        f"{path.name}: the line \"{WITHOUT_KOKKOS}\" names {name}, which is not a folder"
        for name in sorted(without_kokkos - edges.keys())
    ]
    return edges, without_kokkos, problems


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def without_comments(text):
    pattern = r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\')'
    return re.sub(pattern, lambda m: m.group() if m.group(1) else blank(m), text, flags=re.S)


def without_strings(text):
    text = re.sub(r'R"(\w*)\(.*?\)\1"', blank, text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def long_functions(text):
    """(line, length) of each body over the limit. `text` has no comments and strings; nested braces count as one body."""
    scopes, head = [], 0
    for match in re.finditer(r"[{};]|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", text, flags=re.M):
        token, at = match.group()[0], match.start()
        if token == "{":
            before = text[head:at]
            if "function" in scopes or ("(" in before and not re.search(r"\bnamespace\b", before)):
                scopes.append("function")
                if scopes.count("function") == 1:
                    start = at
            else:
                scopes.append("scope")
        elif token == "}" and scopes:
            if scopes.pop() == "function" and "function" not in scopes:
                length = line_of(text, at) - line_of(text, start) + 1
                if length > LONGEST_FUNCTION:
                    yield line_of(text, start), length
        head = match.end()


class File:
    def __init__(self, path, source):
        self.path = path
        self.name = path.relative_to(source).as_posix()
        self.folder = self.name.split("/")[0]
        raw = path.read_text()
        self.text = without_comments(raw)
        self.code = without_strings(self.text)


def check_includes(file, source, edges):
    allowed = edges[file.folder][1]
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', file.text, flags=re.M):
        header = match.group(1)
        line = line_of(file.text, match.start())
        folder = header.split("/")[0]
        if header in GENERATED:
            continue
        if not (source / header).is_file():
            yield line, f"there is no {header} in src/; kzero's headers are included as \"folder/file.hpp\""
        elif folder != file.folder and folder not in allowed and header not in allowed:
            yield line, f"{file.folder} may not include {header}"


def check_kokkos(file, source, without_kokkos):
    if file.folder in without_kokkos:
        found = sorted(name for name in reached(file.path, source) if name.startswith("Kokkos_"))
        if found:
            yield 1, f"reaches {found[0]}; {file.folder} has to do without Kokkos' headers"


def check_namespaces(file, edges):
    expected = "kzero" if file.folder == "base" else f"kzero::{file.folder}"
    # A folder may declare the types of one that it may include a header of.
    declared = {edge.split("/")[0] for edge in edges[file.folder][1]}
    for match in re.finditer(r"^[ \t]*(?:inline[ \t]+)?namespace[ \t]+([\w:]+)[ \t]*\{", file.code, flags=re.M):
        name = match.group(1)
        if name.removeprefix("kzero::") in declared and DECLARATIONS.match(file.code, match.end()):
            continue
        if name.startswith("kzero") and name != expected and not name.startswith(expected + "::"):
            yield line_of(file.code, match.start()), f"namespace {name}; in this folder it is {expected}"


def check_functions(file):
    for line, length in long_functions(file.code):
        yield line, f"a function of {length} lines; the limit is {LONGEST_FUNCTION}"


def check_names(file):
    if file.folder not in WORLD_USERS:
        for match in re.finditer(r"\bMPI_COMM_WORLD\b", file.code):
            yield line_of(file.code, match.start()), "MPI_COMM_WORLD outside runtime and grid; take the group that is passed"
    if not DEVICE_FILES.search(file.path.name):
        for match in DEVICE_NAMES.finditer(file.code):
            yield line_of(file.code, match.start()), f"{match.group()} in a file not named after its backend"


def check_labels(file):
    prefix = f"kzero::{file.folder}::"
    for match in LAUNCH.finditer(file.text):
        argument = file.text[match.end() :]
        launches = "parallel" in match.group()
        declared = not launches and not re.search(r"(?:\.|->|Kokkos::)$", file.text[: match.start()])
        if declared or NESTED_RANGE.match(argument) or re.match(r"label\b", argument):
            continue
        if not argument.startswith('"'):
            yield line_of(file.text, match.start()), f'a launch or fence without a literal label "{prefix}..."'
    for match in re.finditer(r'"(kzero::\w+::[^"\n]*)"', file.text):
        if not re.fullmatch(re.escape(prefix) + r"[a-z0-9_]*", match.group(1)):
            yield line_of(file.text, match.start()), f'label "{match.group(1)}"; in this folder it is "{prefix}verb_noun"'


def template_arguments(text):
    """The text from '<' to its '>', or nothing where there is none."""
    depth = 0
    for match in re.finditer(r"[<>]", text if text.startswith("<") else ""):
        depth += 1 if match.group() == "<" else -1
        if depth == 0:
            return text[: match.end()]
    return ""


def check_policies(file):
    for match in RANGE_POLICY.finditer(file.code):
        if not re.search(r"\bIndexType<", template_arguments(file.code[match.end() :].lstrip())):
            yield (
                line_of(file.code, match.start()),
                f"{match.group()} without an IndexType counts in 32 bits on devices; take tensor::Range",
            )


def check_links(source, edges):
    """The link graph of src/*/CMakeLists.txt has no edge that the includes may not have."""
    for path in sorted(source.glob("*/CMakeLists.txt")):
        folder = path.parent.name
        used = re.search(r"kzero_folder\([^)]*?\bUSES\s+([a-z_\s]+)", path.read_text())
        allowed = {target.split("/")[0] for target in edges.get(folder, (0, set()))[1]}
        for name in used.group(1).split() if used else ():
            if name not in allowed:
                yield f"{folder}/CMakeLists.txt:1: {folder} may not link to {name}"


def check_tree(source, edges_path):
    edges, without_kokkos, problems = read_edges(edges_path)
    problems += check_links(source, edges)
    paths = sorted(p for p in source.rglob("*") if p.suffix in (".hpp", ".cpp"))
    if not paths:
        problems.append(f"{source}: no sources")
    for path in paths:
        file = File(path, source)
        if file.folder not in edges:
            problems.append(f"{file.name}:1: folder {file.folder} is not in {edges_path.name}")
            continue
        found = [
            *check_includes(file, source, edges),
            *check_kokkos(file, source, without_kokkos),
            *check_namespaces(file, edges),
            *check_functions(file),
            *check_names(file),
            *check_labels(file),
            *check_policies(file),
        ]
        problems += [f"{file.name}:{line}: {text}" for line, text in sorted(found)]
    return problems


if __name__ == "__main__":
    breaches = check_tree(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(breaches) or "every include, namespace, size, name, label and policy is as it should be")
    sys.exit(1 if breaches else 0)
