"""`Recalibration`: a model calibrated anew on rows since a change, and what an online neuron would have done."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import as_frame
from pimeter.coverage import CoverageWarning
from pimeter.frames import named_columns
from pimeter.interval_arrays import lower_and_upper, targets
from pimeter.validation import known_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.monitoring.stream import Stream
    from pimeter.protocols import Array

LARGEST_SCORE = 1e300
SELECTED = "the calibration rows were selected by an alarm; recalibrate with rows that came since"


@dataclass(frozen=True)
class Recalibration:
    """What `CoverageMonitor.recalibrate` did.

    Attributes
    ----------
    n_rows : int
        Rows that calibrated the model.
    was_selected : bool
        Whether an alarm had selected them; then nothing is guaranteed.
    guaranteed_level : float
        What the model guarantees; NaN where nothing is.
    coverage_before : float
        Coverage of these rows by the intervals of the model as it was.
    coverage_online : float
        Coverage of these rows by an `OnlineNeuron` that scales the same intervals and learns from each target as it
        comes; NaN where it cannot be said.
    """

    n_rows: int
    was_selected: bool
    guaranteed_level: float
    coverage_before: float
    coverage_online: float

    def __str__(self) -> str:
        online = (
            ""
            if math.isnan(self.coverage_online)
            else f"; an online neuron would have covered {self.coverage_online:.3f}"
        )
        before = f"The intervals as they were covered {self.coverage_before:.3f} of {self.n_rows:,} rows{online}."
        guarantee = f"Nothing is guaranteed: {SELECTED}." if self.was_selected else "No alarm selected these rows."
        return f"{before} {guarantee}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with None for what is not known."""
        return {name: None if math.isnan(value) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Recalibration:
        """What `to_dict` returned."""
        known: dict[str, Any] = {name: math.nan if value is None else value for name, value in values.items()}
        return cls(**known)


def recalibrated(stream: Stream, earlier: Recalibration | None, model: Any, X: Any, y: ArrayLike) -> Recalibration:
    """Calibrate a model on the rows since the change, or on those since it was calibrated on selected ones."""
    was_selected = stream.alarm is not None
    if stream.alarm is not None:
        n_rows = stream.counts.rows - stream.alarm.since.row
    elif earlier is not None and earlier.was_selected:
        n_rows = stream.counts.rows
    else:
        msg = "there was no alarm, so there is no change to recalibrate for. To calibrate anyway, call the model."
        raise ValueError(msg)
    y_true = targets(y)
    if len(y_true) < n_rows or not n_rows:
        msg = f"recalibrate takes the last {n_rows:,} rows that were watched, at least one; got {len(y_true):,}."
        raise ValueError(msg)
    is_regressor = hasattr(model, "calibrate")
    before = np.asarray(model.predict_interval(X), dtype=np.float64) if is_regressor else _given_intervals(X)
    lower, upper = lower_and_upper(before, 1)
    is_covered = (lower <= y_true) & (y_true <= upper)
    online = _online_coverage(y_true, lower, upper, stream.settings.confidence_level, n_rows)
    rows = np.arange(len(y_true) - n_rows, len(y_true))
    if is_regressor:
        from sklearn.utils import _safe_indexing

        model.calibrate(_safe_indexing(X, rows), y_true[rows])
    else:
        model.fit(y_true[rows], intervals=before[rows])
    if was_selected:
        _doubt(model)
    level = float(getattr(model, "guaranteed_level_", math.nan))
    return Recalibration(int(n_rows), was_selected, level, float(is_covered[rows].mean()), online)


def _given_intervals(X: Any) -> Array:
    """The intervals that a calibrator is given: of a frame the columns lower and upper, as when they were watched."""
    frame = as_frame(X)
    return known_numbers("X", X if frame is None else named_columns("X", frame, ("lower", "upper")))


def _doubt(model: Any) -> None:
    """Let a model guarantee nothing, also once rows are added to it, or it is read from a file."""
    if not hasattr(model, "_quantile"):  # of the caller's
        model.guaranteed_level_, model.guaranteed_, model.guarantee_reason_ = math.nan, False, SELECTED
        return
    scores = getattr(model, "_scores_seen", model._quantile.scores)
    with warnings.catch_warnings():  # of few scores, of which calibration has warned
        warnings.simplefilter("ignore", CoverageWarning)
        model._learn(replace(scores, doubts=(*scores.doubts, SELECTED)))


def _online_coverage(y: Array, lower: Array, upper: Array, level: float, n_last: int) -> float:
    """Coverage of the last rows by intervals whose half-widths an online neuron multiplies; NaN without widths."""
    from pimeter.online import OnlineNeuron

    half = (upper - lower) / 2.0
    if not (np.isfinite(half) & (half > 0.0)).all():
        return math.nan
    scores = np.minimum(np.abs(y - (lower + half)) / half, LARGEST_SCORE)
    neuron, covered = OnlineNeuron(level), []
    for score in scores:
        covered.append(bool(score <= neuron.quantile_))  # not before the first: NaN
        neuron.learn_one(float(score))
    return float(np.mean(covered[-n_last:]))
