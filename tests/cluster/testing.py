"""Tests on a cluster: a cluster for each class, and an exit code of its own for tests that were skipped."""

import signal
import sys
import unittest

from nodes.cluster import Cluster
from nodes.requirements import why_not
from training import KEEP

SKIPPED = 77  # CTest's SKIP_RETURN_CODE in CMakeLists.txt


class ClusterTest(unittest.TestCase):
    """A test class whose methods share a cluster."""

    NODES = 4
    PROGRAMS = {}  # further programs that the class needs, with their packages

    @classmethod
    def setUpClass(cls):
        if reason := why_not(cls.PROGRAMS):
            raise unittest.SkipTest(reason)
        cls.cluster = cls.enterClassContext(Cluster.temporary(cls.NODES, keep=KEEP))
        cls.nodes = cls.cluster.nodes

    @property
    def names(self):
        return [node.name for node in self.nodes]


def main():
    """Runs the tests that the command line names. Exit codes: 0 passed, 1 failed, 77 none failed and some were skipped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # the cluster is removed
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"SKIPPED: {test}: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == 0 and not result.skipped:
        sys.exit("no test has run")
    sys.exit(SKIPPED if result.skipped else 0)
