"""Values of table columns, read as numbers, text or dates. `TableColumns` applies these functions.

A missing value is None, NaN, pandas' NA or a text in MISSING. Text is compared without the
whitespace around it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quadric.checks import Array
from quadric.errors import TableError
from quadric.models._operations import is_missing

# in lowercase: what the readers of pandas and spreadsheets take as missing, and "?"
MISSING = frozenset(
    (
        "",
        "na",
        "n/a",
        "nan",
        "null",
        "none",
        "?",
        "<na>",
        "#na",
        "#n/a",
        "#n/a n/a",
        "-nan",
        "1.#ind",
        "-1.#ind",
        "1.#qnan",
        "-1.#qnan",
    )
)
TRUTH = {"true": 1.0, "false": 0.0}
LARGEST = 1e100  # maximum absolute value in a table, so that sums of squares do not overflow
COARSE = ("float16", "float32", "halffloat", "float[pyarrow]")
NUMERIC = (bool, int, float, np.bool_, np.integer, np.floating, Decimal)
Values = list[Any]  # text, None where it is missing, or other objects


def read_objects(name: str, column: Any) -> Any:
    """Return the values of a column: an array in float64, or a list of objects.

    Parameters
    ----------
    name : str
    column : array, or a column of a table
        Of NumPy, pandas, Polars or PyArrow.

    Raises
    ------
    TableError
        For numbers in float16 or float32, which may have been rounded.
    """
    dtype = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if dtype == "float" or dtype.startswith(COARSE):
        raise TableError(
            f"column {name!r} contains numbers of type {dtype}, which may have been rounded. Read "
            "them as float64."
        )
    if dtype in ("float64", "double", "double[pyarrow]"):
        try:
            return np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):  # pandas' NA
            pass
    if dtype.startswith("datetime64") and isinstance(column, np.ndarray):
        return np.datetime_as_string(column).tolist()
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return getattr(column, method)()
    return list(column)


def clean(values: Iterable[Any]) -> Values:
    """Strip whitespace from text, and replace missing values with None."""
    if isinstance(values, np.ndarray):
        return [None if value != value else value for value in values.tolist()]
    return [
        (text if (text := value.strip()).lower() not in MISSING else None)
        if type(value) is str
        else _cleaned_object(value)
        for value in values
    ]


def _cleaned_object(value: Any) -> Any:
    if isinstance(value, str):
        return clean([str(value)])[0]
    return None if is_missing(value) else value


def without(values: Any, missing: Sequence[str], form: "NumberForm | None" = None) -> Any:
    """Replace the values that stand for missing ones, such as -999, with None or NaN.

    Parameters
    ----------
    values : array, or list of objects
        Cleaned values; see `clean`.
    missing : sequence of str
        A value is missing if it is one of these texts or if it is the same number as one of them.
    form : NumberForm, optional
        How the numbers of the column are written.
    """
    if not missing:
        return values
    forms = (PLAIN, form or PLAIN)
    found = [number_in(text, one) for text in missing for one in forms]
    gone = {number for number in found if number is not None}
    if isinstance(values, np.ndarray):
        return np.where(np.isin(values, list(gone)), np.nan, values) if gone else values
    known: dict[Any, bool] = {}

    def is_gone(value: Any) -> bool:
        if isinstance(value, str):
            if value not in known:
                known[value] = value in missing or number_in(value, forms[1]) in gone
            return known[value]
        return isinstance(value, NUMERIC) and float(value) in gone

    return [None if value is None or is_gone(value) else value for value in values]


# ------------------------------------------------------------------------------- numbers


class NumberForm(NamedTuple):
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : {'.', ','}
    thousands : {'', ' ', '.', ',', "'", '_'}
        The character between groups of three digits. A space includes no-break spaces.
    unit : str
        A currency or the percent sign, before or behind the number; empty if there is none.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""


PLAIN = NumberForm()
SEPARATORS = {"": "", " ": "[ \u00a0\u202f]", ".": r"\.", ",": ",", "'": "['\u2019]", "_": "_"}
# the forms that a column may have, apart from the unit; the first that fits is chosen
FORMS = [
    NumberForm(decimal, thousands)
    for decimal, several in ((".", ("", ",", " ", "'", "_")), (",", ("", ".", " ", "'")))
    for thousands in several
]
SIGNS = (
    "$",
    "€",
    "£",
    "¥",
    "₹",
    "₽",
    "₩",
    "₺",
    "₴",
    "₫",
    "฿",
    "₪",
    "zł",
    "Kč",
    "kr",
    "R$",
    "US$",
    "A$",
    "C$",
    "Fr.",
)
CODES = (
    "USD",
    "EUR",
    "GBP",
    "JPY",
    "CHF",
    "CNY",
    "INR",
    "AUD",
    "CAD",
    "NZD",
    "SEK",
    "NOK",
    "DKK",
    "PLN",
    "CZK",
    "HUF",
    "RON",
    "TRY",
    "RUB",
    "UAH",
    "BRL",
    "MXN",
    "ZAR",
    "KRW",
    "SGD",
    "HKD",
    "THB",
    "IDR",
    "MYR",
    "PHP",
    "VND",
    "ILS",
    "AED",
    "SAR",
    "EGP",
    "NGN",
    "KES",
    "CLP",
    "COP",
    "ARS",
    "PEN",
)
UNITS = ("%", *SIGNS, *CODES)
_UNIT = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity)", re.I)
WRITTEN = re.compile(
    rf"(?P<sign>[+\-\u2212]?) ?(?P<before>{_UNIT})?[ \u00a0\u202f]?(?P<inner>[+\-\u2212]?)"
    r"(?P<digits>[0-9.,][0-9.,'\u2019_ \u00a0\u202f]*?)(?P<exponent>[eE][+-]?[0-9]+)?"
    rf"[ \u00a0\u202f]?(?P<after>{_UNIT})?"
)
ONLY_DIGITS = re.compile(r"[0-9.eE+\-\n]*")


@cache
def _digits(decimal: str, thousands: str) -> re.Pattern[str]:
    mark, between = re.escape(decimal), SEPARATORS[thousands]
    whole = rf"([1-9][0-9]{{0,2}}({between}[0-9]{{3}})+|[0-9]+)" if between else "[0-9]+"
    return re.compile(rf"{whole}({mark}[0-9]*)?|{mark}[0-9]+")


class Written(NamedTuple):
    """A number as it is written, apart from the marks between its digits."""

    negative: bool
    unit: str
    digits: str
    exponent: str


def written_number(text: str) -> Written | None:
    """Return the parts of a text that looks like a number; None for other text."""
    found = WRITTEN.fullmatch(text)
    if found is None:
        return None
    signs, units = found["sign"] + found["inner"], [found["before"], found["after"]]
    if len(signs) > 1 or all(units):
        return None
    unit = units[0] or units[1] or ""
    return Written(signs not in ("", "+"), unit, found["digits"], found["exponent"] or "")


def fits(number: Written, form: NumberForm) -> bool:
    """Whether the digits are written in this form; the unit is not compared."""
    return _digits(form.decimal, form.thousands).fullmatch(number.digits) is not None


def number_in(text: str, form: NumberForm) -> float | None:
    """Return the number that a text stands for; None if it is not written in this form."""
    found = written_number(text)
    if found is None:
        plain = NUMBER.fullmatch(text) and form.unit != "%"
        return float(text) if plain else (None if form.unit else TRUTH.get(text.lower()))
    allowed = (form.unit,) if form.unit == "%" else ("", form.unit)
    if found.unit not in allowed or not fits(found, form):
        return None
    digits = re.sub(SEPARATORS[form.thousands], "", found.digits) if form.thousands else None
    digits = (digits or found.digits).replace(form.decimal, ".")
    return float(f"{'-' * found.negative}{digits}{found.exponent}")


def numbers(values: Any, form: NumberForm = PLAIN) -> Array:
    """Return cleaned values as numbers: NaN for missing values, and for those that are none.

    The strings "true" and "false", regardless of case, are 1 and 0.
    """
    if isinstance(values, np.ndarray):
        return values
    plain = form.decimal == "." and form.unit != "%"
    try:
        if plain and ONLY_DIGITS.fullmatch("\n".join([v for v in values if v is not None])):
            return np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        pass  # other objects than text, or text such as 1-2
    known: dict[Any, float] = {}
    found = np.empty(len(values))
    for i, value in enumerate(values):
        if type(value) is str:
            if value not in known:
                number = number_in(value, form)
                known[value] = np.nan if number is None else number
            found[i] = known[value]
        else:
            found[i] = float(value) if isinstance(value, NUMERIC) else np.nan
    return found


# ---------------------------------------------------------------------------- categories


def number_as_text(value: Any) -> str:
    """Return the text of a number that is a category; 3.0 and "03" become '3'."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, str):
        if not NUMBER.fullmatch(value):
            return value
        value = int(value) if re.fullmatch("[+-]?[0-9]+", value) else float(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value.item() if isinstance(value, np.generic) else value)


