"""The bytes that cross the links are those of kzero's traffic table."""

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
        return many

    def check_sequences(self, nodes, ranks):
        """All ranks share each sequence. Other bytes are fewer than those of the exchange."""
        layers, width, tokens, shared = 2, 64, 2048, nodes * ranks
        training = self.check(
            f"sequences-{nodes}x{ranks}",
            nodes,
            ranks,
            1,
            f"grid.sequence={shared}",
            "train.global_batch=1",
            f"model.layers={layers}",
            f"model.hidden={width}",
            f"model.sequence={tokens}",
            "train.precision=bf16",
        )
        (row,) = (row for row in training.records("end")[-1]["traffic"] if row["group"] == "sequence")
        # Forward and backward, a rank sends the other ranks their parts of q, k, v and attention's result (arXiv 2309.14509).
        elements = 2 * layers * 4 * (tokens // shared) * width * (shared - ranks) // shared
        self.assertEqual(row["bytes_between_nodes_per_step"], 2 * elements)
        self.assertGreater(2 * row["bytes_between_nodes_per_step"], table_bytes(training))

    def test_stage_2_on_4_nodes(self):
        self.check("stage2", 4, 1, 1, "zero.stage=2")

    def test_sums_of_nodes_with_4_micro_batches(self):
        self.check("nodes", 2, 2, 4, "zero.stage=2", "zero.gradients=node")

    # By default a node adds the gradients of its ranks and micro-batches before it sends: 4 bytes a parameter and step, and the
    # updated parameters, of each node the half that the other node owns.
    def test_the_default_with_4_micro_batches_on_2_nodes_of_4_ranks(self):
        training = self.check("default", 2, 4, 4)
        parameters = training.records("start")[-1]["parameters"]
        self.assertLess(4 * table_bytes(training), 1.02 * (4 + 4) * parameters / 2)

    def test_stage_3_with_2_micro_batches_on_2_nodes_of_2_ranks(self):
        self.check("stage3", 2, 2, 2, "zero.stage=3")

    # Each parameter and each sum of gradients leaves a node once a step.
    def test_parameters_that_nodes_share_with_4_micro_batches(self):
        self.check("shared", 2, 2, 4, "zero.stage=3", "zero.gradients=node", "zero.parameters=node")

    def test_sequences_that_2_nodes_share(self):
        self.check_sequences(2, 1)

    def test_sequences_that_2_nodes_of_2_ranks_share(self):
        self.check_sequences(2, 2)


if __name__ == "__main__":
    main()
