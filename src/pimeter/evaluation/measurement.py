"""What `measure` returns: how good a model is, as plain numbers and sentences."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from pimeter.encoding import MEASUREMENT, built, with_names
from pimeter.evaluation.curves import Curves  # noqa: TC001 - `encoding.built` looks the types of fields up
from pimeter.evaluation.diagnosis.evidence import Subgroup  # noqa: TC001
from pimeter.evaluation.results import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from pimeter.protocols import Columns


@dataclass(frozen=True)
class Score:
    """A score, and where it would lie for very many such rows.

    Attributes
    ----------
    value, lower, upper : float
        The score, and bounds of it with 90 % confidence; NaN where they are not known.
    meaning : str
        What it is.
    assumes : str
        What the range assumes, or why there is none.
    """

    value: float
    lower: float
    upper: float
    meaning: str
    assumes: str


def score_table(scores: Mapping[str, Score]) -> Columns:
    """Scores with their ranges, as columns."""
    rows = [asdict(score) for score in scores.values()]
    return {"score": [*scores], **{key: [row[key] for row in rows] for key in rows[0]}}


@dataclass(frozen=True)
class Sample:
    """Some rows, and a histogram of all residuals, for plots.

    Attributes
    ----------
    y_true, y_pred : tuple of float
        Some rows in random order.
    bin_edges : tuple of float
        Edges of a histogram of all residuals but the farthest.
    bin_counts : tuple of int
        Residuals in each bin.
    n_beyond : int
        Residuals outside of the bins.
    """

    y_true: tuple[float, ...]
    y_pred: tuple[float, ...]
    bin_edges: tuple[float, ...]
    bin_counts: tuple[int, ...]
    n_beyond: int


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Measurement(Result):
    """How good a model is: what `measure` found, as plain numbers and words.

    Attributes
    ----------
    headline, diagnosis : Headline, Diagnosis
        The answer, a claim and its evidence; findings, advice and code.
    confidence_level : float
        Fraction of new targets that intervals should cover.
    n_rows, n_folds : int
        Number of rows, and of folds for cross-fitting.
    margin : tuple of float
        How far intervals extend below and above the prediction, learned from all rows.
    coverage : float
        Cross-fitted fraction of rows within the margin: each row is judged by a margin that has not seen it. NaN if
        there is one row alone.
    coverage_range : tuple of float
        5 % and 95 % points of the true coverage of `margin`, by the Beta distribution of ranks; where some residuals
        are tied, the upper one is that of the next larger one. With `groups` or `time` of as many rows as vary as much
        if they are independent; NaN if too few.
    guaranteed_level : float
        Coverage that is guaranteed on average: the confidence level, or what so few rows can guarantee; NaN, none, if
        rows belong together (`groups`, `time`), if their order matters by the diagnosis, or if rows are copies of
        others. For copies all ranges but those of the diagnosis are wider by a factor, approximately.
    mean_width : float
        Width of the intervals.
    scores : dict of str to Score
        Each with its range; `meaning` says what it is, `assumes` what the range assumes, or why there is none.
    subgroups : tuple of Subgroup
        Cross-fitted coverage across quintiles of the prediction and of each feature, and per category.
    recommended_width, recommended_tails : str
        What `IntervalRegressor` should use.
    curves : Curves
        The same numbers at levels .50 to .99 by .01, .995 and .999, also for subgroups of the rows.
    sample : Sample
        What plots show.
    versions : dict of str to str
        What made the numbers.
    """

    confidence_level: float
    n_rows: int
    n_folds: int
    margin: tuple[float, float]
    coverage: float
    coverage_range: tuple[float, float]
    guaranteed_level: float
    mean_width: float
    scores: dict[str, Score]
    subgroups: tuple[Subgroup, ...]
    recommended_width: str
    recommended_tails: str
    curves: Curves
    sample: Sample
    versions: dict[str, str]

    def _table(self) -> Columns:
        """The scores with their ranges."""
        return score_table(self.scores)

    def _page(self, about: Mapping[str, str]) -> str:
        """A page with a slider for the confidence level."""
        from pimeter.report.page import page_html

        return page_html(self.to_dict(), about)

    def to_json(self) -> str:
        """Everything as JSON text, which `from_json` turns into the same bits again."""
        return json.dumps(MEASUREMENT.sealed(with_names(self.to_dict())), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; nothing is executed.

        Raises
        ------
        ValueError
            If the text is not such JSON, of another version, or was changed.
        """
        found: Self = built(cls, MEASUREMENT.opened(text)["body"], "measurement")
        if found.confidence_level not in found.curves.levels:
            msg = "text is not a complete measurement: its curves leave out its own confidence level."
            raise ValueError(msg)
        return found

    def _plot_png(self) -> bytes | None:
        """The four plots of `plot`."""
        from pimeter.report.plots import overview_png

        return overview_png(self.to_dict())

    def plot(self, axes: NDArray[Any] | None = None) -> NDArray[Any]:
        """Four plots: the residuals, coverage against level, coverage in subgroups, residuals by prediction.

        Parameters
        ----------
        axes : array of four matplotlib axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        ndarray of shape (2, 2)
            The axes.
        """
        from pimeter.report.plots import draw_overview

        return draw_overview(self.to_dict(), axes)

    def plot_coverage(self, ax: Axes | None = None) -> Axes:
        """Cross-fitted coverage against the level asked for, on new axes or those given."""
        from pimeter.report.plots import draw_coverage

        return draw_coverage(self.to_dict(), ax)

    def plot_intervals(self, ax: Axes | None = None) -> Axes:
        """Targets of some rows with their intervals, in the order of the prediction, on new axes or those given."""
        from pimeter.report.plots import draw_intervals

        return draw_intervals(self.to_dict(), ax)