def texts(values: Any, *, of_numbers: bool) -> Values:
    """Return cleaned values as text; other values than text are kept unless `of_numbers`."""
    known = isinstance(values, np.ndarray)
    values = clean(values) if known else values
    if not of_numbers:
        return values
    return [
        number_as_text(value) if isinstance(value, (str, *NUMERIC)) else value for value in values
    ]


# --------------------------------------------------------------------------------- dates

PARTS = ("year", "month", "weekday", "hour", "days")
ORDERS = ("ymd", "dmy", "mdy", "name", "time")
_CLOCK = (
    r"(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})(:(?P<s>[0-9]{2}([.,][0-9]{1,9})?))?"
    r"( ?(?P<half>[aApP]\.?[mM]\.?))?( ?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?))?"
)
_TIME = rf"((T|,? +){_CLOCK})?"
_MONTH = r"(?P<name>[A-Za-z]{3,9})\.?"
_DAYS: dict[str, tuple[str, ...]] = {
    "ymd": (r"(?P<y>[0-9]{4})(?P<sep>[-/.])(?P<mo>[0-9]{1,2})(?P=sep)(?P<d>[0-9]{1,2})",),
    "dmy": (r"(?P<d>[0-9]{1,2})(?P<sep>[-/.])(?P<mo>[0-9]{1,2})(?P=sep)(?P<y>[0-9]{4})",),
    "mdy": (r"(?P<mo>[0-9]{1,2})(?P<sep>[-/.])(?P<d>[0-9]{1,2})(?P=sep)(?P<y>[0-9]{4})",),
    "name": (
        rf"([A-Za-z]{{3,9}}, )?(?P<d>[0-9]{{1,2}})[ -]{_MONTH},?[ -](?P<y>[0-9]{{4}})",
        rf"([A-Za-z]{{3,9}}, )?{_MONTH} (?P<d>[0-9]{{1,2}})(st|nd|rd|th)?,? (?P<y>[0-9]{{4}})",
    ),
}
PATTERNS = {
    **{order: [re.compile(day + _TIME) for day in days] for order, days in _DAYS.items()},
    "time": [re.compile(_CLOCK)],
}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
EPOCH = date(1970, 1, 1).toordinal()
LOCAL = re.compile(r"[0-9] ?[+-](?!00(:?00)?$)[0-9]{2}(:?[0-9]{2})?$")  # another time than UTC


