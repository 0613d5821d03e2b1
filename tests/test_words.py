"""Words that are kept out of the repository, because an engineer has to guess what is meant by them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = ("actors", "benchmarks", "claims", "clusters", "docs", "emu", "examples", "tests", "workloads")
# A word, in all its forms and inside names, and what says the same plainly.
PLAIN = {
    r"told": "by which means: reported, printed, noted, sent, an error",
    r"anew": "again",
    r"heed(s|ed|ing)?": "use, respect",
    r"reckon(s|ed|ing)?": "compute",
    r"crowd(s|ed|ing)?": "load, contention, or what there is much of",
    r"in[ _]vain": "what is missing afterwards: without a task, without effect",
    r"(no|some|any|every)body": "the subject: no coflow, no process, another user",
    r"minds?": "what the consequence is, and for whom",
}


def test_each_text_uses_plain_words() -> None:
    avoided = re.compile(rf"(?<![a-z])({'|'.join(PLAIN)})(?![a-z])", re.IGNORECASE)
    files = [file for place in PLACES for file in (ROOT / place).rglob("*") if file.suffix in (".py", ".md")]
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in sorted({*files, *ROOT.glob("*.py"), *ROOT.glob("*.md")} - {Path(__file__)})
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in avoided.finditer(line)
    ]
    assert not found, "\n".join([*found, *(f"{word}: {plain}" for word, plain in PLAIN.items())])
