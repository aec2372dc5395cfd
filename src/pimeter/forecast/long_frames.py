"""Long frames of forecasts, a row for each series, window and step: which of each a row is of.

Works on whole columns, so that ten thousand series take seconds. Rows may come in any order. What cannot be meant is
refused: rows that come twice, targets that changed, times before their cutoff.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import as_frame, numbers_of
from pimeter.coverage import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import narwhals as nw
    from numpy.typing import NDArray

    from pimeter.protocols import Array

    Integers = NDArray[np.signedinteger[Any]]

ROWS_AT_A_TIME = 1_000_000
LARGEST_VALUE = 1e150  # target or forecast: squares stay finite
NOT_MODELS = {"index", "level_0", "step", "h", "horizon", "fold", "window"}
MAX_STEPS_OFF = 1e-3  # steps from which on a time is none of those that are counted
MIN_FRACTION_OF_MOMENTS = 0.9  # of the moments between the first and the last that are there: time then passes evenly


@dataclass(frozen=True)
class Names:
    """What the columns of a frame are called."""

    series: str
    time: str
    target: str
    cutoff: str
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clock:
    """Times as numbers of steps: by the time that passes where it is even, else as moments are counted."""

    kind: str  # what times are: numbers, dates, or dates in a time zone
    start: float
    unit: float
    moments: Array | None  # all of them in order, where time does not pass evenly, such as working days and months
    places: Integers  # the number of each of these

    @classmethod
    def of(cls, times: Array, kind: str, windows: Callable[[], list[Array]]) -> Clock:
        """The clock of all times of a frame; where these leave gaps, the times of its windows tell the steps."""
        moments = np.unique(times)
        gaps = np.diff(moments)
        unit = float(gaps.min()) if gaps.size else 1.0
        is_even = bool(np.allclose(gaps / unit, np.round(gaps / unit), atol=1e-6)) and (
            _are_many([moments], unit) or _are_many(windows(), unit)
        )
        return cls(kind, float(moments[0]), unit, None if is_even else moments, np.arange(len(moments)))

    def extended(self, times: Array) -> Clock:
        """A clock that knows later times: each is the next moment, unless it is farther away than any ever was."""
        if self.moments is None:
            return self
        later = np.unique(times[times > self.moments[-1]])
        gaps, seen = np.diff(later, prepend=self.moments[-1]), np.diff(self.moments)
        steps = np.where(gaps <= seen.max(), 1.0, np.round(gaps / np.median(seen))).astype(np.intp)
        places = np.append(self.places, self.places[-1] + np.cumsum(steps))
        return replace(self, moments=np.append(self.moments, later), places=places)

    def numbers(self, times: Array) -> Integers:
        """The number of each time, none of them after the last moment."""
        if self.moments is None:
            return np.round((times - self.start) / self.unit).astype(np.intp)
        return self.places[np.searchsorted(self.moments, times)]

    def is_between(self, times: Array) -> NDArray[np.bool_]:
        """Whether times lie between two steps, or are none of the moments that are counted."""
        if self.moments is None:
            steps = (times - self.start) / self.unit
            return np.asarray(np.abs(steps - np.round(steps)) > MAX_STEPS_OFF)
        return np.asarray(self.moments[np.searchsorted(self.moments, times)] != times)


@dataclass(frozen=True)
class Rows:
    """Rows of a frame: numbers of their series, cutoffs and steps, and what they say."""

    ids: list[Any]  # of series, in the order of their numbers
    series: Integers
    cutoff: Integers  # number of the moment after which forecasts were made
    step: Integers  # from 1
    target: Array | None
    forecasts: dict[str, Array]
    features: dict[str, Array]
    clock: Clock


def bound_column(model: str, side: str, level: float) -> str:
    """What the column of a bound is called, such as model-lo-95; sides are lo and hi."""
    return f"{model}-{side}-{100 * level:.6g}"


def opened(name: str, table: object, columns: tuple[str, ...]) -> nw.DataFrame[Any]:
    """A frame with these columns, or a ValueError that says what is missing."""
    for compute in ("compute", "collect"):  # frames of dask and lazy ones of polars
        if callable(getattr(table, compute, None)):
            table = getattr(table, compute)()
    frame = as_frame(table)
    if frame is None:
        msg = f"{name} must be a frame of pandas, polars, dask or pyarrow; got {type(table).__name__}."
        raise ValueError(msg)
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        held = ", ".join(map(repr, frame.columns[:9]))
        msg = (
            f"{name} has no column {' and '.join(map(repr, missing))}; it has {held}. Name yours with id_col, "
            "time_col, target_col or cutoff_col; columns that are an index become columns by reset_index()."
        )
        raise ValueError(msg)
    if not len(frame):
        msg = f"{name} has no rows."
        raise ValueError(msg)
    return frame


def model_columns(name: str, frame: nw.DataFrame[Any], names: Names, given: tuple[str, ...] | None) -> list[str]:
    """Columns of forecasts: those given, or all numbers that are nothing else."""
    if given is not None:
        missing = [one for one in given if one not in frame.columns]
        if missing:
            msg = f"{name} has no column {missing[0]!r} of forecasts; it has {frame.columns[:12]}."
            raise ValueError(msg)
        return list(given)
    taken = {names.series, names.time, names.target, names.cutoff, *names.features}
    found = [
        column
        for column in frame.columns
        if column not in taken
        and column not in NOT_MODELS
        and frame.schema[column].is_numeric()
        and "-lo-" not in column
        and "-hi-" not in column
    ]
    if not found:
        msg = f"{name} has no column of forecasts in addition to {sorted(taken)}; it has {frame.columns[:12]}."
        raise ValueError(msg)
    return found


def read_rows(
    name: str,
    frame: nw.DataFrame[Any],
    names: Names,
    models: list[str],
    clock: Clock | None = None,
    known: Sequence[Any] = (),
) -> Rows:
    """Rows of past forecasts with their targets; numbers of series and times go on from those known before."""
    clock = _clock(name, frame, (names.time, names.cutoff), clock)
    rows = _numbered(name, frame, names, models, clock, list(known), has_cutoff=True)
    rows = replace(rows, target=numbers(name, frame, names.target))
    _refuse_repeated(name, rows, names)
    _refuse_changed(name, rows, names)
    return rows


def read_future(
    name: str, frame: nw.DataFrame[Any], names: Names, models: list[str], clock: Clock, known: Sequence[Any]
) -> Rows:
    """Rows of forecasts to come; without a cutoff a series is forecast from the moment before its first row."""
    has_cutoff = names.cutoff in frame.columns
    clock = _clock(name, frame, (names.time, names.cutoff) if has_cutoff else (names.time,), clock)
    rows = _numbered(name, frame, names, models, clock, list(known), has_cutoff=has_cutoff)
    if not has_cutoff:
        first = np.full(len(rows.ids), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(first, rows.series, rows.step)
        cutoff = first[rows.series] - 1
        rows = replace(rows, cutoff=cutoff, step=rows.step - cutoff)
    _refuse_repeated(name, rows, names)
    return rows


def _clock(name: str, frame: nw.DataFrame[Any], columns: tuple[str, ...], held: Clock | None) -> Clock:
    """The clock of these columns, or the one held with their moments, if they are of its kind."""
    kinds = [_times(name, frame[:1], column)[1] for column in columns]
    if len(set(kinds)) > 1:
        msg = f"{name}: {columns[0]!r} holds {kinds[0]}, {columns[1]!r} {kinds[1]}. Make both the same."
        raise ValueError(msg)
    if held is not None and held.kind != kinds[0]:
        msg = f"{name}: {columns[0]!r} holds {kinds[0]}; in fit it held {held.kind}. Give the same kind."
        raise ValueError(msg)
    parts = [np.unique(_times(name, frame[part], column)[0]) for part in chunks(len(frame)) for column in columns]
    times = np.concatenate(parts)
    if held is not None:
        return held.extended(times)

    def windows() -> list[Array]:
        some = frame[:ROWS_AT_A_TIME]  # as good as all of them
        made, about = (_times(name, some, column)[0] for column in (columns[-1], columns[0]))
        order = np.lexsort((about, made))
        begins = np.flatnonzero(np.diff(made[order])) + 1
        return [
            np.append(*own)
            for own in zip(made[order][np.append(0, begins)], np.split(about[order], begins), strict=True)
        ]

    return Clock.of(times, kinds[0], windows)


def _are_many(parts: list[Array], unit: float) -> bool:
    """Whether most moments between the first and the last of each part are there."""
    n_there = sum(len(np.unique(one)) for one in parts)
    return n_there >= MIN_FRACTION_OF_MOMENTS * sum(float(one.max() - one.min()) / unit + 1.0 for one in parts)


def _numbered(
    name: str,
    frame: nw.DataFrame[Any],
    names: Names,
    models: list[str],
    clock: Clock,
    known: list[Any],
    *,
    has_cutoff: bool,
) -> Rows:
    """Numbers of series, cutoffs and steps; without cutoffs these are 0, and steps the numbers of moments."""
    n = len(frame)
    series, cutoff, step = (np.zeros(n, np.int32) for _ in range(3))
    ids = {one: i for i, one in enumerate(known)}
    for part in chunks(n):
        rows = frame[part]
        series[part] = _series(name, rows, names.series, ids)
        if has_cutoff:
            cutoff[part] = _moments(name, rows, names.cutoff, clock)
        step[part] = _moments(name, rows, names.time, clock) - cutoff[part]
    forecasts, features = ({one: numbers(name, frame, one) for one in columns} for columns in (models, names.features))
    found = Rows(list(ids), series, cutoff, step, None, forecasts, features, clock)
    if has_cutoff and (step < 1).any():
        n_early, row = int((step < 1).sum()), int((step < 1).argmax())
        msg = (
            f"{name}: {_rows_have(n_early)} a {names.time!r} that is not after {'its' if n_early == 1 else 'their'} "
            f"{names.cutoff!r}; the first is row {row} ({found.ids[series[row]]!r}). A cutoff is the last moment that "
            "the forecast knew."
        )
        raise ValueError(msg)
    return found


def _rows_have(n: int) -> str:
    """How many rows have what follows, in the singular or the plural."""
    return f"{counted(n, 'row')} {'has' if n == 1 else 'have'}"


def chunks(n: int, size: int = ROWS_AT_A_TIME) -> Iterator[slice]:
    """Rows to work on at a time, so that no column is copied as a whole."""
    for i in range(0, n, size):
        yield slice(i, min(i + size, n))


def numbers(name: str, frame: nw.DataFrame[Any], column: str) -> Array:
    """A column as floats, NaN for what is missing."""
    held = frame.get_column(column).to_numpy()
    values = held if held.dtype == np.float64 else numbers_of(held)
    if values is None:
        msg = f"{name}: column {column!r} must hold numbers; it holds {frame.schema[column]}."
        raise ValueError(msg)
    if np.fmax(np.fmax.reduce(values), -np.fmin.reduce(values)) > LARGEST_VALUE:
        row = int((np.abs(values) > LARGEST_VALUE).argmax())
        msg = f"{name}: column {column!r} is infinite, or beyond {LARGEST_VALUE:g}, in row {row}. Leave it empty."
        raise ValueError(msg)
    return np.asarray(values, np.float64)


def _series(name: str, frame: nw.DataFrame[Any], column: str, ids: dict[Any, int]) -> Integers:
    """The number of each row's series; ids that are new are added."""
    held = frame.get_column(column)
    values = held.to_numpy()
    n_missing = int(np.isnan(values).sum()) if values.dtype.kind == "f" else int(held.null_count())
    if n_missing:
        msg = f"{name}: column {column!r} is missing in {counted(n_missing, 'row')}. Each row needs its series."
        raise ValueError(msg)
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1]))  # rows of a series mostly follow each other
    codes = [ids.setdefault(one, len(ids)) for one in values[begins].tolist()]
    return np.repeat(np.array(codes, np.int32), np.diff(np.append(begins, len(values))))


