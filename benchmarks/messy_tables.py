"""Tables as people have them, with a known smooth truth: python -m benchmarks.messy_tables

Each table is scored in four ways on the same test rows: `quadric train` on the table as it is, the
same command on columns that were prepared by hand, a linear model and gradient boosting on the
prepared columns. `--write` saves the tables as CSV files instead. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

LIKERT = ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"]


@dataclass(frozen=True)
class MessyTable:
    """A table, and what one does with it.

    Parameters
    ----------
    make : callable
        Returns the rows from a number of rows and a Generator.
    target : str
    prepare : callable
        Returns the columns as prepared by hand: numbers, and text with few values.
    rows, train_rows : int
        The number of all rows, of which the first ones are for training.
    options : tuple of str
        Options of `quadric train` that its remarks name for this table.
    encoded : str or None
        A column with many categories, which is replaced by a mean of the target.
    """

    make: Callable[[int, np.random.Generator], pd.DataFrame]
    target: str
    prepare: Callable[[pd.DataFrame], pd.DataFrame]
    rows: int = 4000
    train_rows: int = 2000
    options: tuple[str, ...] = ()
    encoded: str | None = None


def _sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def _some_empty(values: Any, share: float, rng: np.random.Generator, mark: Any = None) -> Any:
    """Return the values with some of them replaced by a mark of missing values."""
    values = np.asarray(values, dtype=object).copy()
    values[rng.random(len(values)) < share] = mark
    return values


def _drawn(texts: list[str], latent: Any) -> Any:
    """Return the text of each number's interval; the intervals have equal numbers of rows."""
    edges = np.quantile(latent, np.linspace(0, 1, len(texts) + 1)[1:-1])
    return np.array(texts, dtype=object)[np.digitize(latent, edges)]


def _money(texts: pd.Series) -> pd.Series:
    return texts.str.replace(r"[$,%]", "", regex=True).astype(float)


def _ordered(column: pd.Series, order: list[str]) -> pd.Series:
    return column.map({text: k for k, text in enumerate(order)})


# ---- churn -----------------------------------------------------------------------------------


