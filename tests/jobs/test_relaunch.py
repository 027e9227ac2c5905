"""Jobs that lose a launch or a host: what is launched again inside the allocation, and what is not. A stand-in for ssh plays the hosts.
Nodes of Slurm are in test_node_loss.py, hosts of a real ssh in tests/cluster."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/unit/app"))
import one_launch  # noqa: E402
from launch import DECK, KZERO, LAUNCHER, PATIENCE, records  # noqa: E402

STEPS = 80

# Instead of ssh: runs the command here, unless the host is down.
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
export HOST=$1
shift
[[ ! -e down_$HOST ]] || exit 255
exec bash -c "$*"
"""

# mpiexec waits for a host whose ssh has failed. This one fails at once.
MPIEXEC = """#!/bin/bash
[[ $1 == -machinefile ]] || exit 2
while read -r host; do
  [[ ! -e down_$host ]] || exit 255
done <"$2"
exec {mpiexec} -launcher-exec ./ssh "$@"
"""

# A launch whose number is in $DIE dies. The host of that place in $LOSE goes down with it.
DIES = """
dies() { [[ " ${DIE-} " == *" $KZERO_LAUNCH "* ]]; }
die() {
  local host=($LOSE)
  [[ -z ${host[KZERO_LAUNCH]-} ]] || touch "down_${host[KZERO_LAUNCH]}"
  kill -9 "$1"
  exit 137
}
"""

# Instead of kzero train: each rank writes a line into the file ranks, and the first rank writes a checkpoint into $CHECKPOINTS.
STAND_IN = """#!/bin/bash
LOSE=${LOSE-}
[[ $1 == train ]] || exec "REAL_KZERO" "$@"
echo "$KZERO_LAUNCH $HOST $*" >>ranks
[[ $PMI_RANK == 0 ]] || exit 0
while (($(grep -c "^$KZERO_LAUNCH " ranks) < PMI_SIZE)); do sleep 0.02; done
checkpoint=${CHECKPOINTS-saved}/step_0000000$((KZERO_LAUNCH + 1))
[[ -z ${CHECKPOINTS-saved} ]] || { mkdir -p "$checkpoint"; touch "$checkpoint/manifest.h5"; }
dies && die $$
((${END_WITH:-0} != 0)) || : "${TELL=0}"  # what ends well says so
[[ -z ${TELL-} ]] || echo "{\\"exit_code\\":$TELL}" >"kzero-$KZERO_JOB.end"
exit "${END_WITH:-0}"
"""

# kzero, killed after fifteen steps of a launch that dies.
KILLED = """#!/bin/bash
if [[ $1 == train ]] && dies; then
  steps() { cat metrics.jsonl 2>/dev/null | grep -c '"event":"step"'; }
  end=$(($(steps) + 15))
  "REAL_KZERO" "$@" &
  while (($(steps) < end)) && kill -0 "$!"; do sleep 0.02; done
  die "$!"
fi
exec "REAL_KZERO" "$@"
"""


