"""How panel intervals would have done: fitted to the older windows of a panel, tried on the newer ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pimeter.coverage import counted, percent
from pimeter.evaluation.backtest_checks import (
    FRACTION_FITTED,
    ModelCoverage,
    SeriesCoverage,
    TriedPanel,
    is_near,
    judged_panel,
)
from pimeter.evaluation.results import Result
from pimeter.findings import Headline
from pimeter.forecast import PanelIntervals
from pimeter.forecast.long_frames import bound_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from pimeter.protocols import Columns

MAX_CUTOFFS = 12  # that are tried, the newest
STEP, INSIDE = "__step", "__inside"  # columns for the time being
N_WORST, N_SHOWN = 8, 3  # series that the page lists and draws


@dataclass(frozen=True)
class ShownWindow:
    """The newest whole window of a series; None where a number is not known."""

    series: str
    time: list[str]
    prediction: list[float | None]
    lower: list[float | None]
    upper: list[float | None]
    target: list[float | None]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PanelBacktest(Result):
    """What newer windows of a panel say about intervals that were fitted to the older ones.

    Attributes
    ----------
    headline, diagnosis : Headline, Diagnosis
        The answer, a claim and its evidence; findings, advice and code.
    confidence_level : float
        Fraction of targets that were to be covered.
    n_series, n_windows : int
        Series, and windows that intervals were tried on.
    models : dict of str to ModelCoverage
        Of each model: coverage, mean width, and coverage by step and over time.
    worst : list of SeriesCoverage
        Series with the lowest coverage, of the first model.
    shown : list of ShownWindow
        Newest window of some series: forecast, bounds and targets.
    cutoffs : list of str
        Moments at which the windows were made.
    """

    confidence_level: float
    n_series: int
    n_windows: int
    models: dict[str, ModelCoverage]
    worst: list[SeriesCoverage]
    shown: list[ShownWindow]
    cutoffs: list[str]

    def _table(self) -> Columns:
        """A row for each model and step ahead."""
        rows = [
            (model, step + 1, coverage)
            for model, found in self.models.items()
            for step, coverage in enumerate(found.by_step)
        ]
        names, steps, coverages = zip(*rows, strict=True)
        return {
            "model": list(names),
            "step": np.array(steps),
            "confidence_level": np.full(len(rows), self.confidence_level),
            "coverage": np.array(coverages, dtype=np.float64),
        }

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.panel import panel_html

        return panel_html(self.to_dict(), about)


def panel_backtest(frame: pl.DataFrame, intervals: PanelIntervals) -> PanelBacktest:
    """Fit to windows that were known at the half of the time, then try the newer ones, as targets became known.

    Parameters
    ----------
    frame : polars frame
        Past forecasts with targets, as `PanelIntervals.fit` takes them.
    intervals : PanelIntervals
        Settings, with one level.

    Returns
    -------
    PanelBacktest
        Coverage by model, step, series and over time.

    Raises
    ------
    ValueError
        If there are too few windows to fit to some and try others.
    """
    import polars as pl

    level = float(np.max(intervals.confidence_level))
    time, target, cutoff = intervals.time_col, intervals.target_col, intervals.cutoff_col
    frame = frame.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
    step = pl.col(time).rank("dense").over(cutoff).cast(pl.Int64)  # among all windows made then: one may lack steps
    steps = frame.select(cutoff, time, step.alias(STEP)).unique()
    made = frame[cutoff].unique().sort()
    first = math.ceil(FRACTION_FITTED * len(made))
    if len(made) < 4:
        msg = f"windows were made at {counted(len(made), 'moment')}; 4 are needed to fit to some and try others."
        raise ValueError(msg)
    tried = made[first:][-MAX_CUTOFFS:]
    own = PanelIntervals(**{**intervals.get_params(), "confidence_level": level})
    tables = []
    for i, now in enumerate(tried):
        known = frame.filter(pl.col(time) <= now)
        if i == 0:
            own.fit(known)
        else:
            own.update(known.filter(pl.col(time) > tried[i - 1]))
        window = frame.filter((pl.col(cutoff) == now) & pl.col(target).is_not_null())
        if len(window):
            tables.append(own.predict_interval(window))
    if not tables:
        msg = "no window of the newer half has a target; intervals cannot be tried."
        raise ValueError(msg)
    found = pl.concat(tables).join(steps, on=[cutoff, time], how="left")
    every_step = pl.DataFrame({STEP: range(1, found[STEP].max() + 1)})  # also one without targets
    every_cutoff = found.select(cutoff).unique()
    models = {}
    for model in own.models_:
        low, high = bound_column(model, "lo", level), bound_column(model, "hi", level)
        inside = (pl.col(low) <= pl.col(target)) & (pl.col(target) <= pl.col(high))
        tried_rows = found.filter(pl.col(model).is_not_null()).with_columns(**{INSIDE: inside.cast(pl.Float64)})
        models[model] = ModelCoverage(
            coverage=_mean(tried_rows[INSIDE]),
            width=_mean(tried_rows[high] - tried_rows[low]),
            by_step=_by(tried_rows, every_step),
            over_time=_by(tried_rows, every_cutoff),
        )
    return _result(own, found, models, level, [str(one) for one in found[cutoff].unique().sort()])


def _mean(values: pl.Series) -> float:
    """The mean of numbers, NaN of none."""
    return float(np.mean(values.to_numpy())) if len(values) else math.nan


def _by(rows: pl.DataFrame, wanted: pl.DataFrame) -> list[float | None]:
    """Coverage for each value of a column that is wanted, in order; None where a model was not tried."""
    import polars as pl

    (column,) = wanted.columns
    means = rows.group_by(column).agg(pl.col(INSIDE).mean())
    return wanted.join(means, on=column, how="left").sort(column)[INSIDE].to_list()


def _result(
    own: PanelIntervals, found: pl.DataFrame, models: dict[str, ModelCoverage], level: float, cutoffs: Sequence[str]
) -> PanelBacktest:
    """The answer in words and numbers."""
    import polars as pl

    series, time, target = own.id_col, own.time_col, own.target_col
    main = own.models_[0]
    low, high = bound_column(main, "lo", level), bound_column(main, "hi", level)
    inside = (pl.col(low) <= pl.col(target)) & (pl.col(target) <= pl.col(high))
    by_series = (
        found.filter(pl.col(main).is_not_null())
        .group_by(series)
        .agg(coverage=inside.cast(pl.Float64).mean(), n=pl.len(), width=(pl.col(high) - pl.col(low)).mean())
        .sort("coverage", series)
    )
    worst = [
        SeriesCoverage(str(row[series]), row["coverage"], row["n"], row["width"])
        for row in by_series.head(N_WORST).iter_rows(named=True)
    ]
    shown: list[ShownWindow] = []
    n_steps = pl.len().over(series, own.cutoff_col)
    longest = found.filter(n_steps == n_steps.max().over(series))
    newest = longest.filter(pl.col(own.cutoff_col) == pl.col(own.cutoff_col).max().over(series))
    names = newest[series].cast(pl.String).unique(maintain_order=True).to_list()
    for one in [worst[0].series, *names][: N_SHOWN + 1]:
        rows = newest.filter(pl.col(series).cast(pl.String) == one).sort(time)
        if len(rows) and all(one != held.series for held in shown):
            columns = {"prediction": main, "lower": low, "upper": high, "target": target}
            values = {key: rows[column].cast(pl.Float64).fill_nan(None).to_list() for key, column in columns.items()}
            shown.append(ShownWindow(one, [str(at) for at in rows[time]], **values))
    n_windows = found.select(series, own.cutoff_col).n_unique()
    coverage = models[main].coverage
    is_kept = is_near(coverage, level)
    covered = ", ".join(f"{model} {percent(one.coverage, 3)}" for model, one in models.items())
    claim = f"{percent(level)} intervals around {main} covered {percent(coverage, 3)} of targets."
    if not is_kept:
        claim = f"Do not trust these intervals yet: at {percent(level)} they covered {percent(coverage, 3)} of targets."
    evidence = (
        f"Fitted to what was known by then, tried on {counted(n_windows, 'newer window')} of "
        f"{by_series.height:,} series: {covered}. Lowest coverage of a series: {percent(worst[0].coverage, 3)} "
        f"({worst[0].series}, {counted(worst[0].n, 'target')})."
    )
    tried = TriedPanel(level, models, worst[0], n_windows, own.season_length is not None)
    return PanelBacktest(
        headline=Headline(claim, evidence),
        diagnosis=judged_panel(tried, _code(own, level)),
        confidence_level=level,
        n_series=by_series.height,
        n_windows=n_windows,
        models=models,
        worst=worst,
        shown=shown,
        cutoffs=list(cutoffs),
    )


def _code(own: PanelIntervals, level: float) -> str:
    """The call, with the settings that are not as usual."""
    usual = PanelIntervals().get_params()
    given = {name: value for name, value in own.get_params().items() if value != usual[name]}
    chosen = "".join(f", {name}={value!r}" for name, value in given.items() if name != "confidence_level")
    call = f"PanelIntervals({level:g}{chosen}).fit(past).predict_interval(future)"
    return f"from pimeter import PanelIntervals\nwith_intervals = {call}"
