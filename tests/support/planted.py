"""Random tables, and tables with a planted leak, a code for missing values, or codes as numbers."""

import numpy as np
import polars as pl


def clean_table(seed):
    """Return a table without suspicious columns, and its target.

    The columns are numbers of many scales and distributions, counts, ratings, years, prices,
    categories, booleans and missing values. The target is noisy: two or more classes, or a number.
    """
    rng = np.random.default_rng([1, seed])
    n = int(rng.choice([80, 200, 500, 1500]))
    makers = list(COLUMNS)
    chosen = [makers[k] for k in rng.permutation(len(makers))[: rng.integers(5, len(makers) + 1)]]
    columns = {name: COLUMNS[name](rng, n) for name in chosen}
    signal = rng.normal(size=n) * rng.uniform(0.5, 1.5)
    for values in columns.values():
        _, codes = np.unique(values, return_inverse=True)
        number = codes if isinstance(values[0], str) else np.asarray(values, dtype=float)
        number = (number - number.mean()) / (number.std() or 1.0)
        signal = signal + rng.normal() * number + 0.3 * rng.normal() * number**2
    columns = {name: _with_gaps(rng, values) for name, values in columns.items()}
    kind = rng.choice(["two", "rare", "several", "number", "money"])
    if kind == "number":
        target = signal
    elif kind == "money":
        target = np.round(np.exp(10 + signal / signal.std()), 2)
    else:
        cuts = {"two": [0.55], "rare": [0.9], "several": [0.3, 0.5, 0.8]}[kind]
        names = np.array([["no", "yes"], ["low", "mid", "high", "top"]][kind == "several"])
        target = names[np.searchsorted(np.quantile(signal, cuts), signal)]
    return pl.DataFrame(columns | {"target": target}), "target"


COLUMNS = {
    "temperature": lambda rng, n: rng.normal(15, 9, n).round(1),
    "income": lambda rng, n: np.exp(rng.normal(10, 0.8, n)).round(0),
    "balance": lambda rng, n: rng.normal(0, 4000, n).round(2),
    "age": lambda rng, n: rng.integers(18, 95, n),
    "visits": lambda rng, n: rng.poisson(rng.uniform(0.5, 20), n),
    "rating": lambda rng, n: rng.integers(1, 6, n),
    "year": lambda rng, n: rng.integers(1990, 2025, n),
    "hour": lambda rng, n: rng.integers(0, 24, n),
    "price": lambda rng, n: (rng.integers(20, 90, n) * 500 - 1).astype(float),
    "engine": lambda rng, n: rng.choice([998, 1197, 1248, 1498, 1598, 1968, 1998, 2498, 2993], n),
    "weight": lambda rng, n: rng.integers(1600, 5200, n),
    "area": lambda rng, n: np.exp(rng.normal(4.6, 0.5, n)).round(0),
    "score": lambda rng, n: rng.integers(-3, 4, n),
    "share": lambda rng, n: rng.beta(2, 5, n).round(3),
    "profit": lambda rng, n: rng.standard_t(3, n) * 1e5,
    "population": lambda rng, n: np.exp(rng.normal(11, 2, n)).round(0),
    "color": lambda rng, n: rng.choice(["red", "green", "blue", "black"], n).tolist(),
    "city": lambda rng, n: [f"city {k}" for k in rng.integers(0, 30, n)],
    "member": lambda rng, n: rng.random(n) < 0.4,
}


def _with_gaps(rng, values):
    """Leave out values of some columns."""
    share = rng.choice([0.0, 0.0, 0.05, 0.3])
    gone = rng.random(len(values)) < share
    if isinstance(values[0], str):
        return [None if out else value for out, value in zip(gone, values, strict=True)]
    series = pl.Series(np.asarray(values, dtype=float))
    return pl.select(pl.when(pl.lit(pl.Series(~gone))).then(pl.lit(series))).to_series()


