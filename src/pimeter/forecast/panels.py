"""`PanelIntervals`: intervals around the forecasts of many series, in the long frames that forecasters have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pimeter.constraints import Level
from pimeter.coverage import counted, warn_of_coverage
from pimeter.forecast.features import Standardised
from pimeter.forecast.limits import check_within
from pimeter.forecast.long_frames import Names, Rows, model_columns, opened, read_rows
from pimeter.forecast.panel_bounds import MIN_OWN_WINDOWS, Rule, warn_of_pooled
from pimeter.forecast.panel_context import History, PanelContext
from pimeter.forecast.panel_model import Known, ModelErrors, expected_errors
from pimeter.forecast.panel_sums import PanelSums
from pimeter.forecast.panel_windows import PanelWindows
from pimeter.frames import frame_of
from pimeter.validation import check_limits, one_or_more_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POOLING = {"auto": None, "series": 0.0, "panel": np.inf}  # windows of the panel that are added to those of a series


class PanelIntervals(PanelSums):
    """Intervals around the forecasts of many series, from their past forecasts in a long frame.

    Each series' own errors, step by step, and those of all series in its scale say how far a target may be from its
    forecast. How the two are mixed, and which windows count, is learned on the newer windows from the older ones.
    Frames of pandas, polars, pyarrow and dask; those of statsforecast, mlforecast and neuralforecast as they are.

    Parameters
    ----------
    confidence_level : float or sequence of floats, default=(0.8, 0.95)
        Proportions of targets that intervals should cover, with half of the misses on either side.
    id_col, time_col, target_col, cutoff_col : str
        Columns of the series, of the moment that a row is about, of the target, and of the last moment that the
        forecast knew.
    models : sequence of str, optional
        Columns of forecasts. None: all columns of numbers that are none of the others.
    season_length : int, optional
        Steps after which a pattern repeats, such as 24 for hourly values. Windows made at the same moment of the season
        then count most, if that helped on the newer windows.
    context : {"recent"} or None, default=None
        "recent": what was known when a forecast was made moves and scales its interval. The newest errors of the
        series, how the forecast differs from the newest target and, with a season, from the same moment of earlier
        seasons, and `features` predict the error to come and how large it may be, by regressions of all series
        together, learned by `fit`; quantiles are of what remains. For series whose errors resemble those before.
    features : sequence of str, optional
        With `context`: columns of numbers that are known of each time beforehand, such as prices or promotions; also in
        frames of forecasts.
    pooling : {"auto", "series", "panel"}, default="auto"
        "series": each by its own errors; "panel": by those of all series, in its own scale; "auto": between them, the
        more by its own the more windows it has, as learned. Series with fewer than 5 windows get the panel's answer.
    y_min, y_max : float, optional
        Targets are never below or above: intervals end there.

    Attributes
    ----------
    models_ : list of str
        Columns of forecasts.
    series_ : frame
        A row for each series and model: `n_windows`, and `answer`, "own" or, where it is new or short, "panel".
    n_missing_ : int
        Errors that are not known, of the places that windows have.
    excluded_ : dict
        Columns of forecasts that were left out, and why.
    rules_ : dict
        Of each model: how windows count and how series and panel are mixed.

    See Also
    --------
    ForecastIntervals : Cones of one series, or of several with equally many windows, in arrays.

    Notes
    -----
    For a series without windows of its own coverage is guaranteed at each step if it is exchangeable with the series of
    `fit`, and these are enough: 39 for 95 %. Its interval is relative to the mean absolute forecast of its window. A
    series with fewer than five windows gets the same. Nothing is guaranteed for a series with more: windows overlap,
    and series drift.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from pimeter import PanelIntervals
    >>> rng = np.random.default_rng(0)
    >>> ids, made, steps = np.meshgrid(["a", "b", "c"], np.arange(60), [1, 2], indexing="ij")
    >>> past = pd.DataFrame({"unique_id": ids.ravel(), "cutoff": made.ravel(), "ds": (made + steps).ravel()})
    >>> past["y"] = past.groupby(["unique_id", "ds"])["ds"].transform(lambda own: rng.normal(100, 1))
    >>> past["naive"] = 100.0
    >>> intervals = PanelIntervals(0.9).fit(past)
    >>> future = pd.DataFrame({"unique_id": ["a", "a"], "ds": [63, 64], "naive": [100.0, 100.0]})
    >>> intervals.predict_interval(future).columns.tolist()
    ['unique_id', 'ds', 'naive', 'naive-lo-90', 'naive-hi-90']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confidence_level": [Level(), "array-like"],
        "id_col": [str],
        "time_col": [str],
        "target_col": [str],
        "cutoff_col": [str],
        "models": ["array-like", None],
        "season_length": [Interval(Integral, 2, None, closed="left"), None],
        "context": [StrOptions({"recent"}), None],
        "features": ["array-like", None],
        "pooling": [StrOptions(set(POOLING))],
        "y_min": [Real, None],
        "y_max": [Real, None],
    }

    def __init__(
        self,
        confidence_level: float | Sequence[float] = (0.8, 0.95),
        *,
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
        cutoff_col: str = "cutoff",
        models: Sequence[str] | None = None,
        season_length: int | None = None,
        context: Literal["recent"] | None = None,
        features: Sequence[str] | None = None,
        pooling: Literal["auto", "series", "panel"] = "auto",
        y_min: float | None = None,
        y_max: float | None = None,
    ) -> None:
        self.confidence_level = confidence_level
        self.id_col = id_col
        self.time_col = time_col
        self.target_col = target_col
        self.cutoff_col = cutoff_col
        self.models = models
        self.season_length = season_length
        self.context = context
        self.features = features
        self.pooling = pooling
        self.y_min = y_min
        self.y_max = y_max

    def fit(self, frame: Any) -> Self:
        """Learn from past forecasts and what then happened, such as the output of `cross_validation`.

        Parameters
        ----------
        frame : frame
            A row for each series, cutoff and time, in any order, with the target, empty where it is not known, and the
            forecast of each model by one that was not trained on that target.

        Returns
        -------
        PanelIntervals
            Itself; as it was before if anything is wrong with the frame.

        Warns
        -----
        CoverageWarning
            If models are left out, or series are too few or too short for what is guaranteed or learned.
        """
        draft = self._draft()
        draft._fit(frame)
        return self._become(draft)

    def _draft(self) -> Self:
        """A copy to work on, after a look at the settings."""
        self._validate_params()
        check_limits(self.y_min, self.y_max)
        return super()._draft()

    def _fit(self, table: Any) -> None:
        self._levels = np.unique(one_or_more_levels("confidence_level", self.confidence_level))
        features = self._feature_columns()
        self._names = names = Names(self.id_col, self.time_col, self.target_col, self.cutoff_col, features)
        frame = opened("frame", table, (names.series, names.time, names.cutoff, names.target, *features))
        found = model_columns("frame", frame, names, None if self.models is None else tuple(self.models))
        rows = read_rows("frame", frame, names, found)
        self._limits = self.y_min, self.y_max
        check_within(rows.target, *self._limits)  # type: ignore[arg-type]
        self.excluded_ = {model: "no forecast with a known target" for model in found if _is_empty(rows, model)}
        self.models_ = [model for model in found if model not in self.excluded_]
        if not self.models_:
            msg = f"frame: none of the columns {found} has a forecast whose target is known. Give targets."
            raise ValueError(msg)
        if self.excluded_:
            n, named = len(self.excluded_), ", ".join(map(repr, self.excluded_))
            were, their = ("was", "its") if n == 1 else ("were", "their")
            warn_of_coverage(f"{counted(n, 'model')} {were} left out, since none of {their} errors is known: {named}.")
        kept = {model: rows.forecasts[model] for model in self.models_}
        self._clock, self._library = rows.clock, frame.implementation.value
        self._windows = PanelWindows.of(replace(rows, forecasts=kept))
        self._mixing = self.season_length, POOLING[self.pooling]
        self._standardised = Standardised.of(self._windows.moments.feature_table)
        self._contexts: dict[str, PanelContext] = {}
        self._has_context = self.context is not None
        self._read_windows()
        self.rules_: dict[str, Rule] = {
            model: errors.rule(self._levels, *self._mixing) for model, errors in self._errors.items()
        }
        self._sum_rules: dict[str, Rule] = {}
        self._after_windows()
        n_short = max(int((one.n_windows < MIN_OWN_WINDOWS).sum()) for one in self._errors.values())
        new, highest = list(self._new.values()), float(self._levels[-1])
        warn_of_pooled(n_short, len(self._windows.ids), new, highest, only_if_few=True)

    def _feature_columns(self) -> tuple[str, ...]:
        """Columns of features, which are for a context."""
        if self.features is not None and self.context is None:
            msg = "features are for a panel with a context: PanelIntervals(context='recent')."
            raise ValueError(msg)
        return () if self.features is None else tuple(map(str, self.features))

    def _read_windows(self) -> None:
        """Errors of the windows at hand, and what the context says of them, which is learned once."""
        windows = self._windows
        self._known: dict[str, Known | None] = dict.fromkeys(self.models_)
        for model in self.models_ if self._has_context else ():
            history = History(windows, model, self._mixing[0], self._standardised)
            if model not in self._contexts:
                self._contexts[model] = PanelContext.learned(windows, model, history)
            self._known[model] = Known(self._contexts[model], history)
        self._errors = {model: ModelErrors.of(windows, model, self._known[model]) for model in self.models_}

    def _after_windows(self) -> None:
        """What follows from the errors at hand by the rules that were learned."""
        windows = self._windows
        self._new = {model: errors.new(self._levels) for model, errors in self._errors.items()}
        self._pools = {model: errors.pool(self._levels, self.rules_[model]) for model, errors in self._errors.items()}
        n_places = int((~np.isnan(windows.cutoffs)).sum()) * windows.horizon
        self.n_missing_ = sum(n_places - int(np.count_nonzero(~np.isnan(one))) for one in windows.errors.values())
        self._last_known = windows.moments.last_known

    def update(self, frame: Any) -> Self:
        """Add what became known since: targets of windows that were given, new windows, new series.

        Parameters
        ----------
        frame : frame
            A long frame with the columns of `fit`: a row for each series, cutoff and time, with the models of `fit`.
            What was given before may come again if it has not changed.

        Returns
        -------
        PanelIntervals
            Itself; as it was before if anything is wrong with the frame. The rule that `fit` learned stays; those of
            sums are learned anew when sums are asked for, on all windows.
        """
        check_is_fitted(self)
        names = self._names
        columns = (names.series, names.time, names.cutoff, names.target, *self.models_, *names.features)
        given = opened("frame", frame, columns)
        rows = read_rows("frame", given, names, self.models_, self._clock, self._windows.ids)
        check_within(rows.target, *self._limits)  # type: ignore[arg-type]
        draft = self._draft()
        draft._clock, draft._windows = rows.clock, self._windows.joined(PanelWindows.of(rows))
        draft._read_windows()
        draft._after_windows()
        draft._sum_rules = {}  # not the dictionary of this one, with the rules that were asked for so far
        return self._become(draft)

    def predict_interval(self, frame: Any) -> Any:
        """A frame of forecasts with the bounds of each model and level.

        Parameters
        ----------
        frame : frame
            A row for each series and time to come, with the models of `fit`. Without a column of cutoffs a series is
            forecast from the moment before its first row.

        Returns
        -------
        frame
            The same rows and columns, then `model-lo-95`, `model-hi-95` and so on; NaN where a forecast is missing.

        Warns
        -----
        CoverageWarning
            If series are new or short, and get the panel's answer.
        """
        future = self._future(frame)
        columns = []
        for model in self.models_:
            ahead = self._ahead(model, future)
            expected = expected_errors(ahead, self._known[model])
            errors, new = self._errors[model], self._new[model]
            self._warn_of_pooled(errors, ahead, new)
            bounds = errors.bounds(ahead, expected, self.rules_[model], self._pools[model], new, self._levels)
            rows = future.rows
            bounds_of_rows = [one[future.window, rows.step - 1] for one in bounds]
            columns += self._bound_columns(model, future, rows.forecasts[model], bounds_of_rows)
        return future.given.with_columns(*columns).to_native()

    @property
    def series_(self) -> Any:
        """A row for each series and model: number of windows, and whose answer it gets."""
        check_is_fitted(self)
        ids, models, n_windows = [], [], []
        for model in self.models_:
            ids += self._windows.ids
            models += [model] * len(self._windows.ids)
            n_windows += self._errors[model].n_windows.tolist()
        answers = ["own" if n >= MIN_OWN_WINDOWS else "panel" for n in n_windows]
        columns = {self._names.series: ids, "model": models, "n_windows": n_windows, "answer": answers}
        return frame_of(columns, self._library)

    def plot(self, frame: Any, *, model: str | None = None, n_series: int = 4, ax: Axes | None = None) -> Any:
        """Forecasts of some series with their intervals at all levels.

        Parameters
        ----------
        frame : frame
            Forecasts, as `predict_interval` takes them.
        model : str, optional
            The first of `models_` if not given.
        n_series : int, default=4
            Of the frame, the first ones.
        ax : matplotlib axes, optional
            Where to draw a single series.

        Returns
        -------
        array of axes
            One for each series.
        """
        from pimeter.forecast.panel_plot import draw_panel

        return draw_panel(
            self.predict_interval(frame), self._names, model or self.models_[0], self._levels, n_series, ax
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_new")


def _is_empty(rows: Rows, model: str) -> bool:
    """Whether no forecast of a model has a known target."""
    assert rows.target is not None  # rows of the past have targets
    return bool(np.isnan(rows.target - rows.forecasts[model]).all())
