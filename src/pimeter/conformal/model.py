"""The model inside: whether it is trained, and which arguments of `fit` are its own by scikit-learn's routing."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted


def metadata_router(owner: object, model: object) -> MetadataRouter:
    """A router to the owner's own requests and to `fit` of the model, if there is one to train."""
    router = MetadataRouter(owner=owner).add_self_request(owner)
    if model is not None:
        router.add(estimator=model, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    return router


def for_the_model(owner: object, fit_params: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `fit` that the model gets: all, with metadata routing those that it asked for; or an error."""
    if not get_config()["enable_metadata_routing"]:
        return fit_params
    return dict(process_routing(owner, "fit", **fit_params).estimator.fit)


def trained(estimator: object) -> Any:
    """The estimator itself, which has to be ready to predict."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as unfitted:
        msg = (
            f"estimator is a {type(estimator).__name__} that is not fitted: call fit(X, y), which trains a clone of "
            "it, or fit the estimator first: calibration needs its predictions."
        )
        raise NotFittedError(msg) from unfitted
    return estimator
