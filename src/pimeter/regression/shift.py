"""Covariate shift: how much likelier rows are where intervals are needed than where calibration rows come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, RobustScaler, SplineTransformer
from sklearn.utils.validation import _num_samples

from pimeter.arrays import as_frame, even_array
from pimeter.frames import refuse_other_order
from pimeter.regression.features import Features, is_table
from pimeter.validation import row_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, FeatureTable

FOLDS = 5
# The largest probability that is believed: no row weighs more than ten thousand times what it would.
MAX_PROBABILITY = 0.9999
PENALTIES = (0.01, 0.1, 1.0, 10.0)  # inverse strengths, from which the log loss of left-out rows chooses
KNOTS = 7
MAX_RANGES = 4.0  # interquartile ranges from the median beyond which a value counts as there: outliers have leverage
# Columns, with one for each category, up to which there are curves, which take ten times as long as lines.
MAX_COLUMNS_WITH_CURVES = 50
LARGEST_WEIGHT = 1e100  # and its inverse is the least: sums and ratios of weights stay numbers
LINE_SCALE = 10.0  # by which straight lines are enlarged beside curves, so that they are hardly penalised


@dataclass(frozen=True, eq=False)
class ShiftWeights:
    """Estimated weights of calibration rows and of new ones, to hand to `importance_weight` as they are.

    `IntervalRegressor.calibrate` takes those of the calibration rows out of it, `predict_interval` those of the new
    rows, and both know that they are estimates: nothing is guaranteed, and `guaranteed_level_` is NaN. An array is
    taken for a ratio that is *known*, whose guarantee holds.

    Attributes
    ----------
    calibration : ndarray of shape (m,)
        Ratio of densities, new rows over calibration rows, at each calibration row.
    new : ndarray of shape (n,)
        Ratio of densities, new rows over calibration rows, at each new row.
    effective_size : float
        About how many rows drawn where the new ones come from the calibration rows stand for:
        ``m mean(calibration) / mean(new)``, at most m. It is an estimate as the weights are. The size of the
        calibration weights alone, ``(sum w)^2 / sum w^2``, has the same limit but is too large under a strong shift,
        even for a known ratio: the heaviest rows, which decide it, are among the new rows and not yet among the others.
    """

    calibration: Array
    new: Array
    effective_size: float


def shift_weights(
    X: FeatureTable, X_new: FeatureTable, *, classifier: object = None, random_state: int | None = None
) -> ShiftWeights:
    """How much likelier each row is among new rows than among calibration rows, estimated by a classifier.

    A classifier that tells new rows from calibration rows knows their ratio: p / (1 - p). Each row's p is from a
    classifier that has not seen the row (five folds). Intervals with these weights come near the confidence level, as
    far as the ratio is right and enough effective rows remain, but nothing is guaranteed; for a ratio that is known,
    pass that one as an array instead.

    Parameters
    ----------
    X : array or frame of m rows
        Calibration rows.
    X_new : array or frame of n rows
        Rows that intervals are needed for, of the same columns.
    classifier : scikit-learn classifier or None, default=None
        With `predict_proba`, whose probabilities are calibrated. None: logistic regression on a line and a smooth
        curve of each column (more than 50 columns: a line alone), categories and missing values included, with the
        penalty that has the least log loss on rows left out. It sees no interactions of columns.
    random_state : int or None, default=None
        Chooses the folds.

    Returns
    -------
    ShiftWeights
        `calibration`, `new` and `effective_size`; hand it to `importance_weight` as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import IntervalRegressor, shift_weights
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(1000, 1)), rng.normal(1.0, size=(1000, 1))
    >>> y = rng.normal(scale=np.exp(X[:, 0]))
    >>> weights = shift_weights(X, X_new, random_state=0)
    >>> round(weights.effective_size)  # with the true ratio 1000 / e = 368
    329
    >>> model = IntervalRegressor(lambda X: np.zeros(len(X))).calibrate(X, y, importance_weight=weights)
    >>> model.guaranteed_level_
    nan
    >>> intervals = model.predict_interval(X_new, importance_weight=weights)
    """
    m, n = _num_samples(X), _num_samples(X_new)
    if min(m, n) < FOLDS:
        msg = f"X has {m} rows and X_new {n}; to tell them apart at least {FOLDS} of each are needed."
        raise ValueError(msg)
    rows: Any = _together(X, X_new)
    classifiers = [classifier]
    if classifier is None:
        if not is_table(rows):
            msg = f"X has no columns (shape {np.shape(rows)}); give a table, or a classifier that can read it."
            raise ValueError(msg)
        no_prediction = np.zeros((m + n, 1))
        rows = Features(for_distance=True).fit(rows, no_prediction).transform(rows, no_prediction)
        rows = rows[:, np.ptp(rows, axis=0) > 0.0]
        if not rows.shape[1]:
            return ShiftWeights(np.ones(m), np.ones(n), float(m))  # nothing tells them apart
        make = _additive if rows.shape[1] <= MAX_COLUMNS_WITH_CURVES else _linear
        classifiers = [make(penalty) for penalty in PENALTIES]
    is_new = np.repeat([0, 1], [m, n])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=random_state)
    found = [cross_val_predict(one, rows, is_new, cv=folds, method="predict_proba")[:, 1] for one in classifiers]
    probability = np.clip(min(found, key=lambda one: log_loss(is_new, one)), 1.0 - MAX_PROBABILITY, MAX_PROBABILITY)
    ratio = probability / (1.0 - probability) * (m / n)
    size = m * min(1.0, float(ratio[:m].mean() / ratio[m:].mean()))
    return ShiftWeights(ratio[:m], ratio[m:], size)


def _additive(penalty: float) -> Pipeline:
    """Logistic regression on a line and a curve of each column.

    Knots, range and penalties were chosen on shifts of normal, uniform, exponential, lognormal, t2 and Cauchy columns,
    in place, in spread and to two modes, among 1 and 5 columns; `benchmarks/shift_coverage.py` uses other draws.
    """
    curve = SplineTransformer(n_knots=KNOTS, extrapolation="linear")
    both = FeatureUnion([("line", "passthrough"), ("curve", curve)], transformer_weights={"line": LINE_SCALE})
    return make_pipeline(
        RobustScaler(), _near(), both, LogisticRegression(C=penalty, solver="newton-cholesky", max_iter=1000)
    )


def _linear(penalty: float) -> Pipeline:
    """Logistic regression on a line of each column, enlarged as beside curves."""
    return make_pipeline(RobustScaler(), _near(), LogisticRegression(C=LINE_SCALE**2 * penalty, max_iter=1000))


def _near() -> FunctionTransformer:
    """Values clipped at `MAX_RANGES` from the median."""
    return FunctionTransformer(np.clip, kw_args={"a_min": -MAX_RANGES, "a_max": MAX_RANGES})


def _together(X: FeatureTable, X_new: FeatureTable) -> Any:
    """Rows of both tables in one."""
    old, new = as_frame(X), as_frame(X_new)
    if old is not None and new is not None:
        return _frames_together(old, new)
    is_sparse = sparse.issparse(X)
    if sparse.issparse(X_new) != is_sparse:
        msg = "one of X and X_new is a sparse matrix, the other is not; give both as such, or use toarray()."
        raise ValueError(msg)
    tables: list[Any] = [X, X_new] if is_sparse else [even_array("X", X), even_array("X_new", X_new)]
    if tables[0].shape[1:] != tables[1].shape[1:]:
        msg = f"X has shape {tables[0].shape} and X_new {tables[1].shape}; both must have the same columns."
        raise ValueError(msg)
    return sparse.vstack(tables).tocsr() if is_sparse else np.concatenate(tables)


def _frames_together(old: nw.DataFrame[Any], new: nw.DataFrame[Any]) -> Any:
    """Frames of one library with the same columns as one; numbers of unequal types become floats."""
    if old.implementation != new.implementation or old.columns != new.columns:
        msg = (
            f"X is a {type(old.to_native()).__name__} with columns {old.columns} and X_new a "
            f"{type(new.to_native()).__name__} with {new.columns}; give frames of one library with the same columns."
        )
        raise ValueError(msg)
    if not old.columns:
        msg = "X and X_new have no columns; give those that tell where rows come from."
        raise ValueError(msg)
    kinds = [old.schema, new.schema]
    unequal = [name for name in old.columns if kinds[0][name] != kinds[1][name]]
    for name in unequal:
        if not all(own[name].is_numeric() or own[name] == nw.Boolean for own in kinds):
            msg = f"column {name!r} is {kinds[0][name]} in X and {kinds[1][name]} in X_new; give columns of one kind."
            raise ValueError(msg)
    floats = [nw.col(name).cast(nw.Float64) for name in unequal]
    return nw.concat([frame.with_columns(floats) for frame in (old, new)]).to_native()


def effective_size(importance_weight: object) -> float | None:
    """Effective number of calibration rows by estimated weights; None: weights are known, or there are none."""
    return importance_weight.effective_size if isinstance(importance_weight, ShiftWeights) else None


@np.errstate(invalid="ignore")  # scikit-learn adds up infinities to find them
def importance_weights(
    importance_weight: ArrayLike | ShiftWeights | None, X: FeatureTable, *, are_new: bool = False
) -> Array | None:
    """Importance weights, one per row, of calibration rows or of new ones."""
    if importance_weight is None:
        return None
    if isinstance(importance_weight, ShiftWeights):
        kind = "new" if are_new else "calibration"
        importance_weight = importance_weight.new if are_new else importance_weight.calibration
        if len(importance_weight) != _num_samples(X):
            part = "; for a part of them give that part of its attribute new" if are_new else ""
            msg = (
                f"importance_weight is for the {len(importance_weight)} {kind} rows that shift_weights has seen, but X "
                f"has {_num_samples(X)} rows. Call shift_weights with the rows of X{part}."
            )
            raise ValueError(msg)
    refuse_other_order("X", X, "importance_weight", importance_weight)
    # Among new rows none needs another one, so all may weigh 0.
    weights = row_weights("importance_weight", importance_weight, _num_samples(X), may_all_be_zero=are_new)
    if ((weights > LARGEST_WEIGHT) | ((weights < 1.0 / LARGEST_WEIGHT) & (weights > 0.0))).any():
        msg = (
            f"importance_weight must be 0 or from {1.0 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}; got "
            f"{weights.min():g} to {weights.max():g}. Only ratios count: divide by the mean."
        )
        raise ValueError(msg)
    return weights