def date_parts(text: str, order: str) -> tuple[float, ...] | None:
    """Return year, month, weekday (Monday is 0), hour and days since 1970-01-01 of a date.

    The first four are those of the time as it is written; only the days take its time zone into
    account. The hour has a fraction. A time without a date has only the hour. A date in ISO format
    is read in any order. None for other text.
    """
    orders = (order,) if order in ("ymd", "time") else ("ymd", order)
    for pattern in (one for name in orders for one in PATTERNS[name]):
        if (found := pattern.fullmatch(text)) is not None:
            try:
                return _parts(found.groupdict())
            except ValueError:  # such as February 30
                return None
    return None


def _parts(found: dict[str, str | None]) -> tuple[float, ...]:
    seconds, offset = _seconds(found) if found["h"] else (0.0, 0.0)
    hour = seconds / 3600
    if "y" not in found:
        return (np.nan, np.nan, np.nan, hour, np.nan)
    name = (found.get("name") or "")[:3].lower()
    month = MONTHS.index(name) + 1 if name else int(found["mo"] or 0)
    day = date(int(found["y"] or 0), month, int(found["d"] or 0))
    days = day.toordinal() - EPOCH + (seconds - offset) / 86400
    return (float(day.year), float(month), float(day.weekday()), hour, days)