def _times(name: str, frame: nw.DataFrame[Any], column: str) -> tuple[Array, str]:
    """Times as numbers, seconds of dates, and what they are."""
    import narwhals as nw

    held = frame.get_column(column)
    kind = held.dtype
    if kind.is_numeric():
        times, what = held.to_numpy().astype(np.float64), "numbers"
    elif kind == nw.Date:
        times, what = _seconds(held.cast(nw.Datetime("us")).to_numpy()), "dates"
    elif isinstance(kind, nw.Datetime):
        zone = getattr(kind, "time_zone", None)
        instants = held if zone is None else held.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        times, what = _seconds(instants.to_numpy()), "dates" if zone is None else "dates in a time zone"
    else:
        msg = f"{name}: column {column!r} must hold dates or numbers; it holds {kind}. Convert it to dates first."
        raise ValueError(msg)
    if np.isnan(times).any():
        rows = counted(int(np.isnan(times).sum()), "row")
        msg = f"{name}: column {column!r} is missing in {rows}, the first is row {int(np.isnan(times).argmax())}."
        raise ValueError(msg)
    return times, what


def _moments(name: str, frame: nw.DataFrame[Any], column: str, clock: Clock) -> Integers:
    """The number of the moment of each row; refused where it is between two of them."""
    times = _times(name, frame, column)[0]
    is_between = clock.is_between(times)
    if is_between.any():
        first = frame.get_column(column)[int(is_between.argmax())]
        msg = (
            f"{name}: {_rows_have(int(is_between.sum()))} a {column!r} that does not occur in fit, or lies between two "
            f"steps; the first is {first}. Give times as in fit, or fit anew with these."
        )
        raise ValueError(msg)
    return clock.numbers(times)


