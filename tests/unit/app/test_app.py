"""kzero as its users meet it. Arguments: names of test classes; none: all."""

import json
import os
import signal
import time
import unittest
from pathlib import Path
from unittest import mock

from launch import FOR_DEVICES, PATIENCE, USES_NCCL, LaunchTest, arrays_of, codes_without_a_failure, records, steps_of

CATEGORIES = {"parameters", "gradients", "optimizer", "activations", "recompute", "buckets", "workspace", "io"}
if FOR_DEVICES:
    CATEGORIES.add("offloaded")  # micro-batches in transit, copies of the state for checkpoints


class Commands(LaunchTest):
    def test_help_and_version(self):
        self.assertIn("train", self.expect(self.run_kzero("--help"), 0).stdout)
        shown = self.expect(self.run_kzero("--version"), 0).stdout
        self.assertRegex(shown, r"^kzero \d")
        self.assertRegex(shown, r"\nmpi .*MPI")

    def test_bad_command_lines(self):
        for arguments in (
            [],
            ["trian"],
            ["train"],
            ["train", "deck.toml", "--frobnicate"],
            ["check"],
            ["check", "deck.toml", "--ranks", "0"],
            ["convert", "saved"],
        ):
            with self.subTest(arguments):
                self.expect(self.run_kzero(*arguments), 2)

    def test_a_bad_command_line_is_reported_once(self):
        self.expect(self.run_kzero("train", "--frobnicate", "deck.toml", ranks=2), 2, "--frobnicate")

    def test_defaults_are_a_sound_deck(self):
        (self.folder / "defaults.toml").write_text(self.expect(self.run_kzero("defaults"), 0).stdout)
        checked = self.expect(self.run_kzero("check", "defaults.toml", "data.files=text"), 0)
        self.assertEqual(checked.stdout, "defaults.toml: no errors\n")
        self.assertIn("| `global_batch` |", self.expect(self.run_kzero("defaults", "--reference"), 0).stdout)

    def test_check_reports_all_errors_with_their_places(self):
        (self.folder / "bad.toml").write_text("[model]\nlayres = 3\n[train]\nsteps = 'many'\n")
        self.expect(self.run_kzero("check", "bad.toml"), 2, "bad.toml:2:1", "bad.toml:4:", "model.layers")
        self.expect(self.run_kzero("check", "deck.toml"), 0)
        self.expect(
            self.run_kzero("check", "deck.toml", "train.micro_batch=32"),
            2,
            "train.global_batch must be a multiple of train.micro_batch = 32",
        )
        self.expect(
            self.run_kzero("check", "deck.toml", "--ranks", "5"),
            2,
            "train.global_batch = 4 has 4 micro-batches of 1, too few for 5",
        )

    def test_inspect_describes_and_verifies(self):
        self.expect(self.train(ranks=2), 0)
        for path in ("saved", "saved/step_00000006"):
            short = self.expect(self.run_kzero("inspect", path), 0).stdout
            self.assertNotIn("wte.weight", short)
            self.assertLess(short.count("\n"), 15, short)
            self.assertIn("wte.weight", self.expect(self.run_kzero("inspect", path, "--tensors"), 0).stdout)
            self.assertIn("every checksum agrees", self.expect(self.run_kzero("inspect", path, "--verify"), 0).stdout)
        shard = self.folder / "saved/step_00000006/shard_00001.h5"
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
        self.assertIn("shard_00001.h5", self.expect(self.run_kzero("inspect", "saved", "--verify"), 4).stderr)
        self.expect(self.run_kzero("inspect", "nowhere"), 4, "nowhere")


def on_device(planned):
    """Bytes of a plan, on devices without what is on the host."""
    return planned["total_bytes"] - planned["memory"].get("offloaded", 0)


