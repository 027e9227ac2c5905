"""Reads examples of tasks with several endings in the forms in which HellaSwag, ARC, MMLU and PIQA are distributed.

The texts of ARC, MMLU and PIQA are those of EleutherAI's lm-evaluation-harness, without examples before the question.
"""

from .documents import InputError, shown

# First and last characters of scripts that are written without spaces between words, and of full-width signs
WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x312F),  # radicals, Chinese signs, kana, Bopomofo
    (0x31A0, 0x4DBF),  # more of these, Chinese
    (0x4E00, 0x9FFF),  # Chinese
    (0xF900, 0xFAFF),  # Chinese
    (0xFE30, 0xFE4F),  # signs
    (0xFF00, 0xFF9F),  # full-width signs, half-width kana
    (0x20000, 0x3FFFF),  # Chinese
)


def joint(context, ending):
    """What is written between a context and an ending: a space, unless there is white space already, or the ending begins with a
    character of a script without spaces, or the context ends with one."""
    for character in (context[-1], ending[0]):
        if character.isspace() or any(first <= ord(character) <= last for first, last in WITHOUT_SPACES):
            return ""
    return " "


def number_of(value):
    """The number that a text of digits has, as in HellaSwag's own files; others as they are."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else value


def of_arc(value, where):
    choices = value["choices"]
    endings, labels = choices.get("text"), choices.get("label")
    answer = value.get("answerKey")
    if not isinstance(labels, list) or not isinstance(endings, list) or len(labels) != len(endings):
        raise InputError(f"{where}: choices has to have two lists of one length, text and label")
    if answer not in labels:
        raise InputError(f"{where}: answerKey is {shown(answer)}, but the labels are {shown(labels)}")
    return f"Question: {text_of(value, 'question', where)}\nAnswer:", endings, labels.index(answer)


def of_mmlu(value, where):
    choices, answer = value["choices"], number_of(value.get("answer"))
    if not all(isinstance(choice, str) for choice in choices) or len(choices) > 26:
        raise InputError(f"{where}: choices has to be a list of up to 26 texts")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(choices)]
    if isinstance(answer, str) and len(answer) == 1 and answer in letters:
        answer = letters.index(answer)
    lines = [text_of(value, "question", where).strip(), *(f"{letter}. {choice}" for letter, choice in zip(letters, choices))]
    subject = value.get("subject")
    about = f" about {subject.replace('_', ' ')}" if isinstance(subject, str) and subject else ""
    begin = f"The following are multiple choice questions (with answers){about}.\n\n"
    return begin + "\n".join((*lines, "Answer:")), list(letters), answer


def of_piqa(value, where):
    return (
        f"Question: {text_of(value, 'goal', where)}\nAnswer:",
        [value["sol1"], value.get("sol2")],
        number_of(value.get("label")),
    )


def text_of(value, key, where):
    if not isinstance(value.get(key), str):
        raise InputError(f"{where}: {key} is {shown(value.get(key))}, but a text is needed there")
    return value[key]


def example_of(value, where):
    """(context, endings, label) of an object, which are still to be checked."""
    if "ctx" in value and "endings" in value:
        return value["ctx"], value["endings"], number_of(value.get("label"))
    if "question" in value and isinstance(value.get("choices"), dict):
        return of_arc(value, where)
    if "question" in value and isinstance(value.get("choices"), list):
        return of_mmlu(value, where)
    if "goal" in value and "sol1" in value:
        return of_piqa(value, where)
    raise InputError(
        f"{where}: has neither ctx and endings (HellaSwag), nor question and choices (ARC, MMLU), nor goal, sol1 and sol2 (PIQA), "
        f"only {shown(list(value))}"
    )