def _seconds(dates: NDArray[Any]) -> Array:
    """Seconds since 1970, NaN for what is missing."""
    return np.where(np.isnat(dates), np.nan, dates.astype("datetime64[us]").astype(np.int64) / 1e6)


def _refuse_repeated(name: str, rows: Rows, names: Names) -> None:
    """Refuse rows of the same series, cutoff and time."""
    first = int(rows.cutoff.min())
    n_cutoffs, h = int(rows.cutoff.max()) - first + 1, int(rows.step.max())

    def places(part: slice) -> Integers:
        return (rows.series[part].astype(np.intp) * n_cutoffs + (rows.cutoff[part] - first)) * h + rows.step[part] - 1

    last = -1
    for part in chunks(len(rows.series)):
        place = places(part)
        if place[0] <= last or not (place[1:] > place[:-1]).all():
            break
        last = int(place[-1])
    else:
        return
    _, where, counts = np.unique(places(slice(None)), return_index=True, return_counts=True)
    if (counts > 1).any():
        n_repeated, row = int((counts > 1).sum()), int(where[counts > 1][0])
        msg = (
            f"{name}: {counted(n_repeated, 'combination')} of {names.series!r}, {names.cutoff!r} and {names.time!r} "
            f"{'occurs' if n_repeated == 1 else 'occur'} in several rows; the first is row {row} of "
            f"{rows.ids[rows.series[row]]!r}. Keep one row of each."
        )
        raise ValueError(msg)


