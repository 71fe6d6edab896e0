"""Random messy tables: types, missing markers, forms of numbers, dates, encodings, new values."""

from dataclasses import dataclass

import numpy as np

MARKERS = ("", "NA", "N/A", "nan", "NULL", "None", "?", " ", "n/a ", "#N/A")
WORDS = ("red", "blue ", " green", "grün", "a-b", "x y", "rouge foncé")
CODES = ("01", "02", "1", "10", "007", "1.0")
TOWNS = tuple(f"{place} {k}" for place in ("Bad Ort", "Besançon", "town") for k in range(4))
ANSWERS = ("never", "Rarely", "sometimes ", "often", "don't know")


def _grouped(value, decimal, thousands, digits=2):
    text = f"{value:,.{digits}f}"
    return text.translate(str.maketrans({",": thousands, ".": decimal}))


# each takes a random generator and the number of rows, and returns texts
KINDS = {
    "float": lambda rng, n: [repr(v) for v in rng.normal(rng.normal(), 3, n).tolist()],
    "spaced": lambda rng, n: [f" {v:.3f} " for v in rng.normal(0, 100, n)],
    "whole": lambda rng, n: [str(v) for v in rng.integers(-5, 900, n)],
    "huge": lambda rng, n: [f"{v:.6e}" for v in rng.lognormal(20, 3, n)],
    "dollars": lambda rng, n: [f"${_grouped(v, '.', ',')}" for v in rng.lognormal(8, 1, n)],
    "euros": lambda rng, n: [f"{_grouped(v, ',', '.')} EUR" for v in rng.lognormal(8, 1, n)],
    "francs": lambda rng, n: [f"CHF {_grouped(v, '.', chr(39))}" for v in rng.lognormal(8, 1, n)],
    "spaces": lambda rng, n: [_grouped(v, ",", " ") for v in rng.lognormal(9, 1, n)],
    "commas": lambda rng, n: [f"{v:.2f}".replace(".", ",") for v in rng.normal(5, 2, n)],
    "percent": lambda rng, n: [f"{v:.1f}%" for v in rng.uniform(-5, 100, n)],
    "truth": lambda rng, n: rng.choice(["True", "false", "TRUE"], n).tolist(),
    "words": lambda rng, n: rng.choice(WORDS, n).tolist(),
    "codes": lambda rng, n: rng.choice(CODES, n).tolist(),
    "towns": lambda rng, n: rng.choice(TOWNS, n).tolist(),  # encoded by the target
    "answers": lambda rng, n: rng.choice(ANSWERS, n).tolist(),  # ordinal
    "shares": lambda rng, n: [f"{v}%" for v in rng.integers(1, 99, n)],
    "days": lambda rng, n: [str(d) for d in _days(rng, n).astype("M8[D]")],
    "times": lambda rng, n: [f"{t}Z" for t in _days(rng, n)],
    "zones": lambda rng, n: [f"{t}{z}" for t, z in zip(_days(rng, n), _zones(rng, n), strict=True)],
    "points": lambda rng, n: [t.strftime("%d.%m.%Y %H:%M") for t in _days(rng, n).tolist()],
    "slashes": lambda rng, n: [t.strftime("%m/%d/%Y %I:%M %p") for t in _days(rng, n).tolist()],
    "names": lambda rng, n: [t.strftime("%d %b %Y") for t in _days(rng, n).tolist()],
    "clock": lambda rng, n: [t.strftime("%H:%M:%S") for t in _days(rng, n).tolist()],
}
TARGETS = {
    "classes": lambda rng, score: np.where(score > 0, "yes", "no ").tolist(),
    "integers": lambda rng, score: [str(v) for v in np.digitize(score, [-1, 1])],
    "numbers": lambda rng, score: [f"{v:.4f}" for v in score],
    "money": lambda rng, score: [f"${_grouped(v, '.', ',')}" for v in 5000 + 900 * score],
}


def _days(rng, n):
    start = np.datetime64("2023-01-15T00:00:00") + rng.integers(0, 500) * np.timedelta64(1, "D")
    return start + rng.integers(0, 400 * 86400, n) * np.timedelta64(1, "s")


def _zones(rng, n):
    return rng.choice(["+02:00", "Z", "-0530"], n)


@dataclass
class MessyTable:
    """A table and new rows of it, as texts by column; how it is written; and the target's name."""

    columns: dict[str, list[str]]
    new: dict[str, list[str]]
    kinds: dict[str, str]
    separator: str
    encoding: str
    target: str = "y"

    def write(self, path, columns):
        quoted = ([_quoted(v, self.separator) for v in values] for values in columns.values())
        rows = zip(*quoted, strict=True)
        lines = [self.separator.join(columns), *map(self.separator.join, rows)]
        path.write_bytes(("\n".join(lines) + "\n").encode(self.encoding))
        return path


def _quoted(text, separator):
    return f'"{text}"' if separator in text or not text else text


def messy_table(seed):
    """Return a random table with 2 to 6 inputs."""
    rng = np.random.default_rng([37, seed])
    n, m = int(rng.integers(50, 110)), 30
    kinds = {
        f"{kind} {j}": kind for j, kind in enumerate(rng.choice(list(KINDS), rng.integers(2, 7)))
    }
    kinds["float x"] = "float"
    columns, new = {}, {}
    for name, kind in kinds.items():
        both = KINDS[kind](rng, n + m)
        if rng.random() < 0.6:
            gaps = rng.random(n + m) < rng.choice([0.03, 0.3])
            markers = rng.choice(MARKERS, n + m).tolist()
            both = [b if gap else t for t, b, gap in zip(both, markers, gaps, strict=True)]
        columns[name], new[name] = both[:n], both[n:]
        if kind in ("words", "codes", "towns", "answers"):
            new[name][:2] = ["010" if kind == "codes" else "unseen ", "09"]
        if "days" in kind or "points" in kind:
            new[name][2] = "2031-05-06"
    known = [text if text.strip() not in MARKERS else "0" for text in columns["float x"]]
    score = np.array([float(t) if _is_float(t) else 0.0 for t in known])
    score = (score - score.mean()) / score.std() + 0.3 * rng.normal(size=n)
    columns["y"] = TARGETS[str(rng.choice(list(TARGETS)))](rng, score)
    return MessyTable(
        columns,
        new,
        kinds,
        str(rng.choice([";", "\t", ","])),
        str(rng.choice(["utf-8", "latin-1", "utf-16", "utf-8-sig"])),
    )


def _is_float(text):
    try:
        return np.isfinite(float(text))
    except ValueError:
        return False