def leaking_table(seed):
    """Return a clean table with a column that predicts the target alone, and its name."""
    frame, target = clean_table(seed)
    rng = np.random.default_rng([2, seed])
    y = frame[target].to_numpy()
    if frame[target].dtype == pl.String:
        labels, codes = np.unique(y, return_inverse=True)
        last = codes == len(labels) - 1
        kinds = {
            "filled": [
                str(rng.choice(["price", "moved", "service", "other"])) if yes else None
                for yes in last
            ],
            "copy": [f"code {k}" for k in codes],
            "number": codes * 10.0 + rng.uniform(0, 5, len(y)),
            "date": [float(rng.integers(1, 900)) if yes else None for yes in last],
            "finer": [f"{label} {rng.integers(3)}" for label in y],
        }
    else:
        spread = np.subtract(*np.quantile(y, [0.75, 0.25]))  # a few sums of money are huge
        kinds = {
            "copy": y,
            "affine": 1.95583 * y + 3,
            "rounded": np.round(y / spread, 4),
            "monotone": np.arcsinh(y / spread),
            "noisy": y + 0.005 * spread * rng.normal(size=len(y)),
        }
    name = list(kinds)[seed % len(kinds)]
    leak = pl.Series("after_the_fact", kinds[name], strict=False)
    place = int(rng.integers(frame.width))
    return frame.insert_column(place, leak), target, "after_the_fact"


def table_with_sentinels(seed):
    """Return a clean table in which a code replaces 1 to 5 % of a column, its name and the code."""
    frame, target = clean_table(seed)
    rng = np.random.default_rng([3, seed])
    codes = {
        "temperature": [-999, 999, 9999],
        "income": [-1, -999],
        "age": [-1, 999, -99],
        "visits": [-1, 999, -9],
        "hour": [-1, 99, -99],
        "year": [9999, -1, -999],
        "weight": [-1, 99999, -999],
        "area": [-1, -999],
        "share": [-1, 99, -999],
        "population": [-1, -999],
    }
    name = str(rng.choice(sorted(codes)))
    if name not in frame.columns:
        frame = frame.insert_column(0, pl.Series(name, COLUMNS[name](rng, len(frame)), pl.Float64))
    code = float(rng.choice(codes[name]))
    count = max(4, round(len(frame) * rng.uniform(0.01, 0.05)))
    rows = rng.choice(len(frame), count, replace=False)
    values = frame[name].to_numpy().copy()
    values[rows] = code
    return frame.with_columns(pl.Series(name, values).fill_nan(None)), target, name, code


def table_with_codes(seed):
    """Return a clean table with a column of codes in digits, and its name."""
    frame, target = clean_table(seed)
    rng = np.random.default_rng([4, seed])
    n = len(frame)
    kinds = {
        "card": lambda: rng.integers(4 * 10**15, 6 * 10**15, n),
        "phone": lambda: rng.integers(10**9, 10**10, n),
        "customer_id": lambda: rng.permutation(10 * n)[:n] + 1,
        "zip": lambda: rng.choice(rng.integers(10000, 99999, max(5, n // 10)), n),
        "place": lambda: rng.choice(rng.integers(10000, 99999, max(21, n // 12)), n),
        "area_code": lambda: rng.integers(200, 990, n),
        "product": lambda: rng.choice(rng.integers(100000, 999999, 21 + n // 40), n),
        "region": lambda: _regions(rng, frame[target]),
    }
    name = list(kinds)[seed % len(kinds)]
    return frame.insert_column(0, pl.Series(name, kinds[name]())), target, name


def table_with_a_total(seed):
    """Return a clean table whose last row has the sum of a column, the target and its name."""
    frame, target = clean_table(seed)
    rng = np.random.default_rng([5, seed])
    name = str(rng.choice(["income", "visits", "price", "weight", "area", "population"]))
    values = pl.Series(name, COLUMNS[name](rng, len(frame)), pl.Float64)
    frame = frame.with_columns(values) if name in frame else frame.insert_column(0, values)
    last = {one: [None] for one in frame.columns}
    last[name] = [float(values.sum())]
    last[target] = [frame[target][int(rng.integers(len(frame)))]]
    return pl.concat([frame, pl.DataFrame(last, schema=frame.schema)]), target, name


def _regions(rng, target):
    """Return one of 40 numbers, in random order, for rows with similar targets."""
    if target.dtype == pl.String:
        rank = target.rank("random", seed=0).to_numpy() / len(target)
    else:
        rank = target.rank().to_numpy() / len(target)
    rough = rank + 0.2 * rng.normal(size=len(target))
    order = np.argsort(np.argsort(rough)) * 40 // len(target)
    return 1 + rng.permutation(40)[order]
