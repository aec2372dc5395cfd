"""What people do with the intervals of a panel: sums and means over the horizon, and sample paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pimeter.conformal.estimator import Replaceable
from pimeter.coverage import counted
from pimeter.forecast.limits import within_limits
from pimeter.forecast.long_frames import bound_column, opened, read_future
from pimeter.forecast.panel_bounds import warn_of_pooled
from pimeter.forecast.panel_context import Ahead
from pimeter.forecast.panel_model import expected_errors
from pimeter.forecast.panel_paths import Paths
from pimeter.forecast.paths import step_weights
from pimeter.validation import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import narwhals as nw
    from numpy.typing import ArrayLike, NDArray

    from pimeter.forecast.long_frames import Clock, Names, Rows
    from pimeter.forecast.panel_bounds import NewSeries, Rule
    from pimeter.forecast.panel_model import Known, ModelErrors
    from pimeter.forecast.panel_windows import PanelWindows
    from pimeter.protocols import Array, Index


@dataclass(frozen=True)
class Future:
    """A frame of forecasts to come: its rows, and the windows that they are of."""

    given: nw.DataFrame[Any]
    rows: Rows
    window: Index  # of each row
    series: Index  # of each window
    cutoff: Index

    def table(self, values: Array, horizon: int) -> Array:
        """Values of rows as windows (n, h), NaN for steps that the frame does not hold."""
        found = np.full((len(self.series), horizon), np.nan)
        found[self.window, self.rows.step - 1] = values
        return found


class PanelSums(Replaceable, BaseEstimator):
    """Windows of a panel whose steps are taken together; settings are those of `PanelIntervals`."""

    models_: list[str]
    rules_: dict[str, Rule]
    y_min: float | None
    y_max: float | None
    _levels: Array
    _names: Names
    _clock: Clock
    _limits: tuple[float | None, float | None]
    _windows: PanelWindows
    _last_known: Array
    _errors: dict[str, ModelErrors]
    _known: dict[str, Known | None]
    _new: dict[str, NewSeries]
    _mixing: tuple[int | None, float | None]
    _sum_rules: dict[str, Rule]

    def sum_interval(self, frame: Any, *, of: Literal["sum", "mean"] = "sum", weights: ArrayLike | None = None) -> Any:
        """Intervals of the sum or the mean of targets over the horizon, such as weekly demand from daily forecasts.

        Parameters
        ----------
        frame : frame
            Forecasts, as `predict_interval` takes them, of all steps that count.
        of : {"sum", "mean"}, default="sum"
            What the interval is of.
        weights : array-like of shape (h,), optional
            What each step of the windows of `fit` counts: 0 leaves a step out, prices make a turnover.

        Returns
        -------
        frame
            A row for each series, and cutoff where the frame has them: the sum of each model's forecasts, and its
            bounds at each level; NaN where a forecast is missing.

        Warns
        -----
        CoverageWarning
            If series are new or short, and get the panel's answer.
        """
        future = self._future(frame)
        counts = step_weights(of, weights, self._windows.horizon)
        self._refuse_missing_steps(future, counts)
        first = np.unique(future.window, return_index=True)[1]
        names = [self._names.series, *([self._names.cutoff] if self._names.cutoff in future.given.columns else [])]
        columns = []
        for model in self.models_:
            ahead = self._ahead(model, future)
            expected = expected_errors(ahead, self._known[model]).summed(counts)
            errors, rule = self._of_sums(model, counts)
            new = errors.new(self._levels)
            self._warn_of_pooled(errors, ahead, new)
            pool = errors.pool(self._levels, rule)
            lower, upper = errors.bounds(ahead, expected, rule, pool, new, self._levels)
            held = np.where(counts == 0.0, 0.0, ahead.forecasts)
            total = held @ counts
            limits = _limits_of_sums(self._limits, counts)
            columns.append(_column(future, model, total))
            columns += self._bound_columns(model, future, total, [lower[:, 0], upper[:, 0]], limits)
        return future.given[first.tolist()].select(names).with_columns(*columns).to_native()

    def sample_paths(self, frame: Any, n_paths: int = 100, *, random_state: int | None = None) -> Any:
        """Paths that targets may take, with the margins of the intervals and the dependence of past windows.

        Parameters
        ----------
        frame : frame
            Forecasts of whole windows, as `predict_interval` takes them.
        n_paths : int, default=100
            For each series; 100 or more have the margins of the intervals exactly.
        random_state : int, optional
            Which windows are drawn, and in which order.

        Returns
        -------
        frame
            The rows of the frame once for each path, numbered by `sample_id` from 0, with the values of the path in the
            columns of the models.

        Notes
        -----
        The highest and lowest values of paths hold as often as single steps only if errors do not depend on the
        forecast. Those of seasonal naive forecasts do: take ``context="recent"`` with a `season_length` then.
        """
        future = self._future(frame)
        n_paths = integer("n_paths", n_paths, at_least=1)
        rng = check_random_state(random_state)
        n = len(future.given)
        repeated = future.given[np.tile(np.arange(n), n_paths).tolist()]
        columns = [_column(future, "sample_id", np.repeat(np.arange(n_paths), n))]
        for model in self.models_:
            ahead = self._ahead(model, future)
            expected = expected_errors(ahead, self._known[model])
            paths = Paths(self._errors[model], self.rules_[model], self._levels, rng)
            errors = paths(ahead, expected, n_paths)[future.window, :, future.rows.step - 1]  # (rows, n_paths)
            values = within_limits(future.rows.forecasts[model][:, None] + errors, *self._limits)
            columns.append(_column(future, model, values.T.ravel()))
        return repeated.with_columns(*columns).to_native()

    def _of_sums(self, model: str, counts: Array) -> tuple[ModelErrors, Rule]:
        """Errors of sums, and how their windows count: learned when first asked for."""
        errors = self._errors[model].summed(counts)
        if not (~np.isnan(errors.raw)).any():
            msg = (
                "sums need windows of which all steps that count are known; there are none. Give others a weight of 0."
            )
            raise ValueError(msg)
        key = f"{model} {counts.tolist()}"
        if key not in self._sum_rules:
            self._sum_rules[key] = errors.rule(self._levels, *self._mixing)
        return errors, self._sum_rules[key]

    def _refuse_missing_steps(self, future: Future, counts: Array) -> None:
        """Refuse windows that lack steps which count."""
        there = ~np.isnan(future.table(np.zeros(len(future.window)), self._windows.horizon))
        lacking = (~there & (counts != 0.0)).any(axis=1)
        if lacking.any():
            n, at = int(lacking.sum()), int(lacking.argmax())
            msg = (
                f"frame: {counted(n, 'window')} {'lacks' if n == 1 else 'lack'} rows for some of the "
                f"{counted(int((counts != 0.0).sum()), 'step')} that count; the first, of "
                f"{future.rows.ids[int(future.series[at])]!r}, has {int((there[at] & (counts != 0.0)).sum())}. Give "
                "them, or weights that are 0 for the steps that are left out."
            )
            raise ValueError(msg)

    def _future(self, frame: Any) -> Future:
        """Rows of forecasts to come, and their windows."""
        check_is_fitted(self)
        names = self._names
        given = opened("frame", frame, (names.series, names.time, *self.models_, *names.features))
        rows = read_future("frame", given, names, self.models_, self._clock, self._windows.ids)
        if int(rows.step.max()) > self._windows.horizon:
            msg = (
                f"frame holds a forecast of step {int(rows.step.max())}; windows of fit have {self._windows.horizon}. "
                "Fit with longer windows, or leave these steps out."
            )
            raise ValueError(msg)
        low = int(rows.cutoff.min())
        n_moments = int(rows.cutoff.max()) - low + 1
        distinct, window = np.unique(rows.series.astype(np.intp) * n_moments + rows.cutoff - low, return_inverse=True)
        series, cutoff = distinct // n_moments, distinct % n_moments + low
        self._refuse_known(rows, series, cutoff)
        return Future(given, rows, window, series, cutoff)

    def _refuse_known(self, rows: Rows, series: Index, cutoff: Index) -> None:
        """Refuse forecasts from before targets that `fit` knew."""
        held = np.append(self._last_known, np.full(max(len(rows.ids) - len(self._last_known), 0), -np.inf))
        early = cutoff < held[series]
        if early.any():
            which = rows.ids[int(series[early][0])]
            msg = (
                f"frame holds forecasts of {counted(int(early.sum()), 'window')} from before targets that fit or "
                f"update was given, the first of {which!r}: intervals would know these. Fit to what was known by then."
            )
            raise ValueError(msg)

    def _ahead(self, model: str, future: Future) -> Ahead:
        """Windows of one model."""
        horizon = self._windows.horizon
        features = [future.table(one, horizon) for one in future.rows.features.values()]
        table = np.stack(features, axis=-1) if features else np.zeros((len(future.series), horizon, 0))
        return Ahead(future.series, future.cutoff, future.table(future.rows.forecasts[model], horizon), table)

    def _warn_of_pooled(self, errors: ModelErrors, ahead: Ahead, new: NewSeries) -> None:
        """Say which of the windows to come get the panel's answer."""
        n_pooled = int((~errors.has_own(ahead.series)).sum())
        warn_of_pooled(n_pooled, len(ahead.series), [new], float(self._levels[-1]))

    def _bound_columns(
        self,
        model: str,
        future: Future,
        forecast: Array,
        bounds: Sequence[Array],
        limits: tuple[float | None, float | None] | None = None,
    ) -> list[Any]:
        """Columns of bounds at all levels, the lowest first; `bounds` are those of errors, (rows, levels) each."""
        found = []
        for side, own in zip(("lo", "hi"), bounds, strict=True):
            values = within_limits(forecast[:, None] + own, *(self._limits if limits is None else limits))
            order = range(len(self._levels))
            found += [
                _column(future, bound_column(model, side, self._levels[i]), values[:, i])
                for i in (reversed(order) if side == "lo" else order)
            ]
        return found


def _column(future: Future, name: str, values: NDArray[Any]) -> Any:
    """A column for a frame of the same library."""
    import narwhals as nw

    kind = nw.Float64 if values.dtype.kind == "f" else nw.Int64
    return nw.new_series(name, values, kind, backend=future.given.implementation)


def _limits_of_sums(limits: tuple[float | None, float | None], counts: Array) -> tuple[float | None, float | None]:
    """Between which a weighted sum of targets lies that are within limits."""
    low, high = (-np.inf if limits[0] is None else limits[0]), (np.inf if limits[1] is None else limits[1])
    used = counts[counts != 0.0]
    least = float(np.where(used > 0.0, used * low, used * high).sum())
    most = float(np.where(used > 0.0, used * high, used * low).sum())
    return (least if np.isfinite(least) else None), (most if np.isfinite(most) else None)
