"""`CoverageMonitor`: do intervals go on holding? An alarm with a bound on how often it is false."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pimeter.frames import refuse_other_orders
from pimeter.monitoring.evidence import Evidence
from pimeter.monitoring.rows import id_list, interval_lists, target_list
from pimeter.monitoring.sequence import coverage_estimate
from pimeter.monitoring.settings import FEW, MISSES, Settings, watch_names
from pimeter.monitoring.state import Progress, StateFile, beside, body_of, restored
from pimeter.monitoring.stream import Stream
from pimeter.monitoring.waiting import WaitingRows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.monitoring.explanation import Explanation
    from pimeter.monitoring.onset import Since
    from pimeter.monitoring.recalibration import Recalibration
    from pimeter.monitoring.sequence import CoverageEstimate
    from pimeter.protocols import FeatureTable, Labels, Table


class CoverageMonitor:
    """A watch over prediction intervals whose targets come in one by one, today or later, and in any order.

    It raises an alarm when targets lie outside more often than they may. While each row is covered with a probability
    of p - tolerance or more, given all rows before, the probability of *ever* a false alarm is at most
    `false_alarm_rate`, whatever the dependence of rows, and however often one looks.

    Parameters
    ----------
    confidence_level : float, default=0.95
        The level p of the intervals.
    false_alarm_rate : float, default=0.05
        Largest probability of ever raising a false alarm, of all watches together.
    run_length : int, optional
        Instead of that: false alarms come after so many rows or more on average. Alarms come sooner then.
    tolerance : float, optional
        How far below p the coverage may be without an alarm. Without it 0; or, where `n_calibration` is given, what
        all but a few calibration sets of so many rows keep within, by the Beta distribution: split conformal intervals
        cover p on average over calibration sets, and those of the set at hand somewhat more or less.
    few_tolerance : float, optional
        How far above p the coverage may be before misses are too few. A target that lies on a bound is not counted as
        covered here, since discrete targets often do. Without it (1 - p)/2, or more by the Beta distribution.
    n_calibration : int, optional
        Number of rows that calibrated the intervals.
    watch : sequence of str, default=("misses", "few misses")
        What may raise an alarm. "misses": too many targets outside, always there. "few misses": too few, the
        intervals are wider than need be. "bounds": more than (1 - p)/2 + tolerance below the lower, or above the upper
        bound, for intervals with equal tails. "widths" and "residuals" (targets less the centre of their interval): are
        they exchangeable, as those of independent rows of one source are? These rightly alarm on trends and on
        autocorrelation, whether or not the intervals hold. All watches that are on divide the false alarms.
    expire_after : float, default=7776000
        Seconds after which an interval no longer waits for its target, and an id is forgotten: 90 days.

    Attributes
    ----------
    alarm_ : bool
        Whether there was an alarm; it stays until `recalibrate`.
    evidence_ : Evidence
        How much speaks against the intervals.
    since_ : Since or None
        When that most likely began, with a range; None without an alarm.
    estimate_ : CoverageEstimate
        Mean coverage of all rows so far, with bounds that hold at all times together with a probability of 95 %. If
        the probability of a miss changes from row to row, they hold for its mean over the rows so far.
    n_seen_ : int
        Number of rows that were counted.
    n_waiting_, n_expired_ : int
        Rows whose target has not come yet, and those that no longer wait.
    guaranteed_level_ : float
        The confidence level; NaN after `recalibrate` with rows that an alarm has selected, until that was done once
        more with rows that came since.

    Notes
    -----
    Rows count in the order in which their targets come. Targets that are late or missing do no harm as long as that
    does not depend on whether they lie inside.

    Evidence is the capital of someone who bets on misses, spread over several rates of misses and over the times at
    which bets begin. While the intervals hold no such bet can be expected to gain, so that the capital ever attains
    1/a with a probability of at most a (Ville's inequality). Subgroups (`by`) are bet on one by one.

    References
    ----------
    I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting; J. Shin, A. Ramdas,
    A. Rinaldo (2024), E-detectors; V. Vovk (2021), Testing randomness online.

    Examples
    --------
    Intervals that cover 90 %, until the spread of targets grows by half:

    >>> import numpy as np
    >>> from pimeter import CoverageMonitor
    >>> y = np.random.default_rng(0).standard_normal(3000)
    >>> y[2000:] *= 1.5
    >>> monitor = CoverageMonitor(0.9)
    >>> for day in range(30):
    ...     rows = slice(100 * day, 100 * (day + 1))
    ...     if monitor.update(y[rows], [(-1.645, 1.645)] * 100).alarm_:
    ...         break
    >>> print(day, monitor.since_)
    20 row 1,986 (between 1,907 and 2,006)
    """

    def __init__(
        self,
        confidence_level: float = 0.95,
        *,
        false_alarm_rate: float = 0.05,
        run_length: int | None = None,
        tolerance: float | None = None,
        few_tolerance: float | None = None,
        n_calibration: int | None = None,
        watch: Sequence[str] = (MISSES, FEW),
        expire_after: float = 90 * 86400.0,
    ) -> None:
        self._settings = Settings(
            confidence_level=confidence_level,
            false_alarm_rate=false_alarm_rate,
            run_length=run_length,
            tolerance=tolerance,
            few_tolerance=few_tolerance,
            n_calibration=n_calibration,
            watch=watch_names(watch),
            expire_after=expire_after,
        )
        self._stream = Stream(self._settings, has_subgroups=False)
        self._progress = Progress()
        self._recalibration: Recalibration | None = None
        self._file: StateFile | None = None
        self._waiting_rows: WaitingRows | None = None

    @classmethod
    def open(cls, path: str | PathLike[str], **settings: Any) -> Self:
        """A monitor that keeps its state in a file, and goes on where it stopped.

        Parameters
        ----------
        path : path-like
            A JSON file. Beside it are a lock and, if targets come later, a database of intervals that wait.
        **settings
            Parameters of the monitor. May be left out if the file exists; if not, they must be those it began with.

        Returns
        -------
        CoverageMonitor
            Saved after each call that changes it; `close` it, or use it in a ``with`` block.

        Raises
        ------
        ValueError
            If another process uses the file, or it is not a complete state of this version: it stays as it is.
        """
        file = StateFile(Path(path).resolve())  # by any link the same lock
        with ExitStack() as undo:
            undo.callback(file.close)
            saved = file.read()
            if saved is None:
                found = cls(**settings)
            else:
                known = restored(saved, settings, file.path)
                found = cls(**asdict(known.stream.settings))
                found._stream, found._progress, found._recalibration = known.stream, known.progress, known.recalibration
            found._file = file
            if beside(file.path, "sqlite").exists():
                found._count_observed()
            if saved is None:
                found._save()
            undo.pop_all()  # all went well: the lock is kept
        return found

    def close(self) -> None:
        """Let other processes use the state file."""
        if self._waiting_rows is not None:
            self._waiting_rows.close()
            self._waiting_rows = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, y_true: ArrayLike, intervals: Table, *, by: Labels | None = None) -> Self:
        """Count rows whose targets are known.

        Parameters
        ----------
        y_true : float or array-like of shape (n,)
            Targets, in the order of time.
        intervals : array-like of shape (n, 2), or (2,) for one row, or a frame with columns lower and upper
            Bounds, which were made before the targets were known. They must be finite.
        by : label or array-like of shape (n,), optional
            The subgroup of each row. With it in the first update, it is needed in each.

        Returns
        -------
        CoverageMonitor
            Itself; as it was before if anything is wrong with the rows.
        """
        targets = target_list(y_true)
        if len(targets) > 1:
            refuse_other_orders({"y_true": y_true, "intervals": intervals, "by": by})
        given = interval_lists(intervals, by, len(targets))
        self._stream = self._begun(given.labels, has_labels=by is not None)
        for target, lower, upper, label in zip(targets, given.lower, given.upper, given.labels, strict=True):
            self._stream.update(target, lower, upper, label)
        self._save()
        return self

    def expect(self, ids: Labels, intervals: Table, *, by: Labels | None = None, time: float | None = None) -> Self:
        """Keep intervals whose targets are not known yet.

        Parameters
        ----------
        ids : label or array-like of shape (n,)
            An id for each row, a string or a number, that was not expected before.
        intervals : array-like of shape (n, 2), or (2,) for one row, or a frame with columns lower and upper
            Bounds; they must be finite.
        by : label or array-like of shape (n,), optional
            The subgroup of each row.
        time : float, optional
            Seconds since some date, for `expire_after`; not before that of an earlier call. Without it, the clock's.

        Returns
        -------
        CoverageMonitor
            Itself; as it was before if anything is wrong with the rows.
        """
        names = id_list(ids)
        refuse_other_orders({"ids": ids, "intervals": intervals, "by": by})
        given = interval_lists(intervals, by, len(names))
        stream = self._begun(given.labels, has_labels=by is not None)
        self._waiting().expect(names, given, time)
        self._stream = stream
        if not self._stream.counts.rows:
            self._save()  # whether there are subgroups
        return self

    def observe(self, ids: Labels, y_true: ArrayLike, *, time: float | None = None) -> Self:
        """Count rows whose targets have come, in any order.

        Parameters
        ----------
        ids : label or array-like of shape (n,)
            Ids that were expected, each once.
        y_true : float or array-like of shape (n,)
            Their targets.
        time : float, optional
            Seconds since the date that `expect` counts from. Without it, the clock's.

        Returns
        -------
        CoverageMonitor
            Itself; as it was before if a target has come before, or nobody waits for it.
        """
        refuse_other_orders({"ids": ids, "y_true": y_true})
        names, targets = id_list(ids), target_list(y_true)
        if len(names) != len(targets):
            msg = f"y_true must hold one target for each of the {len(names)} ids; got {len(targets)}."
            raise ValueError(msg)
        self._waiting().observe(names, targets, time)
        return self._count_observed()

    def recalibrate(self, model: Any, X: FeatureTable, y: ArrayLike) -> Recalibration:
        """Calibrate a model on the rows since the change, and begin a new watch.

        After an alarm the rows from `since_` on calibrate. They were selected by what they show, so that nothing is
        guaranteed: `guaranteed_level_` is NaN, here and in the model. Called once more without an alarm, it calibrates
        on all rows that came since, which nothing has selected, and the model's guarantee is what it says. Rows that
        still wait for their targets had the old intervals, and do not count in the new watch.

        Parameters
        ----------
        model : IntervalRegressor or IntervalCalibrator
            Any object with ``calibrate(X, y)`` and ``predict_interval(X)``, which is changed; or with
            ``fit(y, intervals=X)`` and ``predict_interval(intervals=X)``.
        X : array-like or frame of shape (n, n_features)
            Features of the last n rows that were watched, in the same order (for a calibrator of intervals, the
            intervals that it is given). Rows before the change only show what an online neuron would have done.
        y : array-like of shape (n,)
            Their targets.

        Returns
        -------
        Recalibration
            Which rows were taken, and how the coverage since the change compares with that of an `OnlineNeuron`.
        """
        from pimeter.monitoring.recalibration import recalibrated

        refuse_other_orders({"X": X, "y": y})
        found = recalibrated(self._stream, self._recalibration, model, X, y)
        self._recalibration = found
        self._renew(found.n_rows)
        return found

    def explain(self) -> Explanation:
        """What was found, in words: which subgroup, which bound, width or centre, and what to do.

        Returns
        -------
        Explanation
            Prints as text; ``to_html(path)`` is a page with plots, ``to_json()`` everything.
        """
        from pimeter.monitoring.explanation import explanation

        counts = {"n_waiting": self.n_waiting_, "n_expired": self.n_expired_}
        return explanation(self._stream, self.evidence_, self.estimate_, self._recalibration, **counts)

    @property
    def alarm_(self) -> bool:
        """Whether there was an alarm."""
        return self._stream.alarm is not None

    @property
    def evidence_(self) -> Evidence:
        """How much speaks against the intervals."""
        alarm, threshold = self._stream.alarm, self._stream.threshold
        value = self._stream.value if alarm is None else alarm.evidence
        return Evidence.read(value, threshold, None if alarm is None else alarm.row)

    @property
    def since_(self) -> Since | None:
        """When a change most likely began."""
        return None if self._stream.alarm is None else self._stream.alarm.since

    @property
    def estimate_(self) -> CoverageEstimate:
        """Mean coverage of all rows so far."""
        counts = self._stream.counts
        return coverage_estimate(counts.misses, counts.rows, self._settings.confidence_level)

    @property
    def n_seen_(self) -> int:
        """Number of rows counted."""
        return self._stream.counts.rows

    @property
    def n_waiting_(self) -> int:
        """Rows whose target has not come yet."""
        return self._waiting_rows.n_waiting if self._waiting_rows else 0

    @property
    def n_expired_(self) -> int:
        """Rows that no longer wait."""
        return int(self._waiting_rows.counter("expired")) if self._waiting_rows else 0

    @property
    def guaranteed_level_(self) -> float:
        """The confidence level, or what the model guarantees after `recalibrate`."""
        known = self._recalibration
        return self._settings.confidence_level if known is None else known.guaranteed_level

    def __repr__(self) -> str:
        usual = asdict(Settings(confidence_level=0.95))
        other = [f"{name}={value!r}" for name, value in asdict(self._settings).items() if value != usual[name]]
        return f"CoverageMonitor({', '.join(other)})"

    def _begun(self, labels: Sequence[Any], *, has_labels: bool) -> Stream:
        """The stream that rows go to: before the first row they decide whether there are subgroups; later none may."""
        stream = self._stream
        if not stream.counts.rows and has_labels and not stream.has_subgroups:
            stream = Stream(self._settings, has_subgroups=True)
        stream.refuse_labels(labels, has_labels=has_labels)
        return stream

    def _waiting(self) -> WaitingRows:
        """The rows that wait for their targets."""
        if self._waiting_rows is None:
            path = None if self._file is None else beside(self._file.path, "sqlite")
            self._waiting_rows = WaitingRows(path, self._settings.expire_after)
        return self._waiting_rows

    def _count_observed(self) -> Self:
        """Count rows whose targets were noted, and save that before anything is forgotten."""
        waiting = self._waiting()
        for row in waiting.after(self._progress.counted):
            if row.place > self._progress.earlier:
                self._stream.update(row.target, row.lower, row.upper, row.label)
            self._progress = self._progress._replace(counted=row.number)
        self._save()
        waiting.forget(self._progress.counted, waiting.counter("time"))
        return self

    def _renew(self, n_calibration: int | None) -> None:
        """Begin a new watch with intervals that so many rows have calibrated, if that is known."""
        if n_calibration is not None and self._settings.tolerance is None:
            self._settings = replace(self._settings, n_calibration=n_calibration)
        self._stream = Stream(self._settings, has_subgroups=self._stream.has_subgroups)
        if self._waiting_rows is not None:
            self._progress = self._progress._replace(earlier=int(self._waiting_rows.counter("place")))
        self._save()

    def _save(self) -> None:
        """Write the state, if it has a file."""
        if self._file is not None:
            self._file.write(body_of(self._stream, self._progress, self._recalibration))