class HostsTest(unittest.TestCase):
    """mpiexec.sh on three hosts with a rank each."""

    PROGRAM = STAND_IN

    def setUp(self):
        self.input, never_written = os.pipe()  # a command that reads standard input waits for ever
        self.addCleanup(lambda: [os.close(end) for end in (self.input, never_written)])
        self.folder = Path(tempfile.mkdtemp(prefix="kzero_relaunch_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "text").write_bytes(b"".join(b"%d bottles of beer, " % i for i in range(200)))
        # The number of ranks decides train.micro_batch: 2 on three of them. A quiet machine needs a second for the steps.
        values = {"layers": 2, "hidden": 96, "sequence": 96, "steps": STEPS, "global_batch": 6}
        deck = DECK.replace("micro_batch = 1\n", "").replace('folder = "saved"', 'folder = "saved"\nevery = 10')
        for key, value in values.items():
            deck = re.sub(rf"(?m)^{key} = .*", f"{key} = {value}", deck)
        (self.folder / "deck.toml").write_text(deck)
        self.write_hosts("one", "two", "three  # the last")
        self.write_program("ssh", SSH)
        self.write_program("mpiexec", MPIEXEC.format(mpiexec=shutil.which(LAUNCHER[0])))
        self.write_program("program", self.PROGRAM)

    def write_hosts(self, *lines):
        (self.folder / "hosts").write_text("".join(f"{line}\n" for line in lines))

    def write_program(self, name, text):
        head, rest = text.split("\n", 1)
        (self.folder / name).write_text(head + DIES + rest.replace("REAL_KZERO", KZERO))
        (self.folder / name).chmod(0o755)

    def train(self, *arguments, deck="deck.toml", **variables):
        """The exit code of mpiexec.sh; what it printed is in self.shown."""
        environment = {
            **os.environ,
            "KZERO": str(self.folder / "program"),
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            **variables,
        }
        done = subprocess.run(
            ["bash", ROOT / "jobscripts/mpiexec.sh", "hosts", deck, *arguments],
            cwd=self.folder,
            env=environment,
            timeout=PATIENCE,
            stdin=self.input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.shown = done.stdout
        return done.returncode

    def launches(self):
        """The numbers of the launches after the first one."""
        return [int(n) for n in re.findall(r": launch (\d+): ", self.shown)]

    def ranks(self):
        """[(launch, host, arguments)] of the ranks of the stand-in."""
        lines = (line.split(" ", 2) for line in (self.folder / "ranks").read_text().splitlines())
        return sorted((int(launch), host, arguments) for launch, host, arguments in lines)

    def hosts(self):
        """The hosts of the ranks of each launch of the stand-in."""
        ranks = self.ranks()
        return [[host for launch, host, _ in ranks if launch == n] for n in range(ranks[-1][0] + 1)]


class Bits(HostsTest):
    PROGRAM = KILLED

    def test_the_losses_of_two_hosts_change_no_bit(self):
        """The training has a checkpoint every ten steps. The first of the hosts has rank 0."""
        self.assertEqual(self.train(DIE="0 1", LOSE="one three"), 0, self.shown)
        self.assertEqual([start["grid"]["data"] for start in records(self.folder / "metrics.jsonl", "start")], [3, 2, 1])
        self.assertEqual(self.shown.count("resumes bit for bit"), 2)
        one_launch.expect_its_bits(self, "3", STEPS)


def runs(pid):
    """Whether a process exists and has not ended; an ended one may wait for long to be collected."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class LaunchedAgain(HostsTest):
    def test_a_lost_host_is_left_out(self):
        self.assertEqual(self.train("train.seed=3", DIE="0", LOSE="two"), 0, self.shown)
        self.assertIn("launch 1: 2 ranks on 2 of 3 nodes (no answer from two)", self.shown)
        self.assertEqual(self.hosts(), [["one", "three", "two"], ["one", "three"]])

    def test_the_micro_batch_stays_what_it_was(self):
        self.assertEqual(self.train("train.seed=3", DIE="0", LOSE="two"), 0, self.shown)
        first, second = ({words for launch, _, words in self.ranks() if launch == n} for n in (0, 1))
        self.assertEqual(second, {f"{words} train.micro_batch=2" for words in first})

    def test_a_rank_that_dies_is_launched_again_if_there_is_a_new_checkpoint(self):
        self.assertEqual(self.train(DIE="0"), 0, self.shown)
        self.assertIn("launch 1: 3 ranks on 3 of 3 nodes\n", self.shown)

    def test_a_host_lost_before_the_first_checkpoint_counts_as_well(self):
        self.assertEqual(self.train(DIE="0", LOSE="three", CHECKPOINTS=""), 0, self.shown)
        self.assertEqual(self.launches(), [1])

    def test_ranks_are_a_multiple_of_the_tensor_groups(self):
        self.write_hosts("one", "two", "three", "four")
        arguments = ("grid.tensor=2", "model.heads=4", "train.global_batch=4", "train.micro_batch=1")
        self.assertEqual(self.train(*arguments, DIE="0", LOSE="two"), 0, self.shown)
        self.assertIn("launch 1: 2 ranks on 2 of 4 nodes (no answer from two)", self.shown)
        self.assertEqual(self.hosts()[1], ["one", "three"])

    def test_a_host_may_have_several_ranks(self):
        self.write_hosts("# two hosts", "one:2", "", "two 1")
        self.assertEqual(self.train(DIE="0", LOSE="two"), 0, self.shown)
        self.assertIn("launch 1: 2 ranks on 1 of 2 nodes (no answer from two)", self.shown)
        self.assertEqual(self.hosts(), [["one", "one", "two"], ["one", "one"]])

    def test_ranks_that_the_lost_launch_left_are_ended_first(self):
        """A rank whose launcher is gone and that does not end by itself would write while the next launch does."""
        # The pipes of the launcher are closed, as it would wait for them.
        leave = '(for fd in {3..60}; do eval "exec $fd>&-"; done; echo $BASHPID >>left; exec setsid sleep 1000) </dev/null >/dev/null 2>&1 &'
        self.write_program("program", STAND_IN.replace("dies &&", f"dies && {{ {leave} }}\ndies &&"))

        def left():
            return (self.folder / "left").read_text().split()

        self.addCleanup(lambda: subprocess.run(["kill", "-9", *left()], stderr=subprocess.DEVNULL))
        self.assertEqual(self.train(DIE="0"), 0, self.shown)
        self.assertEqual(self.launches(), [1])
        self.assertTrue(left())
        self.assertEqual([pid for pid in left() if runs(pid)], [])


class NotLaunchedAgain(HostsTest):
    def expect_none(self, code, *said):
        """Expects one launch. The launcher's code for a killed rank varies."""
        self.assertNotEqual(code, 0)
        self.assertEqual(self.launches(), [], self.shown)
        self.assertIn(f"exit code {code}\n", self.shown)
        for text in said:
            self.assertIn(text, self.shown)

    def test_exit_codes_that_another_launch_does_not_change(self):
        for code in (0, 2, 3, 4, 5, 75):
            with self.subTest(code):
                self.assertEqual(self.train(END_WITH=str(code)), code)
                self.assertEqual(self.launches(), [])
                self.assertNotIn("asking", self.shown)

    def test_a_program_that_wrote_how_it_ended(self):
        """As it does when a node has computed wrongly."""
        self.expect_none(self.train(END_WITH="1", TELL="1"))
        self.assertNotIn("asking", self.shown)

    def test_a_failure_that_repeats(self):
        self.expect_none(self.train(DIE="0", CHECKPOINTS=""), "the nodes of the launch answer, and it wrote no checkpoint")

    def test_a_launcher_that_lost_the_exit_code(self):
        self.assertEqual(self.train(TELL=""), 1, self.shown)
        self.assertEqual(self.launches(), [1, 2, 3])
        self.assertIn("launch 0 ended with code 1, and the program did not write how", self.shown)

    def test_after_the_given_number_of_launches(self):
        for most, launched in (("0", []), ("2", [1, 2])):
            with self.subTest(most):
                self.assertNotEqual(self.train(DIE="0 1 2 3", KZERO_MAX_RELAUNCH=most), 0)
                self.assertEqual(self.launches(), launched, self.shown)
                self.assertIn(f"not launched again: KZERO_MAX_RELAUNCH is {most}", self.shown)

    def test_three_launches_are_the_default(self):
        self.assertNotEqual(self.train(DIE="0 1 2 3 4 5"), 0)
        self.assertEqual(self.launches(), [1, 2, 3])

    def test_what_does_not_fit_the_memory_of_the_hosts_left(self):
        """Two ranks hold more than three. Here the plan contains so much that no machine has it."""
        self.write_program(
            "program",
            STAND_IN.replace(
                "[[ $1 == train ]]",
                """
if [[ $1 == plan && $* == *"--ranks 2"* ]]; then
  "REAL_KZERO" "$@" | sed 's/"total_bytes": [0-9]*/"total_bytes": 1152921504606846976/'
  exit
fi
[[ $1 == train ]]""",
            ),
        )
        code = self.train(DIE="0", LOSE="two")
        self.expect_none(
            code, "2 ranks on 2 of 3 nodes need 1.0EiB a node, and one has ", "lost two; start it again for the rest: bash "
        )

    def test_a_grid_that_the_deck_fixes(self):
        code = self.train("grid.data=3", DIE="0", LOSE="two")
        self.expect_none(code, "not launched again on 2 ranks: kzero: ", "'grid.data=3'")

    def test_fewer_ranks_than_a_tensor_group(self):
        arguments = ("grid.tensor=3", "train.global_batch=4", "train.micro_batch=1")
        code = self.train(*arguments, DIE="0", LOSE="two")
        self.expect_none(code, "the 2 nodes that answer have fewer ranks than grid.tensor = 3")

    def test_a_job_that_is_to_stop(self):
        self.write_program("program", STAND_IN.replace("dies &&", "touch kzero-$KZERO_JOB.stop; dies &&"))
        self.expect_none(self.train(DIE="0"))
        self.assertNotIn("asking", self.shown)

    def test_where_no_host_answers(self):
        self.write_program(
            "mpiexec",
            "#!/bin/bash\n[[ ! -e ranks ]] || exit 255\n" + MPIEXEC.format(mpiexec=shutil.which(LAUNCHER[0])).split("\n", 1)[1],
        )
        self.expect_none(self.train(DIE="0"), "not launched again: no node answers")
        self.assertNotIn("start it again", self.shown)


class Decks(HostsTest):
    """The checkpoints of a launch are found where the deck has them."""

    def test_forms_of_the_folder(self):
        plain = (self.folder / "deck.toml").read_text()
        table = '[checkpoint]\nfolder = "saved"\nevery = 10\n'
        self.assertIn(table, plain)
        for text, arguments, folder in (
            (plain.replace(table, "[checkpoint]  # kept\nevery = 10\nfolder='a folder'  # here\n"), [], "a folder"),
            ('checkpoint.folder = "dotted"\ncheckpoint.every = 10\n' + plain.replace(table, ""), [], "dotted"),
            (plain, ["checkpoint.folder=given"], "given"),
            (plain.replace("[data]\n", '[data]\n# folder = "no"\n'), ['checkpoint.folder="quoted"'], "quoted"),
        ):
            with self.subTest(folder):
                (self.folder / "deck.toml").write_text(text)
                self.assertEqual(self.train(*arguments, DIE="0", CHECKPOINTS=folder), 0, self.shown)
                self.assertEqual(self.launches(), [1])

    def test_a_deck_whose_name_awk_would_take_for_a_setting(self):
        (self.folder / "deck.toml").rename(self.folder / "lr=1.toml")
        self.assertEqual(self.train(deck="lr=1.toml", DIE="0"), 0, self.shown)
        self.assertEqual(self.launches(), [1])

    def test_a_folder_that_is_not_the_decks(self):
        self.assertNotEqual(self.train(DIE="0", CHECKPOINTS="another"), 0)
        self.assertEqual(self.launches(), [])


class Usage(HostsTest):
    def test_what_it_needs_is_said(self):
        self.write_hosts("# none")
        self.assertEqual(self.train(), 2)
        self.assertIn("hosts: lists no hosts; expected lines of the form NAME or NAME:RANKS", self.shown)
        done = subprocess.run(
            ["bash", ROOT / "jobscripts/mpiexec.sh", "hosts"], cwd=self.folder, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: bash jobscripts/mpiexec.sh HOSTFILE DECK.toml", done.stderr)

    def test_a_full_disk_does_not_move_all_ranks_to_one_host(self):
        mktemp = self.folder / "mktemp"
        mktemp.write_text(
            '#!/bin/bash\n[[ $# == 0 ]] || exec /usr/bin/mktemp "$@"\nln -sf /dev/full list && echo "$PWD/list"\n'
        )
        mktemp.chmod(0o755)
        self.assertEqual(self.train(), 4, self.shown)
        self.assertIn("list: cannot be written; without the list of hosts mpiexec would start all ranks here", self.shown)
        self.assertFalse((self.folder / "ranks").exists())

    def test_a_line_of_the_host_file_runs_no_command(self):
        for line in (
            "two:HOME[$(touch${IFS}ran)]",
            "two HOME[$(touch${IFS}ran)]",
            "x$(touch${IFS}ran)",  # before bash 5.2
            "HOME[$(touch ran)]",
            "two:08",
            "two:0",
            "two:99999",
            "two:1 more",
            "-two",
            "../two",
        ):
            with self.subTest(line):
                self.write_hosts("one", line)
                self.assertEqual(self.train(), 2, self.shown)
                self.assertRegex(self.shown, r"^hosts: line 2 is \S.*; expected NAME or NAME:RANKS")
                self.assertFalse((self.folder / "ran").exists())

    def test_a_number_in_the_environment_runs_no_command(self):
        for name in ("KZERO_MAX_RESTARTS", "KZERO_MAX_RELAUNCH", "KZERO_FIRST_RANKS"):
            for value in ("HOME[$(touch ran)]", "-1", "three"):
                with self.subTest(name, value=value):
                    self.assertEqual(self.train(DIE="0", **{name: value}), 2, self.shown)
                    self.assertRegex(self.shown, rf"^{name} is \S+.*; expected a whole number")
                    self.assertFalse((self.folder / "ran").exists())

    def test_a_stop_in_time_says_how_to_go_on(self):
        self.assertEqual(self.train(END_WITH="75"), 75)
        self.assertIn("stopped in time with a checkpoint; start it again for the rest: bash ", self.shown)


if __name__ == "__main__":
    unittest.main()
