"""Rows that belong together, in groups or in time: how much less they say than as many independent ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri, stdtrit

from pimeter.arrays import coded, even_array, has_missing
from pimeter.coverage import counted
from pimeter.dates import moment_of
from pimeter.dependence import autocorrelation, variance_inflation

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, Index

MIN_UNITS = 10  # below which nothing is known of how they vary
MAX_UNITS = 1000  # more rows or groups are put together at random: what is left of their skewness is the same
MIN_EFFECTIVE_ROWS = 30  # of rows in time
MIN_EXPECTED_MISSES = 2.0  # misses, or groups of equal size that have one, below which little is known of them
FREEDOM = 1.4  # of the degrees of freedom by the kurtosis of misses in groups, which are few
BLOCKS_PER_ROOT = 2.4  # stretches of n moments, per cube root of n: long against the dependence, and not too few
INDEPENDENT = {  # what ranges assume, by kind of units
    "rows": "independent rows",
    "groups": "groups that are independent of each other",
    "time": "dependence that fades with time, and no drift",
}


@dataclass(frozen=True)
class Units:
    """Parts of the rows that are independent of each other: single rows, groups, or stretches of time, about.

    Attributes
    ----------
    kind : str
        "rows", "groups" or "time".
    codes : array of shape (m,) or None
        The unit of each row; None if each row is one. Of stretches in time, the half of one: 0 and 1 are the first.
    n : int
        Number of units.
    refusal : str
        Why no range can be given; empty if one can.
    n_groups : int
        Number of groups; 0 if the units are others.
    n_equal : float
        Number of groups of equal size that vary as much; 0 if the units are others.
    """

    kind: str
    codes: Index | None
    n: int
    refusal: str = ""
    n_groups: int = 0
    n_equal: float = 0.0

    @classmethod
    def of(cls, m: int, groups: Index | None, moments: Index | None, values: Array) -> Units:
        """Groups if there are any, else stretches of time if moments are known, else single rows."""
        if groups is not None:
            return cls.of_groups(groups)
        return cls.of_rows(m) if moments is None else cls.of_time(moments, values)

    @property
    def if_dependent(self) -> Units | None:
        """Groups and stretches of time; None for independent rows."""
        return None if self.kind == "rows" else self

    @classmethod
    def of_rows(cls, m: int) -> Units:
        """Independent rows; of more than 1,000, so many random parts."""
        refusal = f"{counted(m, 'row')}, at least {MIN_UNITS} are needed" if m < MIN_UNITS else ""
        return cls("rows", None, m, refusal) if m <= MAX_UNITS else cls.at_random(m)

    @classmethod
    def at_random(cls, m: int) -> Units:
        """Independent rows in 1,000 random parts, which may be a part of more rows."""
        return cls("rows", np.random.default_rng(m).integers(MAX_UNITS, size=m), MAX_UNITS)

    @classmethod
    def of_groups(cls, codes: Index) -> Units:
        """Groups of rows, by their numbers from 0; of more than 1,000, so many random parts."""
        n_groups, rows = int(codes.max()) + 1, np.bincount(codes).astype(np.float64)
        n_equal = min(float(rows.sum() ** 2 / (rows @ rows)), float(n_groups))
        refusal = ""
        if n_groups < MIN_UNITS:
            refusal = f"{counted(n_groups, 'group')}, at least {MIN_UNITS} are needed"
        elif n_equal < MIN_UNITS * (1.0 - 1e-9):
            refusal = (
                f"{n_groups:,} groups say as little as {int(n_equal)} of equal size, at least {MIN_UNITS} are needed"
            )
        if n_groups > MAX_UNITS:
            codes = np.random.default_rng(n_groups).integers(MAX_UNITS, size=n_groups)[codes]
        return cls("groups", codes, min(n_groups, MAX_UNITS), refusal, n_groups, n_equal)

    @classmethod
    def of_time(cls, moments: Index, values: Array) -> Units:
        """Stretches of time, from the number of each row's moment, in rising order, and what may depend on time."""
        n_moments, m = int(moments[-1]) + 1, len(moments)
        n_blocks = max(round(BLOCKS_PER_ROOT * n_moments ** (1 / 3)), 2)
        refusal = ""
        if n_blocks < MIN_UNITS:
            refusal = f"{counted(n_moments, 'moment')} of time, too few to see how rows depend on each other"
        elif (n := min(effective_rows(moments, one) for one in (values, np.abs(values)))) < MIN_EFFECTIVE_ROWS:
            refusal = f"{m:,} rows say as little as {int(n)} independent ones, at least {MIN_EFFECTIVE_ROWS} are needed"
        return cls("time", moments * (2 * n_blocks) // n_moments, n_blocks, refusal)

    def of_rows_at(self, rows: Index) -> Units:
        """The units of some of the rows."""
        return self if self.codes is None else replace(self, codes=self.codes[rows])

    @property
    def labels(self) -> Index | None:
        """The whole unit of each row."""
        return self.codes // 2 if self.kind == "time" and self.codes is not None else self.codes

    def sums(self, values: Array) -> Array:
        """Sums over units, or halves of them, of values of shape (..., m)."""
        if self.codes is None:
            return values
        n = self.n * (2 if self.kind == "time" else 1)
        flat = values.reshape(-1, values.shape[-1])
        found = np.array([np.bincount(self.codes, one, n) for one in flat], np.float64)
        return found.reshape(*values.shape[:-1], n)

    def whole(self, sums: Array) -> Array:
        """Sums over units from those over their halves."""
        return sums.reshape(*sums.shape[:-1], self.n, 2).sum(axis=-1) if self.kind == "time" else sums

    def variance(self, sums: Array) -> Array:
        """Variance of the total of values, from `sums` whose total is 0.

        Of stretches of time twice that of whole ones less that of their halves, which the dependence between neighbours
        makes too small by twice as much (Vats and Flegal's lugsail estimator), and no less than that of whole ones.
        """
        n = self.n_equal or self.n
        found: Array = n / max(n - 1.0, 1.0) * np.square(self.whole(sums)).sum(axis=-1)
        if self.kind == "time":
            halves = 2 * self.n / max(2 * self.n - 1, 1) * np.square(sums).sum(axis=-1)
            found = np.clip(2.0 * found - halves, found, 2.0 * found)
        return found

    def factor(self, confidence: float = 0.9) -> float:
        """Factor by which ranges are wider than normal ones: the variance of so many units is not known exactly."""
        point = (1.0 + confidence) / 2.0
        n = self.n_equal or self.n
        return float(stdtrit(n - 1, point) / ndtri(point)) if n > 1.0 else 1.0

    def student(self, sums: Array, part: float, confidence: float = 0.9) -> Array:
        """Points of Student's t, with the degrees of freedom that kurtosis leaves the variance of `sums`.

        Of these only a part counts, as the kurtosis of a sample is not that of the distribution.
        """
        squares = np.square(self.whole(sums))
        total = squares.sum(axis=-1)
        kurtosis = self.n * np.square(squares / np.where(total, total, 1.0)[..., None]).sum(axis=-1)
        freedom = np.clip(part * self.n / np.maximum(kurtosis - 1.0, 1e-9), 2.0, max(self.n - 1.0, 1.0))
        return np.asarray(stdtrit(freedom, (1.0 + confidence) / 2.0))

    def stretch(self, sums: Array, confidence: float = 0.9) -> Array:
        """By what factor ranges of what is counted are wider than normal ones, from `sums` whose total is 0.

        That of so many units, or that of the degrees of freedom that their kurtosis leaves, whichever is larger.
        """
        normal = float(ndtri((1.0 + confidence) / 2.0))
        return np.asarray(np.maximum(self.factor(confidence), self.student(sums, FREEDOM, confidence) / normal))

    def design_effect(self, is_counted: Array) -> Array:
        """How much more proportions vary than those of independent rows, at least 1; rows are 0 or 1, (..., m)."""
        return self.effect_of_counts(self.sums(is_counted), self.sums(np.ones(is_counted.shape[-1])))

    def widened_effect(self, is_counted: Array, confidence: float = 0.9) -> Array:
        """`design_effect` as ranges need it: larger by the square of `stretch`."""
        counts, rows = self.sums(is_counted), self.sums(np.ones(is_counted.shape[-1]))
        centred = counts - counts.sum(axis=-1, keepdims=True) / rows.sum() * rows
        return np.asarray(self.effect_of_counts(counts, rows) * self.stretch(centred, confidence) ** 2)

    def least_effect(self, m: int, levels: Array | float) -> Array:
        """Least design effects of proportions near these levels, of m rows: where few groups are expected to differ.

        How their rows go together is not known then, whatever they seem to say: each group counts as one row.
        """
        if not self.n_equal:
            return np.ones(np.shape(levels))
        n_expected = self.n_equal * np.minimum(levels, np.subtract(1.0, levels))
        return np.where(n_expected < MIN_EXPECTED_MISSES * (1.0 - 1e-9), m / self.n_equal, 1.0)

    def effect_of_counts(self, counts: Array, rows: Array) -> Array:
        """`design_effect` from what is counted in units, or halves of them, and their rows."""
        m = rows.sum()
        proportion = counts.sum(axis=-1, keepdims=True) / m
        independent = np.maximum(m * proportion * (1.0 - proportion), 1e-300)[..., 0]
        return np.asarray(np.maximum(self.variance(counts - proportion * rows) / independent, 1.0))


def effective_rows(moments: Index, values: Array) -> float:
    """How many independent rows vary as much as the mean of these, which are in the order of their moments."""
    scaled = values / (float(np.abs(values).max()) or 1.0)
    centred = scaled - scaled.mean()
    series = np.bincount(moments, centred) / np.bincount(moments)
    of_mean = float(variance_inflation(autocorrelation(series))) * float(series.var()) / len(series)
    return min(float(centred.var()) / of_mean, float(len(values))) if of_mean else float(len(values))


def group_numbers(groups: ArrayLike, m: int) -> Index:
    """Numbers from 0 of the groups of m rows."""
    return coded(_one_each("groups", "group", groups, m)).codes


def moment_numbers(time: ArrayLike, m: int) -> Index:
    """Numbers from 0 of the moments of m rows in their order, equal ones for equal moments."""
    moments = _one_each("time", "moment", time, m)
    try:
        labels, codes = np.unique(moments, return_inverse=True)
        strings = [label for label in labels.tolist() if isinstance(label, str | bytes)]
        return np.unique(_moments_of(strings), return_inverse=True)[1][codes] if strings else codes
    except TypeError as mixed:
        msg = f"time holds moments that cannot be put in order ({mixed}); give numbers, dates or ISO strings."
        raise ValueError(msg) from mixed


def _moments_of(strings: list[str | bytes]) -> NDArray[Any]:
    """The moments that strings tell; a ValueError of those that have no order but that of their letters."""
    found = []
    for text in strings:
        moment = moment_of(text if isinstance(text, str) else text.decode(errors="replace"))
        if moment is None:
            msg = (
                f"time holds {text!r}, which is not an ISO date: strings are ordered by their letters. Give numbers, "
                "dates or ISO strings."
            )
            raise ValueError(msg)
        found.append(moment)
    return np.array(found, dtype=object)


def _one_each(name: str, what: str, values: ArrayLike, m: int) -> NDArray[Any]:
    """One label for each of m rows, none missing."""
    labels = even_array(name, values)
    if labels.shape != (m,):
        msg = f"{name} must hold one {what} for each of the {m} rows; got shape {labels.shape}."
        raise ValueError(msg)
    if has_missing(labels):
        msg = f"{name} has missing values; leave these rows out, or give each of them a {what} of its own."
        raise ValueError(msg)
    return labels
