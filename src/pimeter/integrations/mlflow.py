"""MLflow 3: intervals of logged models, metrics for `mlflow.models.evaluate`, reports as artifacts.

``mlflow.sklearn.log_model(model, skops_trusted_types=trusted_types())``, with `pimeter.integrations.skops`, logs the
estimator itself; `log_model` one whose ``pyfunc`` answers with intervals. MLflow is imported where it is needed.
"""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pimeter.evaluation.measurement import Measurement
from pimeter.evaluation.probabilistic import IntervalMeasurement
from pimeter.integrations.skops import trusted_types as own_types
from pimeter.scorers import holder_of
from pimeter.scores import coverage_score, interval_score, mean_width_score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mlflow.models import EvaluationMetric
    from mlflow.models.model import ModelInfo

    from pimeter.evaluation.results import Result


class ServedModel:
    """What ``mlflow.pyfunc`` predicts with: predictions and bounds, or sets of classes, as a frame."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """Answers at the level that `params` ask for, or the one that the model was made for."""
        holder = holder_of(self.model, data, self.method)
        return getattr(holder.estimator, self.method)(holder.X, (params or {}).get("confidence_level"), as_frame=True)

    @property
    def method(self) -> str:
        """How the estimator is asked."""
        return "predict_set" if hasattr(self._last, "predict_set") else "predict_interval"

    @property
    def confidence_level(self) -> float:
        """The level that the model was made for."""
        return float(self._last.confidence_level)

    @property
    def _last(self) -> Any:
        """The estimator inside searches and pipelines."""
        one = self.model
        while hasattr(one, "best_estimator_") or hasattr(one, "steps"):
            one = one.best_estimator_ if hasattr(one, "best_estimator_") else one.steps[-1][1]
        return one


def log_model(
    model: Any,
    name: str = "model",
    *,
    input_example: Any = None,
    trusted_types: Iterable[str] = (),
    **settings: Any,
) -> ModelInfo:
    """Log a fitted estimator whose ``pyfunc`` predicts intervals, in skops format: nothing is pickled.

    Parameters
    ----------
    model : IntervalRegressor or SetClassifier, also at the end of a pipeline
        Fitted. Categories of ``width="grouped"`` have to be columns of X.
    name : str, default="model"
        Its name in MLflow.
    input_example : frame or array, optional
        Some rows of X, which say what columns there are; needed to ask for other levels when it is served.
    trusted_types : iterable of str, optional
        Types of the model inside that skops does not know, in addition to those of `pimeter.integrations.skops`.
    **settings
        Passed to ``mlflow.pyfunc.log_model``, such as `registered_model_name`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is what ``mlflow.pyfunc.load_model`` takes. ``predict(X, params={"confidence_level": 0.8})`` of
        what that loads gives a frame with columns prediction, lower and upper, or one for each class.
    """
    import mlflow
    import skops.io

    served = ServedModel(model)
    if input_example is not None and "signature" not in settings:
        answer, params = served.predict(input_example), {"confidence_level": served.confidence_level}
        settings["signature"] = mlflow.models.infer_signature(input_example, answer, params=params)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        skops.io.dump(model, path)
        trusted = sorted({*own_types(), *trusted_types})
        skops.io.load(path, trusted=trusted)  # what cannot be read again is not logged
        return mlflow.pyfunc.log_model(
            name=name,
            loader_module=__name__,
            data_path=str(path),
            model_config={"trusted_types": trusted},
            input_example=input_example,
            **settings,
        )


def _load_pyfunc(path: str, model_config: dict[str, Any]) -> ServedModel:
    """What MLflow calls to read a model that `log_model` wrote."""
    import skops.io

    return ServedModel(skops.io.load(path, trusted=model_config["trusted_types"]))


def interval_metrics(confidence_level: float) -> list[EvaluationMetric]:
    """Coverage, mean width and interval score, for ``mlflow.models.evaluate(..., extra_metrics=...)``.

    Parameters
    ----------
    confidence_level : float
        Level of the intervals.

    Returns
    -------
    list of mlflow.models.EvaluationMetric
        They look at columns lower and upper, of the data or of what the model answers: those of `log_model` answer
        with such columns, of which ``predictions="prediction"`` is the prediction.
    """
    import numpy as np
    from mlflow.metrics import MetricValue
    from mlflow.models import make_metric

    scores: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
        "coverage_score": (coverage_score, True),
        "mean_width_score": (lambda _, bounds: mean_width_score(bounds, bound_axis=1), False),
        "interval_score": (lambda y, bounds: interval_score(y, bounds, confidence_level), False),
    }

    def metric(name: str) -> EvaluationMetric:
        score, greater_is_better = scores[name]

        def value(predictions: Any, targets: Any, lower: Any, upper: Any) -> MetricValue:  # names that MLflow knows
            bounds = np.stack([np.asarray(lower, np.float64), np.asarray(upper, np.float64)], axis=1)
            if len(predictions) == 1:  # MLflow tries a metric on the first row, but hands over all bounds
                bounds = bounds[:1]
            return MetricValue(aggregate_results={name: float(score(np.asarray(targets), bounds))})

        return make_metric(eval_fn=value, greater_is_better=greater_is_better, name=name)

    return [metric(name) for name in scores]


def log_result(result: Result, name: str = "report") -> None:
    """Log what `measure`, `compare`, `backtest` or `scorecard` found to the active run.

    Parameters
    ----------
    result : Result
        Its page and its JSON become the artifacts ``report.html`` and ``report.json``, and its scores, if it has some,
        metrics with their ranges: ``coverage``, ``coverage_lower``, ``coverage_upper`` and so on.
    name : str, default="report"
        Name of the artifacts.
    """
    import mlflow

    mlflow.log_text(result.to_html(), f"{name}.html")
    mlflow.log_text(result.to_json(), f"{name}.json")
    found: dict[str, float] = {}
    scores = result.scores if isinstance(result, Measurement | IntervalMeasurement) else {}
    for score, one in scores.items():
        key = "".join(letter if letter.isalnum() else "_" for letter in score)
        found |= {key: one.value, f"{key}_lower": one.lower, f"{key}_upper": one.upper}
    mlflow.log_metrics({key: value for key, value in found.items() if math.isfinite(value)})