class Plan(LaunchTest):
    """kzero plan, never launched with MPI."""

    RATES = ("--tflops", "1", "--bandwidth", "1GB", "--memory-bandwidth", "10GB")

    def plan(self, *arguments):
        return json.loads(self.expect(self.run_kzero("plan", *arguments, "--json"), 0).stdout)

    def test_the_run_holds_and_sends_what_was_planned(self):
        for ranks, precision in ((1, "fp32"), (2, "fp32"), (2, "bf16"), (4, "fp16")):
            with self.subTest(f"{ranks} ranks, {precision}"):
                metrics = f"{ranks}{precision}.jsonl"
                changes = (f"train.precision={precision}", f"checkpoint.folder=saved_{ranks}_{precision}")
                run = self.expect(self.train(*changes, f"run.metrics={metrics}", ranks=ranks), 0)
                shared = ["run.communicator=mpi"] if "messages go over MPI" in run.stdout else []  # by ranks on one GPU
                (planned,) = self.plan("deck.toml", *changes, *shared, "--ranks", ranks, *self.RATES)
                (start,) = records(self.folder / metrics, "start")
                (end,) = records(self.folder / metrics, "end")
                for key in ("parameters", "grid", "stage", "precision", "threads"):
                    self.assertEqual(planned[key], start[key], key)
                self.assertEqual(planned["ranks"], ranks)
                self.assertEqual(planned["traffic"], end["traffic"])
                self.assertEqual(set(planned["memory"]), CATEGORIES)
                for name, planned_bytes in planned["memory"].items():
                    peaks = [row["categories"][name]["peak_bytes"] for row in end["memory"]]
                    self.assertEqual(planned_bytes, max(peaks), name)
                self.assertEqual(planned["total_bytes"], sum(planned["memory"].values()))

    def test_messages_between_nodes_overlap_and_the_plan_knows(self):
        def memory(*arguments):
            return self.plan("deck.toml", "zero.stage=2", "zero.bucket=1KiB", "--ranks", "4", *arguments, *self.RATES)[0][
                "memory"
            ]

        self.assertNotEqual(memory("zero.overlap=on"), memory("zero.overlap=off"))
        for nodes, overlap in (("1", "off"), ("2", "on"), ("4", "on")):
            expected = "on" if USES_NCCL else overlap  # NCCL always overlaps
            self.assertEqual(memory("--nodes", nodes), memory(f"zero.overlap={expected}"), nodes)
        self.assertEqual(memory(), memory("--nodes", "1"))
        self.assertEqual(memory("--nodes", "2", "zero.overlap=off"), memory("zero.overlap=off"))
        text = self.expect(self.run_kzero("plan", "deck.toml", "--ranks", "4", "--nodes", "2", *self.RATES), 0).stdout
        self.assertIn("nodes       2, with zero.overlap on", text)
        self.expect(
            self.run_kzero("plan", "deck.toml", "--ranks", "4", "--nodes", "5"),
            2,
            "--nodes must be at most the number of ranks, 4, found 5",
        )

    @unittest.skipIf(USES_NCCL, "NCCL overlaps anywhere")
    def test_a_run_on_several_nodes_holds_what_was_planned_for_them(self):
        changes = ("zero.stage=2", "zero.bucket=1KiB", "checkpoint.folder=")
        # MPICH then reports even ranks on one node and odd ranks on another.
        with mock.patch.dict(os.environ, {"MPIR_CVAR_NUM_CLIQUES": "2"}):
            self.expect(self.train(*changes, ranks=4), 0)
        (planned,) = self.plan("deck.toml", *changes, "--ranks", "4", "--nodes", "2", *self.RATES)
        (on_one_node,) = self.plan("deck.toml", *changes, "--ranks", "4", *self.RATES)
        (end,) = self.metrics("end")
        peaks = {name: max(row["categories"][name]["peak_bytes"] for row in end["memory"]) for name in planned["memory"]}
        self.assertEqual(planned["memory"], peaks)
        self.assertNotEqual(on_one_node["memory"], peaks)

    def test_the_schedule_is_shown(self):
        text = self.expect(self.run_kzero("plan", "deck.toml", "--ranks", "2", "--trace", "zero.stage=3"), 0).stdout
        self.assertIn("ZeRO stage 3", text)
        self.assertIn("ranks meet", text)
        self.expect(self.run_kzero("plan", "deck.toml", "--trace", "--json"), 2, "--json excludes --trace")
        self.expect(self.run_kzero("plan", "--trace"), 2, "--trace requires deck")

    def test_the_estimate_is_the_documented_formula(self):
        for ranks in (1, 2):
            (planned,) = self.plan("deck.toml", "--ranks", ranks, *self.RATES)
            # Per token: 6 per weight in a product (12 D^2 + V D), and 6 T D for causal attention.
            operations = 6 * (12 * 12**2 + 256 * 12) + 6 * 11 * 12
            seconds = operations * 4 * 11 / ranks / 1e12
            seconds += planned["memory"]["optimizer"] * 28 / 8 / 1e10
            seconds += sum(row["bytes_per_step"] for row in planned["traffic"]) / 1e9
            self.assertAlmostEqual(planned["step_seconds_estimate"] / seconds, 1, places=12)

    def test_rates_are_measured_where_none_are_given(self):
        for precision in ("fp32", "bf16", "fp16"):
            (planned,) = self.plan("deck.toml", f"train.precision={precision}")
            if FOR_DEVICES:  # a login node cannot measure their rates
                self.assertIsNone(planned["step_seconds_estimate"])
                continue
            self.assertGreater(planned["step_seconds_estimate"], 0)
            self.assertLess(planned["step_seconds_estimate"], PATIENCE)

    def test_several_launches_at_once(self):
        planned = self.plan("deck.toml", "--ranks", "1,2,4", "--threads", "3", *self.RATES)
        self.assertEqual([(p["ranks"], p["threads"], p["micro_batch"]) for p in planned], [(1, 3, 1), (2, 3, 1), (4, 3, 1)])
        table = self.expect(self.run_kzero("plan", "deck.toml", "--ranks", "1,2,4", *self.RATES), 0).stdout
        self.assertEqual([line.split()[0] for line in table.splitlines()[-3:]], ["1", "2", "4"])

    def test_the_default_launch_is_the_decks_grid(self):
        self.assertEqual(self.plan("deck.toml", *self.RATES)[0]["ranks"], 1)
        self.assertEqual(self.plan("deck.toml", "grid.data=4", *self.RATES)[0]["ranks"], 4)

    def test_what_fits_is_what_replanning_says(self):
        budget = 400 * 1024
        deck = ("deck.toml", "train.global_batch=48", "--ranks", "2", *self.RATES)
        answers = self.plan(*deck, "--fit", "400KiB")
        self.assertTrue(any("model.layers" in a["settings"] for a in answers), answers)
        self.assertTrue(any("train.micro_batch" in a["settings"] for a in answers), answers)
        for answer in answers:
            settings = [f"{key}={value}" for key, value in answer.pop("settings").items()]
            (again,) = self.plan(*deck, *settings)
            self.assertEqual(again, answer)
            self.assertLessEqual(on_device(again), budget)
            layers = [f"model.layers={answer['layers'] + 1}" if s.startswith("model.layers") else s for s in settings]
            if layers != settings:
                self.assertGreater(on_device(self.plan(*deck, *layers)[0]), budget)

    def test_what_fits_best_comes_first(self):
        answers = self.plan("deck.toml", "train.global_batch=48", "--ranks", "2", "--fit", "400KiB", *self.RATES)
        searches = ("train.micro_batch", "model.sequence", "model.layers")
        found = [next(i for i in (1, 2, 0) if searches[i] in answer["settings"]) for answer in answers]
        self.assertEqual(found, sorted(found), "one search after the other")
        for i in range(3):
            ranked = [
                (0 if i == 0 else -answer["settings"][searches[i]], -answer["tokens_per_second"])
                for answer, search in zip(answers, found)
                if search == i
            ]
            self.assertGreater(len(set(ranked)), 2)
            self.assertEqual(ranked, sorted(ranked), searches[i])

    def test_nothing_fits(self):
        layer = "even one layer of this width needs more than 1.00 KiB a rank"
        self.expect(self.run_kzero("plan", "deck.toml", "--fit", "1KiB", *self.RATES), 3, layer)
        self.expect(self.run_kzero("plan", "--fit", "1B"), 3, "no model fits in 1 B a rank")

    def test_nominal_sizes(self):
        # Paper table 1 and figure 1: 7.5e9 parameters, 64 ranks.
        planned = self.plan("--parameters", "7.5e9", "--ranks", "64")
        self.assertEqual([p["total_bytes"] for p in planned], [120000000000, 31406250000, 16640625000, 1875000000])
        self.assertEqual([p["stage"] for p in planned], [0, 1, 2, 3])
        self.assertEqual(planned[3]["memory"], {"parameters": 234375000, "gradients": 234375000, "optimizer": 1406250000})
        (one,) = self.plan("--parameters", "7.5e9", "--ranks", "128", "--tensor", "2", "--stage", "2")
        self.assertEqual((one["grid"], one["total_bytes"]), ({"data": 64, "tensor": 2}, 16640625000 // 2))
        # Paper table 2: 32 GB, 64 data-parallel ranks.
        fits = self.plan("--fit", "32GB", "--ranks", "64")
        for fit, billions in zip(fits, (2, 7.642, 14.423, 128)):
            self.assertAlmostEqual(fit["parameters"] / 1e9, billions, places=3)
            self.assertLessEqual(fit["total_bytes"], 32e9)
        larger = self.plan("--fit", "32GiB", "--ranks", "64")
        for decimal, binary in zip(fits, larger):
            self.assertAlmostEqual(binary["parameters"] / decimal["parameters"], 2**30 / 1e9, places=6)

    def test_tables_for_people(self):
        full = self.expect(self.run_kzero("plan", "deck.toml", "--ranks", "2", *self.RATES), 0).stdout
        for text in ("threads     1 a rank, from OMP_NUM_THREADS", "activations", "reduce_scatter", "step ", "rates"):
            self.assertIn(text, full)
        fits = self.expect(self.run_kzero("plan", "deck.toml", "--fit", "2MB", *self.RATES), 0).stdout
        self.assertIn("zero.stage=0 train.micro_batch=4", fits)
        split = self.expect(
            self.run_kzero(
                "plan", "deck.toml", "model.heads=4", "--fit", "2MB", "--ranks", "4", "--tensor", "1,2", *self.RATES
            ),
            0,
        ).stdout
        for text in ("4 x 1", "2 x 2", "recompute.mode=full grid.tensor=2 recompute.partition=true"):
            self.assertIn(text, split)
        nominal = self.expect(self.run_kzero("plan", "--parameters", "128e9", "--ranks", "64"), 0).stdout
        self.assertIn("32.000 GB", nominal)

    def test_bad_options(self):
        for arguments in (
            [],
            ["--ranks", "2"],
            ["--parameters", "0"],
            ["--parameters", "1e18"],
            ["--parameters", "7x"],
            ["--parameters", "nan"],
            ["--parameters", "5", "deck.toml"],
            ["--parameters", "5", "--fit", "1GB"],
            ["--parameters", "5", "--tensor", "2", "--ranks", "3"],
            ["--parameters", "5", "--stage", "4"],
            ["--parameters", "5", "--tflops", "1"],
            ["--parameters", "5", "--threads", "1"],
            ["deck.toml", "--stage", "0"],
            ["deck.toml", "--tensor", "0"],
            ["deck.toml", "--ranks", "0"],
            ["deck.toml", "--ranks", "2,"],
            ["deck.toml", "--ranks", "2;4"],
            ["deck.toml", "--fit", "3XB"],
            ["deck.toml", "--fit", "-3GB"],
            ["deck.toml", "--tflops", "0"],
            ["deck.toml", "--tflops", "1e300"],
            ["deck.toml", "--bandwidth", "fast"],
            ["deck.toml", "--threads", "0"],
        ):
            with self.subTest(arguments):
                self.assertEqual(self.expect(self.run_kzero("plan", *arguments), 2).stdout, "")

    def test_bad_decks_are_reported_as_elsewhere(self):
        self.expect(self.run_kzero("plan", "missing.toml"), 2, "missing.toml: the deck cannot be read")
        self.expect(self.run_kzero("plan", "deck.toml", "model.layres=3"), 2, "'model.layres' is not known")
        self.expect(
            self.run_kzero("plan", "deck.toml", "--ranks", "5"),
            2,
            "train.global_batch = 4 has 4 micro-batches of 1, too few for 5",
        )
        self.expect(
            self.run_kzero("plan", "deck.toml", "--fit", "1GB", "--ranks", "5"),
            2,
            "train.global_batch = 4 has 4 micro-batches of 1, too few for 5",
        )

    def test_a_plan_above_this_nodes_memory_is_no_error(self):
        (planned,) = self.plan("deck.toml", "model.hidden=65532", "model.layers=1000", *self.RATES)
        self.assertGreater(planned["total_bytes"], 1e14)


class Runs(LaunchTest):
    def test_metrics_hold_what_is_promised(self):
        self.expect(
            self.train("train.validate_every=3", "data.validation_fraction=0.2", "train.validation_batches=2", ranks=2), 0
        )
        (start,) = self.metrics("start")
        self.assertEqual(start["grid"], {"data": 2, "tensor": 1})
        self.assertEqual(len(start["hosts"]), 2)
        for key in ("versions", "git_hash", "deck", "deck_file", "plan", "parameters", "first_step", "threads"):
            self.assertIn(key, start)
        steps = self.metrics("step")
        self.assertEqual([r["step"] for r in steps], list(range(6)))
        for r in steps:
            self.assertGreater(r["loss"], 0)
            self.assertGreater(r["grad_norm"], 0)
            self.assertEqual(r["tokens"], 44)
            self.assertAlmostEqual(r["tokens_per_second"] * r["seconds"], 44, places=6)
            self.assertGreater(r["mfu"], 0)
            self.assertEqual((r["loss_scale"], r["skipped"]), (1, False))
        self.assertEqual([r["lr"] for r in steps[:3]], [0.005, 0.01, 0.01])
        self.assertEqual([(r["step"], r["tokens"]) for r in self.metrics("validation")], [(3, 88), (6, 88)])
        (saved,) = self.metrics("checkpoint")
        self.assertEqual((saved["step"], Path(saved["folder"]).name), (6, "step_00000006"))
        (end,) = self.metrics("end")
        self.assertEqual((end["reason"], end["steps"]), ("completed", 6))
        self.assertEqual([row["rank"] for row in end["memory"]], [0, 1])
        for row in end["memory"]:
            self.assertEqual(set(row["categories"]), CATEGORIES)
            self.assertGreater(row["resident_peak_bytes"], sum(c["peak_bytes"] for c in row["categories"].values()))
            for name, category in row["categories"].items():
                self.assertEqual(category["planned_bytes"], category["peak_bytes"], name)
                self.assertEqual(category["planned_bytes"], start["plan"]["memory"][name], name)
        self.assertEqual(
            {(t["group"], t["operation"], t["purpose"]) for t in end["traffic"]},
            {("data", "reduce_scatter", "gradients"), ("data", "all_gather", "parameters")},
        )
        for row in end["traffic"]:
            self.assertEqual(row["elements_per_step"], row["expected_elements_per_step"])
            self.assertEqual(row["bytes_per_step"], 4 * row["elements_per_step"])
            self.assertGreaterEqual(2 * row["elements_per_step"], start["parameters"])

    def test_any_number_of_ranks_trains_the_same_model(self):
        for ranks in (1, 2, 3, 4):
            self.expect(
                self.train(
                    "checkpoint.folder=",
                    f"run.metrics={ranks}.jsonl",
                    "train.validate_every=3",
                    "data.validation_fraction=0.2",
                    f"zero.stage={ranks - 1}",
                    ranks=ranks,
                ),
                0,
            )
        for ranks in (2, 3, 4):
            self.assertEqual(steps_of(self.folder / f"{ranks}.jsonl"), steps_of(self.folder / "1.jsonl"), ranks)
            self.assertEqual(*([r["loss"] for r in records(self.folder / f"{n}.jsonl", "validation")] for n in (1, ranks)))

    def test_a_run_says_what_its_bits_depend_on(self):
        shown = self.expect(self.train(ranks=2), 0).stdout
        self.assertIn("bits        depend on the deck's model, data, seed, optimizer,", shown)
        self.assertNotIn("data-parallel ranks", shown)
        (start,) = self.metrics("start")
        self.assertIn("fp32", start["bits_depend_on"])
        shown = self.expect(self.train("zero.accumulate=local", "zero.stage=1", "train.steps=7", ranks=2), 0).stdout
        self.assertIn("because of zero.accumulate", shown)
        self.assertIn(
            "does not resume bit for bit: zero.accumulate is \"local\", was \"reduced\"; train.steps is 7, was 6", shown
        )

    def expect_same_steps(self, precisions, threads):
        for precision in precisions:
            metrics = {n: f"{precision}{n}.jsonl" for n in (1, *threads)}
            for n, file in metrics.items():
                self.expect(
                    self.train(
                        "checkpoint.folder=",
                        f"train.precision={precision}",
                        "train.micro_batch=8",
                        "train.global_batch=16",
                        "model.hidden=96",
                        "model.sequence=61",
                        f"run.threads={n}",
                        f"run.metrics={file}",
                    ),
                    0,
                )
            alone, *others = (steps_of(self.folder / file) for file in metrics.values())
            for n, steps in zip(threads, others, strict=True):
                self.assertEqual(steps, alone, f"{precision}, {n} threads")

    @unittest.skipIf(FOR_DEVICES, "kernels run on threads of the device")
    def test_threads_do_not_change_a_bit(self):
        self.expect_same_steps(("fp32", "bf16", "fp16"), (2, 3))

    @unittest.skipIf(FOR_DEVICES, "kernels run on threads of the device")
    def test_threads_do_not_change_a_bit_without_avx512(self):
        with mock.patch.dict(os.environ, DNNL_MAX_CPU_ISA="AVX2"):
            self.expect_same_steps(("fp32", "bf16"), (3, 4))

    def test_a_finished_run_stays_finished(self):
        self.expect(self.train(ranks=2), 0)
        before = {p: p.read_bytes() for p in (self.folder / "saved").rglob("*.h5")}
        again = self.expect(self.train(ranks=2), 0)
        self.assertIn("resumed from", again.stdout)
        self.assertEqual({p: p.read_bytes() for p in (self.folder / "saved").rglob("*.h5")}, before)
        self.assertEqual(len(self.metrics("step")), 6)
        self.assertEqual([(r["reason"], r["steps"]) for r in self.metrics("end")], [("completed", 6), ("nothing_to_do", 6)])

    def test_a_run_that_is_further_than_its_deck_is_done(self):
        self.expect(self.train(), 0)
        self.expect(self.train("train.steps=4"), 0)
        self.assertEqual(self.checkpoints(), ["step_00000006"])

    def test_checkpoints_are_kept_as_the_deck_says(self):
        self.expect(self.train("checkpoint.every=1", "checkpoint.keep=2"), 0)
        self.assertEqual(self.checkpoints(), ["step_00000005", "step_00000006"])

    def test_a_damaged_checkpoint_is_passed_over_and_named(self):
        self.expect(self.train("checkpoint.every=3"), 0)
        expected = steps_of(self.folder / "metrics.jsonl")
        shard = self.folder / "saved/step_00000006/shard_00000.h5"
        shard.write_bytes(shard.read_bytes()[:-100])
        result = self.expect(self.train("run.metrics=again.jsonl"), 0, "passed over")
        self.assertIn("step_00000006", result.stderr)
        self.assertEqual(steps_of(self.folder / "again.jsonl"), expected[3:])


class Failures(LaunchTest):
    """One message, whatever the number of ranks, and the exit code that a job script can act on."""

    def test_decks(self):
        self.expect(self.run_kzero("train", "missing.toml", ranks=2), 2, "missing.toml: the deck cannot be read")
        self.expect(self.train("model.layres=3", ranks=2), 2, "key 'model.layres' is not known", "model.layers")
        self.expect(self.train("grid.data=3", ranks=2), 2, "number of ranks, 2")
        self.expect(self.train("grid.data=2"), 2, "number of ranks, 1")
        other = "onednn" if FOR_DEVICES else "cublaslt"
        self.expect(self.train(f"run.gemm={other}", ranks=2), 2, f'this build has no "{other}"', '"reference"')
        self.expect(self.train("run.attention=cudnn", ranks=2), 2, 'run.attention = "cudnn": ', '"auto" takes kzero\'s kernels')

    def test_tables_of_algorithms(self):
        table = self.folder / "table.toml"
        here = "run.algorithms=table.toml"
        reason = 'only run.gemm = "cublaslt"'
        self.expect(self.train(here, ranks=2), 4, "table.toml")
        table.write_text('device = "a"\nlibrary = "b"\ndriver = 3\n')
        wrong = "table.toml:3:1: key 'driver' is not known"
        self.expect(self.train(here, ranks=2), 4, wrong)
        self.expect(self.run_kzero("check", "deck.toml", "--files", here), 4, wrong)
        table.write_text('device = "a"\nlibrary = "b"\n')
        self.expect(self.train(here, ranks=2), 2, "run.algorithms: ")
        if FOR_DEVICES:  # some have cuBLASLt
            return
        self.expect(self.train(here, ranks=2), 2, "run.algorithms: this run multiplies with ", reason)
        measured = self.run_kzero("check", "deck.toml", "--algorithms", "new.toml", ranks=2)
        self.expect(measured, 2, "--algorithms: this run multiplies with ", reason)
        self.assertFalse((self.folder / "new.toml").exists())

    def test_memory(self):
        message = "cannot allocate 187.50 TiB of memory for parameters" if FOR_DEVICES else "a rank needs 750"
        for ranks in (None, 2):
            self.expect(
                self.train(
                    "model.hidden=65535",
                    "model.layers=1000",
                    "zero.stage=0",
                    "zero.accumulate=local",
                    "checkpoint.folder=",
                    ranks=ranks,
                ),
                3,
                message,
            )

    def test_data(self):
        self.expect(self.train("data.files=missing.bin", ranks=2), 4, "missing.bin")
        self.expect(self.train("data.format=llmc", ranks=2), 4, "text: starts with")
        (self.folder / "short").write_bytes(b"x" * 11)
        self.expect(self.train("data.files=short", ranks=2), 4, "short")

    def test_files_that_cannot_be_written(self):
        self.expect(self.train("run.metrics=text/metrics.jsonl", ranks=2), 4, "run.metrics")
        self.expect(self.train("checkpoint.folder=text", ranks=2), 4, "text")

    def test_a_folder_of_damaged_checkpoints_does_not_start_the_run_anew(self):
        self.expect(self.train(), 0)
        manifest = self.folder / "saved/step_00000006/manifest.h5"
        manifest.write_bytes(b"\0" * 100)
        result = self.expect(self.train(ranks=2), 4, "none that can be used")
        self.assertIn(str(Path("step_00000006/manifest.h5")), result.stderr)
        self.expect(self.train("checkpoint.resume=false", ranks=2), 2, "saved/step_00000006 is there")

    def test_weights_to_start_from(self):
        self.expect(self.train("model.initial=missing.safetensors", ranks=2), 4, "missing.safetensors")

    def test_a_checkpoint_of_another_run(self):
        self.expect(self.train(), 0)
        self.expect(self.train("train.steps=8", "model.hidden=24", ranks=2), 2, "is of another model")

    def test_divergence(self):
        # Weights grow by a factor of a million per step until they overflow.
        for ranks in (None, 2):
            metrics = f"{ranks}.jsonl"
            self.expect(
                self.train(
                    "train.steps=30",
                    "optimizer.lr=1000",
                    "optimizer.warmup=0",
                    "optimizer.weight_decay=1000",
                    "optimizer.max_skipped=3",
                    "checkpoint.folder=",
                    f"run.metrics={metrics}",
                    ranks=ranks,
                ),
                5,
                "not finite in 3 steps in a row",
            )
            skipped = [r["skipped"] for r in records(self.folder / metrics, "step")]
            self.assertEqual(skipped[-3:], [True, True, True])
            self.assertEqual(sum(skipped), 3)
            (end,) = records(self.folder / metrics, "end")
            self.assertEqual((end["reason"], end["steps"]), ("diverged", len(skipped)))
            for row in end["traffic"]:
                self.assertEqual(row["elements_per_step"], row["expected_elements_per_step"])

    def test_a_stop_without_a_checkpoint_is_no_reason_to_submit_again(self):
        launch = self.start("checkpoint.folder=")
        self.signal_rank(launch, 0, signal.SIGTERM)
        self.assertEqual(self.finish(launch), 1, launch.errors)
        self.assertEqual(launch.errors.count("without a checkpoint"), 1, launch.errors)
        self.assertEqual(self.metrics("end")[-1]["reason"], "signal")


class Stops(LaunchTest):
    def test_restarts_go_on_bit_for_bit(self):
        # The initial fp16 loss scale overflows for some steps and doubles again later.
        fp16 = ["train.precision=fp16", "optimizer.loss_scale=16777216", "optimizer.loss_scale_window=3"]
        for settings in (["train.precision=fp32"], ["train.precision=bf16"], fp16):
            with self.subTest(settings):
                a, b = f"{settings[0]}_a", f"{settings[0]}_b"
                settings = [*settings, "train.steps=12"]
                self.expect(self.train(*settings, f"checkpoint.folder={a}", f"run.metrics={a}.jsonl", ranks=2), 0)
                for code, ranks, stage in ((75, 2, 2), (75, 3, 0), (0, 1, 3)):  # on any free nodes
                    shown = self.expect(
                        self.train(
                            *settings,
                            f"checkpoint.folder={b}",
                            f"run.metrics={b}.jsonl",
                            "run.max_steps=5",
                            f"zero.stage={stage}",
                            ranks=ranks,
                        ),
                        code,
                    ).stdout
                    self.assertEqual("resumes bit for bit" in shown, ranks != 2)
                self.assertEqual(steps_of(self.folder / f"{b}.jsonl"), steps_of(self.folder / f"{a}.jsonl"))
                reasons = [(r["reason"], r["steps"]) for r in records(self.folder / f"{b}.jsonl", "end")]
                self.assertEqual(reasons, [("max_steps", 5), ("max_steps", 10), ("completed", 12)])
                whole = arrays_of(self.folder / a / "step_00000012")
                restarted = arrays_of(self.folder / b / "step_00000012")
                self.assertEqual(whole.keys(), restarted.keys())
                for name in whole:
                    if not name.endswith("/runs"):  # depends on the ranks that wrote it
                        self.assertEqual(whole[name].tobytes(), restarted[name].tobytes(), name)
        self.assertGreater(sum(r["skipped"] for r in records(self.folder / f"{a}.jsonl", "step")), 1)

    def test_signals_to_one_rank_stop_all_with_a_checkpoint(self):
        for number in (signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(number):
                (self.folder / "metrics.jsonl").unlink(missing_ok=True)
                launch = self.start(f"checkpoint.folder={number}")
                self.signal_rank(launch, 1, number)
                self.assertEqual(self.finish(launch), 75, launch.errors)
                self.assertEqual(launch.errors, "")
                (end,) = self.metrics("end")
                self.assertEqual(end["reason"], "signal")
                self.assertEqual(self.metrics("checkpoint")[-1]["step"], end["steps"])
                self.expect(self.run_kzero("inspect", str(number), "--verify"), 0)

    def test_a_rank_that_hangs_ends_the_run_with_its_name(self):
        for overlap in ("off", "on"):
            (self.folder / "metrics.jsonl").unlink(missing_ok=True)
            launch = self.start(
                "run.watchdog=2s",
                "zero.stage=3",
                f"zero.overlap={overlap}",
                "checkpoint.folder=",
                "train.global_batch=6",
                ranks=3,
            )
            self.signal_rank(launch, 2, signal.SIGSTOP)
            self.assertNotEqual(self.finish(launch), 0)
            self.assertRegex(
                launch.errors,
                r"kzero: rank [01] on \S+: .* over group '(data|world|node)' in (step \d+|no step): has waited \d+ s",
            )
            self.assertNotIn("kzero: rank 2", launch.errors)

    def test_the_wall_limit_stops_in_time(self):
        self.expect(self.train("train.steps=1000000", "run.wall_limit=20s", "run.stop_margin=17s", ranks=2), 75)
        (end,) = self.metrics("end")
        self.assertEqual(end["reason"], "wall_limit")
        self.assertLess(end["seconds"], 20)
        self.assertEqual(self.metrics("checkpoint")[-1]["step"], end["steps"])

    def test_the_end_of_a_slurm_job_stops_in_time(self):
        with mock.patch.dict(os.environ, SLURM_JOB_END_TIME=str(int(time.time()) + 64)):
            shown = self.expect(self.train("train.steps=1000000", ranks=2), 75).stdout
        self.assertIn("left by SLURM_JOB_END_TIME; stops 1 min 00 s before its end", shown)
        (start,) = self.metrics("start")
        self.assertEqual((start["limit"]["source"], start["limit"]["stop_margin"]), ("SLURM_JOB_END_TIME", 60))
        (end,) = self.metrics("end")
        self.assertEqual(end["reason"], "wall_limit")
        self.assertEqual(self.metrics("checkpoint")[-1]["step"], end["steps"])

    def test_too_little_time_makes_one_step_and_a_job_that_is_over_none(self):
        with mock.patch.dict(os.environ, SLURM_JOB_END_TIME=str(int(time.time()) + 50)):
            self.assertIn("stops after one step", self.expect(self.train(ranks=2), 75).stdout)
            shown = self.expect(self.train("checkpoint.folder=", "run.metrics="), 0).stdout
            self.assertIn("SLURM_JOB_END_TIME is not heeded: checkpoint.folder is empty", shown)
        self.assertEqual(self.metrics("end")[-1]["steps"], 1)
        with mock.patch.dict(os.environ, SLURM_JOB_END_TIME=str(int(time.time()) - 50)):
            self.expect(self.train(ranks=2), 2, "belongs to a job that is over")

    def test_a_stop_file_stops_with_a_checkpoint_and_forbids_a_start(self):
        launch = self.start("run.stop_file=stop here")
        (self.folder / "stop here").touch()
        self.assertEqual(self.finish(launch), 75, launch.errors)
        (end,) = self.metrics("end")
        self.assertEqual(end["reason"], "stop_file")
        self.assertEqual(self.metrics("checkpoint")[-1]["step"], end["steps"])
        self.expect(self.train("run.stop_file=stop here", ranks=2), 2, "stop here exists")

    def test_a_killed_rank_ends_the_launch_and_loses_no_checkpoint(self):
        launch = self.start("checkpoint.every=2")
        self.signal_rank(launch, 1, signal.SIGKILL)
        self.assertNotIn(self.finish(launch), codes_without_a_failure())
        self.assertEqual(self.metrics("end"), [])
        saved = self.metrics("checkpoint")[-1]["step"]
        self.expect(self.train(f"train.steps={saved + 20}", "run.metrics=again.jsonl", ranks=2), 0)
        (start,) = records(self.folder / "again.jsonl", "start")
        self.assertGreaterEqual(start["first_step"], saved)


class Convert(LaunchTest):
    def test_there_and_back_keeps_every_bit(self):
        self.expect(self.train(ranks=2), 0)
        self.expect(self.run_kzero("convert", "saved", "model.safetensors"), 0)
        self.expect(self.run_kzero("convert", "model.safetensors", "back", "--deck", "deck.toml"), 0)
        self.expect(self.run_kzero("convert", "back", "again/model.safetensors"), 0)
        weights = (self.folder / "model.safetensors").read_bytes()
        self.assertEqual((self.folder / "again/model.safetensors").read_bytes(), weights)
        config = json.loads((self.folder / "config.json").read_text())
        self.assertEqual((config["n_layer"], config["n_embd"], config["n_head"]), (1, 12, 3))
        saved, back = (arrays_of(self.folder / p) for p in ("saved/step_00000006", "back/step_00000000"))
        self.assertEqual(saved.keys(), back.keys())
        for name in saved:
            if name.endswith("_moment"):
                self.assertFalse(back[name].any(), name)
            elif name.endswith("master"):
                self.assertEqual(saved[name].tobytes(), back[name].tobytes(), name)

    def test_training_starts_from_converted_weights_by_either_way(self):
        self.expect(self.train("train.steps=3"), 0)
        self.expect(self.run_kzero("convert", "saved", "model.safetensors"), 0)
        self.expect(self.run_kzero("convert", "model.safetensors", "back", "--deck", "deck.toml"), 0)
        self.expect(self.train("model.initial=model.safetensors", "checkpoint.folder=", "run.metrics=a.jsonl", ranks=2), 0)
        self.expect(self.train("checkpoint.folder=back", "run.metrics=b.jsonl", ranks=2), 0)
        self.assertEqual(steps_of(self.folder / "a.jsonl"), steps_of(self.folder / "b.jsonl"))

    def test_refusals(self):
        self.expect(self.train(), 0)
        self.expect(self.run_kzero("convert", "saved", "model.safetensors", ranks=2), 2, "one rank")
        self.expect(self.run_kzero("convert", "nowhere", "model.safetensors"), 4, "nowhere")
        self.expect(self.run_kzero("convert", "saved", "model.safetensors"), 0)
        self.expect(
            self.run_kzero("convert", "model.safetensors", "back", "--deck", "deck.toml", "--set", "model.hidden=24"),
            4,
            "n_embd is 12, model.hidden is 24",
        )
        (self.folder / "config.json").unlink()
        self.expect(
            self.run_kzero("convert", "model.safetensors", "back", "--deck", "deck.toml", "--set", "model.hidden=24"),
            4,
            "ln_f.weight [24] has shape [12]",
        )


if __name__ == "__main__":
    unittest.main()
