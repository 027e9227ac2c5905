"""Checks that CMake, the Spack recipe and spack.yaml ask for the same libraries; prints every difference, exits with 1.

    python3 check_dependencies.py ROOT

What counts: name, least version, and whether it is needed always, for the tests or for CUDA.
"""

import ast
import re
import sys
from pathlib import Path

RECIPE = "spack_repo/kzero/packages/kzero/package.py"
# CMake's name, where Spack's is not the same in small letters
SPACK_NAMES = {"nlohmann_json": "nlohmann-json", "GTest": "googletest", "CUDAToolkit": "cuda", "ICU": "icu4c"}
PROVIDED = {"mpich": "mpi", "openblas": "blas", "pkgconf": "pkgconfig"}
BUILD_TOOLS = {"cmake", "pkgconfig"}
LANGUAGES = {"c", "cxx"}
# Of the environment alone: what developers and plots use
DEVELOPMENT = {"ninja", "ccache", "llvm", "benchmark"}
PYTHON = {"python", "py-h5py", "py-jinja2", "py-matplotlib", "py-numpy", "py-tokenizers", "py-zstandard"}
CONDITIONS = {
    "KZERO_TESTS": "tests",
    "Kokkos_ENABLE_CUDA": "cuda",
    "+tests": "tests",
    "+cuda": "cuda",
    "+nccl": "cuda",
    "+cudnn": "cuda",
}


def spec_of(text):
    """(name, least version) of a spec; a version that is not a range is its own least one."""
    name, version = re.match(r"([a-z0-9-]+)(?:@=?([\d.]+))?", text.strip()).groups()
    return PROVIDED.get(name, name), version or ""


def cmake_needs(root):
    """{name: (least version, condition)} of what CMake looks for."""
    least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text()).group(1)
    needs = {"cmake": (least, "")}
    for file, outer in (("Dependencies.cmake", ""), ("MpiAndHdf5.cmake", ""), ("Cuda.cmake", "cuda")):
        condition = [outer]
        for line in (root / "cmake" / file).read_text().splitlines():
            if match := re.match(r"\s*if\((.*)\)", line):
                condition.append(CONDITIONS.get(match.group(1), condition[-1]))
            elif re.match(r"\s*endif\(", line):
                condition.pop()
            elif match := re.match(r"\s*(?:find_package|pkg_check_modules)\((\w+)(?: ([\d.]+))?", line):
                name, version = match.groups()
                needs[SPACK_NAMES.get(name, name.lower())] = (version or "", condition[-1])
    return needs


def recipe_needs(root):
    """The same of the recipe: the first depends_on of a name with a fixed text says its version and condition."""
    needs = {}

    def text_of(node):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            return node.values[0].value
        return None

    def visit(nodes, condition):
        for node in nodes:
            if isinstance(node, ast.With):
                text = text_of(node.items[0].context_expr.args[0])
                visit(node.body, CONDITIONS.get(text, condition))
            elif isinstance(node, ast.For):
                visit(node.body, condition)
            elif isinstance(node, ast.Expr) and getattr(getattr(node.value, "func", None), "id", "") == "depends_on":
                call = node.value
                when = next((text_of(k.value) for k in call.keywords if k.arg == "when"), "")
                found = CONDITIONS.get(when.split()[0] if when else "", condition)
                name, version = spec_of(text_of(call.args[0]))
                needs.setdefault(name, (version, found))

    tree = ast.parse((root / RECIPE).read_text())
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    visit(body, "")
    return {name: need for name, need in needs.items() if name not in LANGUAGES}


def environment_needs(root):
    """{name: least version} of the environment's specs."""
    specs = re.search(r"^  specs:\n((?:  - .*\n)+)", (root / "spack.yaml").read_text(), re.M).group(1)
    return dict(spec_of(line.strip()[2:].strip('"')) for line in specs.splitlines())


def unquoted(root):
    """Lines of spack.yaml that YAML takes for a key, as they have a colon before a blank or at their end and no quotes."""
    for number, line in enumerate((root / "spack.yaml").read_text().splitlines(), 1):
        if re.match(r"  - [^\"'].*:(\s|$)", line.split("  #")[0]):
            yield f"spack.yaml:{number}: {line.strip()} needs quotes"


def check_dependencies(root):
    cmake, recipe, environment = cmake_needs(root), recipe_needs(root), environment_needs(root)
    problems = list(unquoted(root))

    def compare(where, found, wanted, strangers=frozenset()):
        for name in sorted(set(wanted) - set(found)):
            problems.append(f"{where} lacks {name}")
        for name in sorted(set(found) - set(wanted) - strangers):
            problems.append(f"{where} has {name}, which nothing asks for")
        for name in sorted(set(found) & set(wanted)):
            if found[name] != wanted[name]:
                problems.append(f"{where}: {name} {found[name]}, elsewhere {wanted[name]}")

    in_cmake = {name: ((need[0] or recipe.get(name, need)[0]), need[1]) for name, need in cmake.items()}  # CMake may not say
    compare("the recipe", recipe, in_cmake, PYTHON)
    compare("spack.yaml", environment, {n: v for n, (v, condition) in recipe.items() if condition != "cuda"}, DEVELOPMENT)
    return problems


if __name__ == "__main__":
    breaches = check_dependencies(Path(sys.argv[1]))
    print("\n".join(breaches) or "CMake, the recipe and spack.yaml agree")
    sys.exit(1 if breaches else 0)