def _seconds(found: dict[str, str | None]) -> tuple[float, float]:
    """Return the seconds since midnight, and those that the time zone is ahead of UTC."""
    hour, minute = int(found["h"] or 0), int(found["m"] or 0)
    second = float((found["s"] or "0").replace(",", "."))
    half, zone = (found["half"] or "")[:1].lower(), found["zone"] or ""
    if hour > (12 if half else 23) or (half and not hour) or minute > 59 or second >= 60:
        raise ValueError
    if half:
        hour = hour % 12 + 12 * (half == "p")
    offset = 0.0
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "")
        offset = (3600 * int(digits[:2]) + 60 * int(digits[2:] or 0)) * (
            -1 if zone[0] == "-" else 1
        )
    return 3600 * hour + 60 * minute + second, offset


def dates(values: Sequence[Any]) -> Values:
    """Return cleaned values with dates and times as text in ISO format."""
    return [v.isoformat() if hasattr(v, "isoformat") else v for v in values]


def is_local_time(text: str) -> bool:
    """Whether a time is given with its difference from UTC, which is not zero."""
    return ":" in text and LOCAL.search(text) is not None


def expanded(values: Values, order: str) -> Array:
    """Return the parts of dates as columns; NaN for missing values, and for those that are none."""
    known: dict[Any, Any] = {None: (np.nan,) * len(PARTS)}
    for value in values:
        if value not in known:
            found = date_parts(value, order) if isinstance(value, str) else None
            known[value] = known[None] if found is None else found
    return np.array([known[value] for value in values], dtype=float).reshape(-1, len(PARTS))


def typical_text(values: Sequence[Any]) -> Any:
    """Return the date in the middle if all values are dates, otherwise the most frequent value."""
    texts = [value for value in values if isinstance(value, str)]
    for order in ORDERS if texts and len(texts) == len(values) else ():
        if date_parts(texts[0], order) is not None:
            parts = [date_parts(text, order) for text in texts]
            times = [found[3:][::-1] for found in parts if found is not None]  # days, then hours
            if len(times) == len(texts):
                by_time = sorted(range(len(texts)), key=lambda i: times[i][order == "time"])
                return texts[by_time[len(texts) // 2]]
    return Counter(values).most_common(1)[0][0]


# -------------------------------------------------------------------------------- errors


def check_size(name: str, values: Array, start: int) -> None:
    """Raise TableError for infinite or huge numbers; `start` is the first row, counted from 0."""
    bad = np.abs(values) > LARGEST
    if bad.any():
        row = int(bad.argmax())
        raise TableError(
            f"column {name!r} contains {values[row]:g} in row {start + row + 1}: numbers must be "
            f"finite and at most {LARGEST:g} in absolute value. Correct it, or leave it empty."
        )


def check_all(
    name: str, values: Values, good: Callable[[int], Any], what: str, advice: str, start: int
) -> None:
    """Raise TableError for the first value that is present, but not good."""
    for row, value in enumerate(values):
        if value is not None and not good(row):
            error = TableError(
                f"column {name!r} must contain {what}, but row {start + row + 1} contains "
                f"{value!r:.80}.{advice}"
            )
            error.value = value
            raise error
