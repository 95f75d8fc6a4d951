"""corpus.py FILE MEBIBYTES: writes text-like bytes, the same on every machine."""

import random
import sys

WORDS = 4096


def main() -> None:
    path, size = sys.argv[1], int(sys.argv[2]) << 20
    rng = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = [
        "".join(rng.choice(letters) for _ in range(rng.randint(2, 10)))
        for _ in range(WORDS)
    ]
    # Squaring a uniform number makes some words far more common than others.
    text = bytearray()
    while len(text) < size:
        line = " ".join(words[int(rng.random() ** 2 * WORDS)] for _ in range(12))
        text += line.encode() + b"\n"
    with open(path, "wb") as out:
        out.write(text[:size])


if __name__ == "__main__":
    main()