def _refuse_changed(name: str, rows: Rows, names: Names) -> None:
    """Refuse a frame in which a moment of a series has several targets."""
    assert rows.target is not None  # rows of the past have targets
    first = int(rows.cutoff.min()) + 1
    n = int(rows.cutoff.max()) + int(rows.step.max()) - first + 1
    held = np.full(len(rows.ids) * n, np.nan)

    def places(part: slice) -> Integers:
        return rows.series[part].astype(np.intp) * n + (rows.cutoff[part] + rows.step[part] - first)

    for part in chunks(len(rows.series)):
        is_known = ~np.isnan(rows.target[part])
        held[places(part)[is_known]] = rows.target[part][is_known]
    n_changed, row = 0, -1
    for part in chunks(len(rows.series)):
        changed = np.abs(held[places(part)] - rows.target[part]) > 0.0
        if changed.any() and not n_changed:
            row = part.start + int(changed.argmax())
        n_changed += int(changed.sum())
    if n_changed:
        now = held[places(slice(row, row + 1))][0]
        msg = (
            f"{name}: the target of {counted(n_changed, 'row')} differs from that of the same {names.series!r} and "
            f"{names.time!r} in another window; the first is row {row} of {rows.ids[rows.series[row]]!r} "
            f"({rows.target[row]:g} and {now:g}). Were targets revised? Give each its last value."
        )
        raise ValueError(msg)
