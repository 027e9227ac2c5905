"""A rank that is lost after MPI_Init and before the heartbeat. The test takes as long as the limit on a start: two minutes."""

import os
import subprocess
import unittest

from launch import LaunchTest, ranks_of

LIMIT = 120  # seconds: runtime::start_limit


class LateRank(LaunchTest):
    def test_the_launch_ends(self):
        preloaded = f"{os.environ['KZERO_LATE_RANK']}:{os.environ.get('LD_PRELOAD', '')}".rstrip(":")
        launch = subprocess.Popen(
            self.command(["train", "deck.toml"], 2),
            cwd=self.folder,
            env=os.environ | {"LD_PRELOAD": preloaded},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(launch.kill)
        _, errors = launch.communicate(timeout=LIMIT + 60)
        self.assertEqual(launch.returncode, 1, errors)
        self.assertIn(f"has waited {LIMIT} s for all ranks to start", errors)
        self.assertFalse(ranks_of(launch))


if __name__ == "__main__":
    unittest.main()
