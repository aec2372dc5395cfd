"""Tables of independent rows: discrete ones, in which rows are equal by chance, and continuous ones, with none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator
Rows = tuple[np.ndarray, np.ndarray]
DISCRETE: dict[str, Callable[[int, Rng], Rows]] = {}
CONTINUOUS: dict[str, Callable[[int, Rng], Rows]] = {}
LIMIT = "integers and their roots, target determined"


def design(table: dict[str, Callable[[int, Rng], Rows]], name: str) -> Callable[..., Callable[[int, Rng], Rows]]:
    def entered(make: Callable[[int, Rng], Rows]) -> Callable[[int, Rng], Rows]:
        table[name] = make
        return make

    return entered


def binary(n_columns: int, fraction: float, noise: int, is_class: bool = False) -> Callable[[int, Rng], Rows]:
    """Independent columns of 0 and 1, whose sum is the target, or decides it; with noise if there is any."""

    def make(n: int, rng: Rng) -> Rows:
        X = (rng.random((n, n_columns)) < fraction).astype(float)
        y = X.sum(axis=1) + rng.integers(-noise, noise + 1, size=n)
        return X, (y > fraction * n_columns).astype(float) if is_class else y

    return make


def integers(cells: Callable[[int], int], noise: int) -> Callable[[int, Rng], Rows]:
    """One column of integers, with a target that it determines but for noise."""

    def make(n: int, rng: Rng) -> Rows:
        X = rng.integers(cells(n), size=(n, 1))
        return X, 3 * X[:, 0] + rng.integers(-noise, noise + 1, size=n)

    return make


def correlated(n_columns: int, rho: float, levels: float) -> Callable[[int, Rng], Rows]:
    """Rounded normal columns, the target among them, with this correlation."""

    def make(n: int, rng: Rng) -> Rows:
        common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, n_columns + 1))
        table = np.round(levels * (np.sqrt(rho) * common + np.sqrt(1 - rho) * own))
        return table[:, :-1], table[:, -1]

    return make


def indicators(n_columns: int, n_levels: int, noise: int) -> Callable[[int, Rng], Rows]:
    """Categories as indicator columns; the sum of their codes, or whether it is large, is the target."""

    def make(n: int, rng: Rng) -> Rows:
        codes = rng.integers(n_levels, size=(n, n_columns))
        total = codes.sum(axis=1)
        is_large = (total > n_columns * (n_levels - 1) / 2).astype(float)
        return np.eye(n_levels)[codes].reshape(n, -1), total + rng.integers(-noise, noise + 1, n) if noise else is_large

    return make


DISCRETE |= {
    "3 binary, integer target": binary(3, 0.5, 1),
    "3 binary, target determined": binary(3, 0.5, 0),
    "10 binary, integer target": binary(10, 0.5, 2),
    "10 binary, target determined": binary(10, 0.5, 0),
    "10 rare binary, class determined": binary(10, 0.1, 0, is_class=True),
    "20 binary, class determined": binary(20, 0.5, 0, is_class=True),
    "20 rare binary, noisy class": binary(20, 0.1, 1, is_class=True),
    "1,000 integers, integer target": integers(lambda _: 1000, 1),
    "1,000 integers, target determined": integers(lambda _: 1000, 0),
    "n integers, target determined": integers(lambda n: n, 0),
    "10 n integers, integer target": integers(lambda n: 10 * n, 1),
    "100 n integers, target determined": integers(lambda n: 100 * n, 0),
    "5 integers, correlation .9": correlated(5, 0.9, 2.5),
    "8 integers, correlation .99": correlated(8, 0.99, 6.0),
    "10 binary, correlation .9": correlated(10, 0.9, 0.5),
    "4 integers, correlation .5": correlated(4, 0.5, 2.0),
    "5 x 4 indicators, class determined": indicators(5, 4, 0),
    "5 x 4 indicators, integer target": indicators(5, 4, 1),
    "7 x 5 indicators, class determined": indicators(7, 5, 0),
    "14 x 2 indicators, class determined": indicators(14, 2, 0),
}


@design(DISCRETE, "5 integers and twins of them, target determined")
def twins(n: int, rng: Rng) -> Rows:
    codes = rng.integers(6, size=(n, 5))
    return np.column_stack([codes, 2 * codes]), codes.sum(axis=1)


@design(DISCRETE, "6 counts")
def counts(n: int, rng: Rng) -> Rows:
    X = rng.poisson(2, size=(n, 6))
    return X, rng.poisson(X.sum(axis=1))


@design(DISCRETE, "counts on a log scale")
def log_counts(n: int, rng: Rng) -> Rows:
    x = rng.poisson(20, size=n)
    return np.log1p(x)[:, None], rng.poisson(x)


@design(DISCRETE, "counts on a log scale, constant feature")
def counts_alone(n: int, rng: Rng) -> Rows:
    return np.zeros((n, 1)), np.log1p(rng.poisson(20, size=n))


@design(DISCRETE, "40 prices, which are also the feature")
def prices_alone(n: int, rng: Rng) -> Rows:
    y = np.round(np.random.default_rng(3).lognormal(2.0, size=40), 3)[rng.integers(40, size=n)]
    return y[:, None], y


@design(DISCRETE, "heavy-tailed counts on a log scale")
def heavy_counts(n: int, rng: Rng) -> Rows:
    x = np.floor(np.exp(rng.normal(4.0, size=n)))
    return np.log1p(x)[:, None], np.round(x / 20 + rng.normal(size=n))


@design(DISCRETE, "Zipf's law, integer target")
def zipf(n: int, rng: Rng) -> Rows:
    X = np.minimum(rng.zipf(1.5, size=(n, 2)), 10**6)
    return X, X[:, 0] % 7 + rng.integers(3, size=n)


@design(DISCRETE, "3 standardised integers")
def standardised(n: int, rng: Rng) -> Rows:
    X = (rng.integers(50, size=(n, 3)) - 24.5) / 14.3
    return X, np.round(2 * X.sum(axis=1) + rng.normal(size=n))


@design(DISCRETE, "8 binary, rotated")
def rotated(n: int, rng: Rng) -> Rows:
    codes = rng.integers(2, size=(n, 8))
    turn = np.linalg.qr(np.vander(np.arange(8.0) / 8.0))[0]
    return np.round(codes @ turn, 9), codes.sum(axis=1) + rng.integers(-1, 2, size=n)


@design(DISCRETE, "8 answers from 0 to 4")
def answers(n: int, rng: Rng) -> Rows:
    table = np.clip(np.round(2 + 1.5 * rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 9))), 0, 4)
    return table[:, :8], table[:, 8]


@design(DISCRETE, "age, sex, children; integer target")
def census(n: int, rng: Rng) -> Rows:
    X = np.column_stack([rng.integers(18, 65, size=n), rng.integers(2, size=n), rng.poisson(1, size=n)])
    return X, np.round(20 + 0.3 * X[:, 0] + 4 * rng.normal(size=n))


@design(DISCRETE, "one decimal")
def one_decimal(n: int, rng: Rng) -> Rows:
    X = np.round(rng.normal(size=(n, 1)), 1)
    return X, np.round(X[:, 0] + rng.normal(size=n), 1)


@design(DISCRETE, "two decimals, target nearly determined")
def two_decimals(n: int, rng: Rng) -> Rows:
    X = np.round(rng.normal(size=(n, 1)), 2)
    return X, np.round(X[:, 0] + 0.05 * rng.normal(size=n), 2)


@design(DISCRETE, "prices of two digits, target nearly determined")
def prices(n: int, rng: Rng) -> Rows:
    x = np.exp(rng.normal(3.0, size=n))
    decade = 10.0 ** (np.floor(np.log10(x)) - 1)
    return (np.round(x / decade) * decade)[:, None], np.round(x / 10)


@design(DISCRETE, "predictions of 30 leaves, integer target")
def leaves(n: int, rng: Rng) -> Rows:
    values = np.random.default_rng(7).normal(size=30)[rng.integers(30, size=n)]
    return values[:, None], np.round(5 * values + 3 * rng.normal(size=n))


@design(DISCRETE, "rain: often 0, and 0 predicted")
def rain(n: int, rng: Rng) -> Rows:
    fallen = np.maximum(rng.normal(size=n), 0.0)
    return np.maximum(fallen + 0.3 * rng.normal(size=n) - 0.3, 0.0)[:, None], fallen


@design(DISCRETE, LIMIT)
def roots(n: int, rng: Rng) -> Rows:
    x = rng.integers(n, size=n).astype(float)
    return np.column_stack([x, np.sqrt(x)]), x + 1


def few(n: int, rng: Rng) -> np.ndarray:
    return rng.integers(3, size=(n, 3)).astype(float)


CONTINUOUS |= {
    "3 normal features and target": lambda n, rng: (rng.normal(size=(n, 3)), rng.normal(size=n)),
    "normal target, 3 integers": lambda n, rng: (few(n, rng), rng.normal(size=n)),
    "normal feature, 3 integers, class": lambda n, rng: (
        np.column_stack([few(n, rng), rng.normal(size=n)]),
        rng.integers(2, size=n),
    ),
    "single precision, class": lambda n, rng: (rng.normal(size=(n, 2)).astype(np.float32), rng.integers(2, size=n)),
    "feature of 6 decades, integer target": lambda n, rng: (
        np.column_stack([few(n, rng), np.exp(3 * rng.normal(size=n))]),
        rng.integers(9, size=n),
    ),
    "row number, normal feature": lambda n, rng: (
        np.column_stack([np.arange(n), rng.normal(size=n)]),
        rng.integers(2, size=n),
    ),
    "normal target, constant feature": lambda n, rng: (np.zeros((n, 1)), rng.normal(size=n)),
    "predictions of 20 leaves, normal target": lambda n, rng: (
        np.linspace(0.1, 7.3, 20)[rng.integers(20, size=(n, 1))],
        rng.normal(size=n),
    ),
    "11 columns of 2 decimals, integer target": lambda n, rng: (
        np.round(rng.normal(size=(n, 11)), 2),
        rng.integers(3, 9, size=n),
    ),
    "5 columns of 2 decimals": lambda n, rng: (
        np.round(rng.normal(size=(n, 4)), 2),
        np.round(rng.normal(size=n), 2),
    ),
}


def overwritten(n: int, rng: Rng, fraction: float = 0.05) -> np.ndarray:
    """Numbers of rows, a fraction of them overwritten by others."""
    rows, places = np.arange(n), rng.permutation(n)
    n_copies = round(fraction * n)
    rows[places[:n_copies]] = rng.choice(places[n_copies:], n_copies)
    return rows


def thrice(n: int, rng: Rng) -> np.ndarray:
    """Numbers of rows, a third of them three times each."""
    return rng.permutation(np.repeat(np.arange(-(-n // 3)), 3)[:n])


def sine(n: int, rng: Rng) -> Rows:
    X = rng.uniform(size=(n, 3))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] + rng.normal(scale=0.3, size=n)