def make_churn(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """A customer table: a signup date, 140 regions, money as text, and a column that is a leak."""
    days = rng.integers(0, 1500, rows)
    region = rng.integers(0, 140, rows)
    of_region = rng.normal(0, 0.9, 140)
    plan, charge = rng.integers(0, 3, rows), np.exp(rng.normal(4, 0.4, rows))
    calls, nps = rng.poisson(1.5, rows), rng.integers(0, 11, rows)
    discount = rng.uniform(0, 30, rows)
    tenure = (days - 750) / 430
    z = -0.4 + 0.7 * tenure**2 - 0.6 * tenure + of_region[region] + 0.45 * (calls - 1.5)
    z += 0.5 * (np.log(charge) - 4) / 0.4 * (plan - 1) - 0.15 * (nps - 5) - 0.03 * (discount - 15)
    churned = rng.random(rows) < _sigmoid(z)
    reasons = np.array(["price", "service", "moved", "competitor"], dtype=object)
    return pd.DataFrame(
        {
            "customer_id": [f"C{k:06d}" for k in rng.permutation(900_000)[:rows]],
            "signup_date": (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")).strftime(
                "%Y-%m-%d"
            ),
            "region": [f"region {k:03d}" for k in region],
            "plan": np.array(["Basic", "Plus", "Pro"], dtype=object)[plan],
            "monthly_charge": [f"${value:,.2f}" for value in charge],
            "discount": [f"{value:.1f}%" for value in discount],
            "support_calls": calls,
            "nps": _some_empty(nps, 0.12, rng, "N/A"),
            "cancel_reason": np.where(churned, rng.choice(reasons, rows), None),
            "churned": np.where(churned, "yes", "no"),
        }
    )


def prepare_churn(table: pd.DataFrame) -> pd.DataFrame:
    days = (pd.to_datetime(table["signup_date"]) - pd.Timestamp("2020-01-01")).dt.days
    return table[["region", "plan", "support_calls"]].assign(
        days=days,
        charge=_money(table["monthly_charge"]),
        discount=_money(table["discount"]),
        nps=pd.to_numeric(table["nps"], errors="coerce"),
    )


# ---- houses ----------------------------------------------------------------------------------


CONDITIONS = ["poor", "fair", "good", "excellent"]


def make_houses(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Sales of houses: areas of -1 where unknown, skewed lots, an ordered condition, a bump."""
    sqft = np.exp(rng.normal(7.5, 0.35, rows)).round()
    age, rooms = rng.integers(0, 90, rows), rng.integers(1, 7, rows)
    lat, lon = rng.uniform(47.3, 47.8, rows), rng.uniform(-122.5, -121.9, rows)
    lot = np.exp(rng.normal(9, 0.9, rows)).round()
    condition, quarter = rng.integers(0, 4, rows), rng.integers(0, 12, rows)
    of_quarter = rng.normal(0, 25_000, 12)
    bump = np.exp(-(((lat - 47.6) / 0.12) ** 2) - ((lon + 122.25) / 0.15) ** 2)
    price = 120_000 + 150 * sqft + 300_000 * bump + 25 * (age - 45) ** 2 + 20_000 * condition
    price += 30_000 * (np.log(lot) - 9) + 12_000 * rooms + of_quarter[quarter]
    price += 60 * (sqft - 1900) * bump + rng.normal(0, 45_000, rows)
    return pd.DataFrame(
        {
            "id": rng.permutation(9_000_000)[:rows] + 1_000_000,
            "sqft": _some_empty(sqft, 0.04, rng, -1.0).astype(float).astype(int),
            "bedrooms": rooms,
            "age": age,
            "lot_sqft": lot.astype(int),
            "condition": np.array(CONDITIONS, dtype=object)[condition],
            "quarter": [f"Q{k:02d}" for k in quarter],
            "lat": lat.round(4),
            "lon": lon.round(4),
            "price": price.round().astype(int),
        }
    )


def prepare_houses(table: pd.DataFrame) -> pd.DataFrame:
    return table[["bedrooms", "age", "quarter", "lat", "lon"]].assign(
        sqft=table["sqft"].where(table["sqft"] > 0),
        lot=np.log(table["lot_sqft"]),
        condition=_ordered(table["condition"], CONDITIONS),
    )


# ---- defects ---------------------------------------------------------------------------------


def make_defects(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Measurements of parts with one of seven defects, each a Gaussian of its own shape."""
    names = ["bumps", "dirt", "good", "other", "pit", "scratch", "stain"]
    shares = np.array([0.08, 0.07, 0.4, 0.15, 0.06, 0.14, 0.1])
    kind = rng.choice(7, rows, p=shares)
    centers, spreads = rng.normal(0, 1.3, (7, 6)), rng.normal(0, 0.5, (7, 6, 6)) + np.eye(6)
    X = centers[kind] + np.einsum("nij,nj->ni", spreads[kind], rng.normal(size=(rows, 6)))
    machine = (X[:, 0] > 0).astype(int) * 4 + rng.integers(0, 4, rows)
    columns = ["area", "perimeter", "brightness", "thickness", "angle", "gloss"]
    table = pd.DataFrame((X * [120, 30, 12, 0.4, 15, 5] + 500).round(2), columns=columns)
    table["gloss"] = _some_empty(table["gloss"], 0.05, rng)
    table["machine"] = [f" M-{k}" if k % 2 else f"M-{k} " for k in machine]
    table["shift"] = rng.choice(["early", "late", "night"], rows)
    table["defect"] = np.array(names, dtype=object)[kind]
    return table


def prepare_defects(table: pd.DataFrame) -> pd.DataFrame:
    prepared = table.drop(columns="defect")
    return prepared.assign(
        machine=table["machine"].str.strip(), gloss=pd.to_numeric(table["gloss"])
    )


# ---- fraud -----------------------------------------------------------------------------------


def make_fraud(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Payments, of which 1.5 % are fraud: card numbers, amounts with a long tail, times."""
    amount, distance = np.exp(rng.normal(3.5, 1.2, rows)), np.exp(rng.normal(2, 1.3, rows))
    minutes = rng.integers(0, 60 * 24 * 90, rows)
    hour = minutes // 60 % 24
    merchant, online = rng.integers(0, 12, rows), rng.random(rows) < 0.35
    of_merchant = rng.normal(0, 0.6, 12)
    far, high = (np.log(distance) - 2) / 1.3, (np.log(amount) - 3.5) / 1.2
    z = -6.7 + 0.9 * high + 0.5 * high**2 + 0.6 * far + 0.5 * high * far + of_merchant[merchant]
    z += 1.0 * np.cos((hour - 3) * np.pi / 12) + 0.8 * online
    cards = rng.integers(4 * 10**15, 5 * 10**15, 4000)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, "min")
    return pd.DataFrame(
        {
            "card_number": cards[rng.integers(0, 4000, rows)],
            "time": when.strftime("%Y-%m-%d %H:%M:%S"),
            "amount": [f"{value:,.2f}" for value in amount],
            "distance_km": distance.round(1),
            "merchant": [f"merchant group {k}" for k in merchant],
            "online": np.where(online, "TRUE", "FALSE"),
            "is_fraud": (rng.random(rows) < _sigmoid(z)).astype(int),
        }
    )


def prepare_fraud(table: pd.DataFrame) -> pd.DataFrame:
    when = pd.to_datetime(table["time"])
    return table[["merchant", "online"]].assign(
        hour=when.dt.hour,
        weekday=when.dt.weekday,
        amount=np.log(_money(table["amount"])),
        distance=np.log1p(table["distance_km"]),
    )


# ---- ratings ---------------------------------------------------------------------------------


AGES = ["under 18", "18-24", "25-34", "35-49", "50-64", "65+"]


def make_ratings(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Reviews of restaurants: stars from 1 to 5, and answers in words."""
    service, food, price = (rng.integers(1, 6, rows) for _ in range(3))
    likely, age = rng.normal(size=rows), rng.integers(0, 6, rows)
    visits, city = rng.poisson(3, rows), rng.integers(0, 8, rows)
    z = 0.9 * (food - 3) + 0.6 * (service - 3) + 0.15 * (food - 3) * (service - 3)
    z += 0.3 * (price - 3) + 1.1 * likely - 0.12 * (age - 2.5) ** 2 + 0.1 * visits
    z += rng.normal(0, 0.4, 8)[city] + rng.logistic(0, 0.6, rows)
    stars = np.digitize(z, np.quantile(z, [0.08, 0.22, 0.45, 0.75])) + 1
    return pd.DataFrame(
        {
            "city": [f"city {k}" for k in city],
            "age_group": _some_empty(np.array(AGES, dtype=object)[age], 0.05, rng),
            "visits": visits,
            "food_stars": food,
            "service_stars": _some_empty(service, 0.05, rng),
            "value_stars": price,
            "would_come_again": _drawn(LIKERT, likely),
            "stars": stars,
        }
    )


def prepare_ratings(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="stars").assign(
        age_group=_ordered(table["age_group"], AGES),
        would_come_again=_ordered(table["would_come_again"], LIKERT),
        service_stars=pd.to_numeric(table["service_stars"]),
    )


# ---- survey ----------------------------------------------------------------------------------


INCOMES = ["below 20k", "20k-40k", "40k-60k", "60k-100k", "above 100k"]


def make_survey(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """A survey of employees: Likert answers, income bands, and answers in free text."""
    answers = rng.normal(size=(rows, 6))
    answers[:, 1] = 0.6 * answers[:, 0] + 0.8 * answers[:, 1]
    income, age = rng.integers(0, 5, rows), rng.integers(18, 66, rows)
    z = answers @ [1.1, 0.8, 0.6, -0.7, 0.0, 0.3] + 0.4 * income - 0.8 - 0.001 * (age - 40) ** 2
    words = ["pay", "team", "boss", "hours", "office", "travel", "tools", "growth", "noise"]
    questions = ["fair_pay", "valued", "balance", "overworked", "canteen", "future"]
    table = pd.DataFrame({"person": [f"P-{k}" for k in rng.permutation(10**6)[:rows]]})
    for k, name in enumerate(questions):
        table[name] = _some_empty(_drawn(LIKERT, answers[:, k]), 0.03, rng, "no answer")
    table["income"] = np.array(INCOMES, dtype=object)[income]
    table["age"] = age
    table["comment"] = [" ".join(rng.choice(words, rng.integers(2, 9))) for _ in range(rows)]
    table["stays"] = np.where(rng.random(rows) < _sigmoid(1.3 * z), "yes", "no")
    return table


def prepare_survey(table: pd.DataFrame) -> pd.DataFrame:
    prepared = table.drop(columns=["person", "comment", "stays"])
    for name in prepared.columns[:6]:
        prepared[name] = _ordered(prepared[name], LIKERT)
    return prepared.assign(income=_ordered(table["income"], INCOMES))


# ---- sensors ---------------------------------------------------------------------------------


def make_sensors(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """The hourly load of three sites for a year; the test rows are the last quarter."""
    when = pd.date_range("2023-01-01", periods=rows, freq="1h")
    hour, day = when.hour.to_numpy(), when.dayofyear.to_numpy()
    temp = 12 - 11 * np.cos(2 * np.pi * (day - 15) / 365) + 4 * np.sin((hour - 9) * np.pi / 12)
    temp += rng.normal(0, 2.5, rows)
    site, humidity = rng.integers(0, 3, rows), rng.uniform(30, 95, rows)
    load = 200 + 60 * np.exp(-(((hour - 14) / 5.0) ** 2)) - 35 * (when.weekday >= 5)
    load += 0.25 * (temp - 16) ** 2 + 0.2 * humidity + np.array([0.0, 25.0, -15.0])[site]
    return pd.DataFrame(
        {
            "time": when.strftime("%Y-%m-%d %H:%M"),
            "site": np.array(["north", "south", "west"], dtype=object)[site],
            "temp": _some_empty(temp.round(1), 0.02, rng, -999.0).astype(float),
            "humidity": _some_empty(humidity.round(), 0.03, rng, "NA"),
            "load": (load + rng.normal(0, 9, rows)).round(1),
        }
    )


def prepare_sensors(table: pd.DataFrame) -> pd.DataFrame:
    when = pd.to_datetime(table["time"])
    return table[["site"]].assign(
        hour=when.dt.hour,
        weekend=(when.dt.weekday >= 5).astype(int),
        temp=table["temp"].where(table["temp"] > -900),
        humidity=pd.to_numeric(table["humidity"], errors="coerce"),
    )


TABLES = {
    "churn": MessyTable(
        make_churn,
        "churned",
        prepare_churn,
        options=("--drop", "cancel_reason"),
        encoded="region",
    ),
    "houses": MessyTable(
        make_houses, "price", prepare_houses, options=("--missing-values", "sqft=-1")
    ),
    "defects": MessyTable(make_defects, "defect", prepare_defects),
    "fraud": MessyTable(make_fraud, "is_fraud", prepare_fraud, rows=16_000, train_rows=8000),
    "ratings": MessyTable(make_ratings, "stars", prepare_ratings),
    "survey": MessyTable(make_survey, "stays", prepare_survey),
    "sensors": MessyTable(
        make_sensors,
        "load",
        prepare_sensors,
        rows=8760,
        train_rows=6570,
        options=("--missing-values", "temp=-999", "--time", "time"),
    ),
}


# ---- scores ----------------------------------------------------------------------------------


def split(name: str, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows for training and those for the test."""
    problem = TABLES[name]
    table = problem.make(problem.rows, np.random.default_rng([seed, len(name), ord(name[0])]))
    return table[: problem.train_rows], table[problem.train_rows :]


def prepared(name: str, train: pd.DataFrame, test: pd.DataFrame) -> tuple[Any, Any]:
    """Return the rows as a data scientist would prepare them, with the target."""
    problem = TABLES[name]
    parts = [problem.prepare(part) for part in (train, test)]
    if problem.encoded is not None:  # cross-fitted on the rows for training
        encoder, column = TargetEncoder(random_state=0), [problem.encoded]
        means = encoder.fit_transform(parts[0][column], train[problem.target])
        parts[1][problem.encoded] = encoder.transform(parts[1][column])[:, 0]
        parts[0][problem.encoded] = means[:, 0]
    return tuple(
        part.assign(**{problem.target: rows[problem.target]})
        for part, rows in zip(parts, (train, test), strict=True)
    )


def score(truth: pd.Series, predicted: Any, classes: list[str]) -> dict[str, float]:
    """Return R², or the area under the ROC curve (one against the rest) and the log-loss."""
    if not classes:
        return {"main": float(r2_score(truth, predicted))}
    y = truth.astype(str)
    chosen = predicted[:, 1] if len(classes) == 2 else predicted
    return {
        "main": float(roc_auc_score(y, chosen, multi_class="ovr", labels=classes)),
        "loss": float(log_loss(y, predicted, labels=classes)),
    }


def by_quadric(
    train: pd.DataFrame, test: pd.DataFrame, target: str, options: tuple[str, ...] = ()
) -> dict[str, float]:
    """Train and predict with the command line, as a user does."""
    classes = _classes(train[target])
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        train.to_csv(here / "train.csv", index=False)
        test.drop(columns=target).to_csv(here / "test.csv", index=False)
        _run(here, "train", "train.csv", "-t", target, "-o", "m.quadric", *options)
        wanted = ["--proba"] if classes else []
        _run(here, "predict", "m.quadric", "test.csv", "-o", "p.csv", *wanted)
        found = pd.read_csv(here / "p.csv")
    if not classes:
        return score(test[target], found[target].to_numpy(), [])
    probabilities = found[[f"probability of {one}" for one in classes]].to_numpy()
    return score(test[target], probabilities, classes)


def _classes(column: pd.Series) -> list[str]:
    """Return the classes in order; none if the target is a number."""
    values = sorted(map(str, column.unique()))
    return values if len(values) <= 20 else []


def _run(place: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "quadric", *arguments]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"quadric {' '.join(arguments)}: {done.stderr}")


def by_sklearn(train: pd.DataFrame, test: pd.DataFrame, target: str, *, boosting: bool) -> Any:
    """Fit a model of scikit-learn to prepared columns."""
    classes = _classes(train[target])
    if boosting:
        encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        numbers: Any = "passthrough"
        last = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        estimator = last(random_state=0)
    else:
        encode = make_pipeline(
            SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
        )
        numbers = make_pipeline(SimpleImputer(), StandardScaler())
        estimator = LogisticRegression(max_iter=2000) if classes else LinearRegression()
    columns = make_column_transformer(
        (encode, make_column_selector(dtype_exclude="number")),
        (numbers, make_column_selector(dtype_include="number")),
        sparse_threshold=0,
    )
    model = make_pipeline(columns, estimator)
    y = train[target].astype(str) if classes else train[target]
    model.fit(train.drop(columns=target), y)
    rows = test.drop(columns=target)
    predicted = model.predict_proba(rows) if classes else model.predict(rows)
    return score(test[target], predicted, classes)


def compare(name: str) -> dict[str, dict[str, float]]:
    """Return the scores of all ways."""
    train, test = split(name)
    target = TABLES[name].target
    ours = by_quadric(train, test, target, TABLES[name].options)
    train, test = prepared(name, train, test)
    return {
        "default": ours,
        "by hand": by_quadric(train, test, target),
        "linear": by_sklearn(train, test, target, boosting=False),
        "boosting": by_sklearn(train, test, target, boosting=True),
    }


def _text(found: dict[str, float]) -> str:
    return " / ".join(f"{value:.3f}" for value in found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="a directory for the tables, instead of scores")
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.write:
        arguments.write.mkdir(parents=True, exist_ok=True)
        for name in arguments.tables:
            for part, rows in zip(("train", "test"), split(name), strict=True):
                rows.to_csv(arguments.write / f"{name}_{part}.csv", index=False)
        return
    print("| table | options | default | by hand | linear | boosting | default - by hand |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.tables:
        found = compare(name)
        options = " ".join(TABLES[name].options)
        difference = found["default"]["main"] - found["by hand"]["main"]
        cells = [name, f"`{options}`" if options else "", *map(_text, found.values())]
        print(f"| {' | '.join(cells)} | {difference:+.3f} |", flush=True)


if __name__ == "__main__":
    main()
