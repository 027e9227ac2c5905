"""What crosses the links is what kzero's traffic table says."""

from testing import ClusterTest, main
from training import Training
from wire import bytes_of_a_step, table_bytes

SETTINGS = ("checkpoint.every=0", "checkpoint.folder=", "optimizer.warmup=1")
HEADERS = 0.02  # what TCP, IP and Ethernet add, measured as 0.005 to 0.01


class Bytes(ClusterTest):
    def check(self, name, nodes, ranks, micro_batches, *settings):
        batch = f"train.global_batch={nodes * ranks * micro_batches}"
        few, many = (Training(self.cluster, f"{name}-{length}", *SETTINGS, batch, *settings) for length in ("few", "many"))
        sent = bytes_of_a_step(few, many, self.nodes[:nodes], ranks)
        expected = table_bytes(many) * ranks
        print(
            f"{name}: {sent:.0f} bytes of a node and step, by the table {expected:.0f}, ratio {sent / expected:.4f}", flush=True
        )
        self.assertTrue(expected < sent < (1 + HEADERS) * expected)

    def test_stage_2_on_4_nodes(self):
        self.check("stage2", 4, 1, 1, "zero.stage=2")

    def test_sums_of_nodes_with_4_micro_batches(self):
        self.check("nodes", 2, 2, 4, "zero.stage=2", "zero.gradients=node")

    def test_stage_3_with_2_micro_batches_on_2_nodes_of_2_ranks(self):
        self.check("stage3", 2, 2, 2, "zero.stage=3")

    # Each parameter and each sum of gradients leaves a node once a step.
    def test_parameters_that_nodes_share_with_4_micro_batches(self):
        self.check("shared", 2, 2, 4, "zero.stage=3", "zero.gradients=node", "zero.parameters=node")


if __name__ == "__main__":
    main()
