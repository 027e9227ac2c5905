"""How well-known tokenizers cut text into words: the regular expressions in their tokenizer.json."""

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES_AND_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ANY = r"[^\r\n\p{L}\p{N}]?"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# GPT-4, Llama 3, OLMo 2 and 3, SmolLM3
LLAMA3 = rf"{CONTRACTION}|{ANY}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{LINES_AND_SPACES}"
# Qwen 2, 2.5 and 3
QWEN2 = LLAMA3.replace("{1,3}", "")
# Mistral NeMo, Ministral, Apertus
TEKKEN = rf"{ANY}{UPPER}*{LOWER}+|{ANY}{UPPER}+{LOWER}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{LINES_AND_SPACES}"
# GPT-4o, gpt-oss, Llama 4
GPT4O = (
    rf"{ANY}{UPPER}*{LOWER}+{CONTRACTION}?|{ANY}{UPPER}+{LOWER}*{CONTRACTION}?|"
    rf"\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{LINES_AND_SPACES}"
)
# Their words end before a line end that follows a letter or a digit.
ENDING_AT_LINES = (LLAMA3, QWEN2, TEKKEN, GPT4O)
