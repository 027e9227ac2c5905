"""The manual page, and completion for bash, zsh and fish, which are made from the tree of commands and options."""

import contextlib
import os
import pty
import re
import select
import subprocess
import time
import unittest
from pathlib import Path

from launch import KZERO, PATIENCE, LaunchTest

ROOT = Path(__file__).parents[3]
HIDDEN = r"\[[0-9;?]*[a-zA-Z]"  # invisible on a terminal


def output(*command, **settings):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=PATIENCE, **settings)
    assert (done.returncode, done.stderr) == (0, ""), f"{command}: {done.returncode}\n{done.stderr}"
    return done.stdout


def help_of(*command):
    return output(KZERO, *command, "--help")


def commands():
    listed = help_of().split("Subcommands:\n")[1]
    found = re.findall(r"(?m)^  (\w+)\b", listed)
    assert {"train", "plan", "man"} <= set(found)
    return found


def options_of(*command):
    """Every option of a command as --help names it."""
    listed = help_of(*command).split("Options:\n")[1].split("Subcommands:")[0]
    found = [name for names in re.findall(r"(?m)^  (-\S+)", listed) for name in names.split(",")]
    assert "--help" in found
    return found


class Manual(LaunchTest):
    @classmethod
    def setUpClass(cls):
        cls.roff = output(KZERO, "man")

    def page(self, *options):
        return subprocess.run(
            ["groff", "-man", "-Kutf8", "-Tutf8", "-P-c", "-rLL=200n", *options],
            input=self.roff,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def section(self, name):
        """The lines below a heading of the page as it is read."""
        shown = self.page().stdout
        found = re.search(rf"(?m)^{name}\n((?:   .*\n|\n)+)", re.sub(r".\x08", "", shown))
        self.assertTrue(found, f"{name} in\n{shown}")
        return found.group(1)

    def test_it_is_set_without_a_warning(self):
        done = self.page("-ww", "-z")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_every_option_and_argument_of_every_command_is_there_with_its_help(self):
        found = " ".join(self.section("COMMANDS").replace("‐\n", "").split())
        parts = dict(zip(commands(), re.split(r" ?kzero \w+ (?=kzero )", " " + found)[1:], strict=True))
        for command, part in parts.items():
            self.assertTrue(part.startswith(f"kzero {command} "), part)
            for option in options_of(command):
                self.assertRegex(part, rf"(?<!\S){option}(?=[\s,])", command)
            for text in re.findall(r"(?:  |\n {20,})([a-z][^\n]+)", help_of(command).split("Options:")[1]):
                self.assertIn(text[1:].rstrip("."), part, command)
        self.assertRegex(parts["plan"], r"--stage INT ZeRO stage[^.]*\. Allowed: from 0 to 3\. Not with deck\.")
        self.assertIn("--dtype float32 | bfloat16 | float16", parts["convert"])

    def test_exit_codes_are_those_of_the_documents(self):
        table = re.search(r"\| code \| meaning \| .* \|\n(?:\|.*\n)+", (ROOT / "docs/running.md").read_text()).group()
        rows = re.findall(r"(?m)^\| (\d+) \| (.*?) \| .* \|$", table)
        self.assertEqual(len(rows), 7)
        shown = " ".join(self.section("EXIT STATUS").split())
        expected = " ".join(f"{code} {text[0].upper()}{text[1:].replace('`', '')}." for code, text in rows)
        self.assertEqual(shown, expected)

    def test_variables_exist_where_the_program_looks_for_them(self):
        sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.cpp") if path.name != "man_page.cpp")
        sources += "".join(path.read_text() for path in (ROOT / "src").rglob("*.hpp"))
        names = re.findall(r"(?m)^ {7}([A-Z_]+)(?:, ([A-Z_]+))?(?:$|  )", self.section("ENVIRONMENT"))
        self.assertGreaterEqual(len(names), 4)
        for name in filter(None, sum(names, ())):
            self.assertTrue(f'"{name}"' in sources, name)

    def test_examples_are_command_lines_that_the_program_knows(self):
        lines = re.findall(r"(?m)^ {7}(\S.*)$", self.section("EXAMPLES"))
        found = [line.split("kzero ")[1].split() for line in lines if "kzero " in line]
        self.assertGreaterEqual(len(found), 5)
        for command, *words in found:
            self.assertIn(command, commands())
            for word in words:
                if word.startswith("--"):
                    self.assertIn(word, options_of(command))


class Shell(LaunchTest):
    """Completions that every shell has to offer. Subclasses define how a shell is asked."""

    def setUp(self):
        super().setUp()
        (self.folder / "folder").mkdir()

    def offers(self, *words):
        raise NotImplementedError

    def check(self, *words, exactly=(), least=()):
        offered = self.offers(*words)
        if exactly:
            self.assertEqual(offered, set(exactly), words)
        self.assertLessEqual(set(least), offered, words)

    def check_all(self):
        self.check("", least=commands())
        for command in commands():
            self.check(command, "--", least=[option for option in options_of(command) if option.startswith("--")])
        self.check("tr", exactly=["train"])
        self.check("train", "deck", exactly=["deck.toml"])
        self.check("convert", "a", "b", "--dtype", "b", exactly=["bfloat16"])
        self.check("completion", "z", exactly=["zsh"])
        self.check("defaults", "--config", "tex", exactly=["text"])


class Candidates(LaunchTest):
    """The command that the scripts call."""

    def ask(self, *words):
        """Each candidate with its description."""
        shown = output(KZERO, "__complete", *words)
        return dict(line.split("\t") for line in shown.splitlines())

    def test_every_command_and_option_comes_with_its_help(self):
        offered = self.ask("")
        for command in commands():
            self.assertIn(offered[command], help_of())
            listed = " ".join(help_of(command).split())
            options = self.ask(command, "--")
            self.assertEqual(set(options_of(command)), set(options), command)
            for name, text in options.items():
                self.assertIn(text, listed, f"{command} {name}")

    def test_every_key_comes_with_its_meaning(self):
        reference = (ROOT / "docs/deck.md").read_text()
        keys = self.ask("train", "deck.toml", "")
        self.assertGreater(len(keys), 90)
        for key, text in keys.items():
            self.assertIn(key.split(".")[-1].rstrip("="), reference)
            self.assertTrue(text, key)

    def test_an_option_is_offered_again_only_if_it_may_be_repeated(self):
        offered = self.ask("convert", "a", "b", "--set", "train.steps=5", "--dtype", "float32", "--")
        self.assertIn("--set", offered)
        self.assertNotIn("--dtype", offered)

    def test_a_word_with_an_equals_sign(self):
        self.assertEqual(set(self.ask("check", "d", "zero.offload=h")), {"zero.offload=none", "zero.offload=host"})
        self.assertEqual(set(self.ask("check", "d", "zero.offload", "=", "h")), {"none", "host"})
        self.assertEqual(set(self.ask("convert", "--set=train.steps=")), set())
        self.assertEqual(set(self.ask("convert", "--dtype=")), {"--dtype=float32", "--dtype=bfloat16", "--dtype=float16"})
        self.assertEqual(self.ask("convert", "--deck=x"), {":.toml": "--deck="})
        self.assertEqual(self.ask("convert", "--set=data.files=x"), {":": "--set=data.files="})

    def test_other_words_have_no_candidates_and_no_messages(self):
        for words in ((), ("nonsense", ""), ("train", "d", "no.key="), ("plan", "--stage", "")):
            with self.subTest(words):
                self.assertEqual(self.ask(*words).keys() - self.ask("").keys(), set())


class Bash(Shell):
    def offers(self, *words):
        script = (
            'source <("$KZERO" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _kzero; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        return set(output("bash", "-c", script, "bash", "kzero", *words, cwd=self.folder).split())

    def test_commands_options_arguments_and_values(self):
        self.check_all()

    def test_what_an_option_takes_does_not_count_as_an_argument(self):
        self.check("plan", "--ranks", "2", "de", exactly=["deck.toml"])
        self.check("plan", "--json", "de", exactly=["deck.toml"])
        self.check("plan", "--ranks", "2", "deck.toml", "zero.st", exactly=["zero.stage="])
        self.check("train", "<(make_deck)", "zero.st", exactly=["zero.stage="])
        self.check("convert", "a", "b", "--set", "train.steps", "=", "5", "--dt", exactly=["--dtype"])
        self.check("convert", "a", "b", "--deck", "=", "de", exactly=["deck.toml"])
        self.check("convert", "a", "b", "--set", "=", "data.files", "=", "tex", exactly=["text"])
        self.check("train", "deck.toml", "train.precision", "=", "b", exactly=["bf16"])


class Fish(Shell):
    def offers(self, *words):
        script = "\"$KZERO\" completion fish | source; complete -C (string join ' ' -- kzero $argv)"
        shown = output(
            "fish", "--no-config", "-c", script, *words, cwd=self.folder, env={**os.environ, "HOME": str(self.folder)}
        )
        return {line.split("\t")[0] for line in shown.splitlines()}

    def test_commands_options_arguments_and_values(self):
        self.check_all()
        self.check("train", "deck.toml", "train.precision=b", exactly=["train.precision=bf16"])
        self.check("train", "deck.toml", "zero.st", exactly=["zero.stage="])
        self.check("train", "deck.toml", "data.files=tex", exactly=["data.files=text"])
        self.check("convert", "a", "b", "--deck=de", exactly=["--deck=deck.toml"])


class Zsh(Shell):
    """A shell at a terminal of its own: what it makes of a line and a tab is what a user gets."""

    def setUp(self):
        super().setUp()
        (self.folder / "_kzero").write_text(output(KZERO, "completion", "zsh"))
        child, self.terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvpe(
                "zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": str(self.folder), "PS1": "", "PS2": ""}
            )
        self.addCleanup(self.end, child)
        self.say(
            "PS1= PS2= RPS1= PROMPT_EOL_MARK=; unsetopt zle_bracketed_paste 2>/dev/null; LISTMAX=1000; autoload -U compinit; "
            "compinit -u -d dump; source ./_kzero; zstyle ':completion:*' list-colors ''\n"
        )
        self.result("ready")

    def end(self, child):
        with contextlib.suppress(OSError):
            os.close(self.terminal)
        os.kill(child, 9)
        os.waitpid(child, 0)

    def say(self, text):
        os.write(self.terminal, text.encode())

    def result(self, word):
        """The output up to a line that is asked for here."""
        self.say(f"print -r -- E''ND{word}\n")
        shown, end = "", time.monotonic() + PATIENCE
        while f"END{word}" not in shown:
            self.assertLess(time.monotonic(), end, shown)
            if select.select([self.terminal], [], [], 1)[0]:
                shown += os.read(self.terminal, 65536).decode(errors="replace")
        return re.sub(HIDDEN, "", shown.replace("\r", "\n"))

    def completed(self, line):
        """The line after a tab, printed by the shell itself."""
        self.say(line + "\t\x01print -r -- DONE: \x05\n")
        shown = self.result("line")
        return re.findall(r"(?m)^DONE: (.*)$", shown)[-1].rstrip()

    def test_lines_are_completed(self):
        for line, expected in (
            ("kzero tr", "kzero train"),
            ("kzero train dec", "kzero train deck.toml"),
            ("kzero train deck.toml zero.sta", "kzero train deck.toml zero.stage="),
            ("kzero train deck.toml train.precision=b", "kzero train deck.toml train.precision=bf16"),
            ("kzero train deck.toml data.files=te", "kzero train deck.toml data.files=text"),
            ("kzero convert a b --deck=de", "kzero convert a b --deck=deck.toml"),
            ("kzero convert a b --set=zero.sta", "kzero convert a b --set=zero.stage="),
            ("kzero convert a b --dt", "kzero convert a b --dtype"),
            ("kzero convert a b --dtype b", "kzero convert a b --dtype bfloat16"),
            ("kzero completion f", "kzero completion fish"),
            ("kzero defaults --config tex", "kzero defaults --config text"),
            ("kzero --ver", "kzero --version"),
        ):
            with self.subTest(line):
                self.assertEqual(self.completed(line), expected)

    def test_the_installed_file_completes_at_the_first_tab(self):
        (self.folder / "folder/_kzero").write_text((ROOT / "cmake/completion.zsh").read_text())
        self.say(f"unfunction _kzero; PATH={Path(KZERO).parent}:$PATH; fpath=($PWD/folder $fpath); compinit -u -D\n")
        self.result("set")
        self.assertEqual(self.completed("kzero insp"), "kzero inspect")


if __name__ == "__main__":
    unittest.main()
